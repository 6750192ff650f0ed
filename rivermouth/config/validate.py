"""Validates a config part by part, so that one wrong part does not hide the problems of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import ValidationError

from rivermouth.config import checks, pipeline_checks
from rivermouth.config.checks import Finding, Path, suggest
from rivermouth.config.model import (
    ColumnConfig,
    DeltaLakeConfig,
    Model,
    PipelineConfig,
    SinkConfig,
    SourceConfig,
)
from rivermouth.config.problems import Report, explain, key_name

SINK_CONNECTORS = ("delta-lake",)

# Takes the place of a part that is wrong, so that the rest can be checked.
_STAND_IN = DeltaLakeConfig(table_uri="stand-in")
_STAND_INS: dict[type[Model], dict[str, Any]] = {
    DeltaLakeConfig: {"table_uri": "stand-in"},
    SinkConfig: {"connector": "delta-lake", "config": _STAND_IN},
    PipelineConfig: {
        "pipeline": "stand-in",
        "sources": {"stand-in": SourceConfig(connector="-", config=Model())},
        "sinks": {"stand-in": SinkConfig(connector="delta-lake", config=_STAND_IN)},
    },
}


class Validation:
    """One pass over the values of a file."""

    def __init__(self, report: Report, connectors: Mapping[str, type[Model]]) -> None:
        self.report = report
        self.connectors = connectors

    def pipeline(self, stem: str) -> PipelineConfig | None:
        """The whole config, or None; `stem` is the pipeline's name where it has no other."""
        raw = dict(self.report.values)
        sources: dict[str, Any] = {}
        sinks: dict[str, dict[str, Any]] = {}
        if "pipeline" not in raw:
            if pipeline_checks.NAME.fullmatch(stem) is None:
                hint = "set pipeline: a name of letters, digits, '.', '_' and '-'"
                message = f"the file's name {stem!r} cannot be the pipeline's name"
                self.report.add(Finding((), "InvalidName", message, hint))
                stem = "stand-in"
            raw["pipeline"] = stem
        if isinstance(raw.get("sources"), dict):
            sources = {name: self.source(name, value) for name, value in raw["sources"].items()}
            raw["sources"] = {
                name: source or SourceConfig(connector="-", config=Model())
                for name, source in sources.items()
            }
        if isinstance(raw.get("sinks"), dict):
            good = {}
            for name, value in raw["sinks"].items():
                good[name], sinks[name] = self.sink(name, value)
            stand_in = _STAND_INS[PipelineConfig]["sinks"]["stand-in"]
            raw["sinks"] = {name: sink or stand_in for name, sink in good.items()}
        config: PipelineConfig | None
        config, values = self.part(PipelineConfig, raw, ())
        name = values.get("pipeline") if "pipeline" in self.report.values else None
        found = pipeline_checks.names(name, sinks, sources)
        configs = {name: source and source.config for name, source in sources.items()}
        if configs:
            found += pipeline_checks.routing(sinks, configs)
        self.add(found + pipeline_checks.tables(sinks))
        return config

    def source(self, name: str, raw: Any) -> SourceConfig | None:
        """One source, or None."""
        path: Path = ("sources", name)
        if not isinstance(raw, dict):
            self.expect_keys(path)
            return None
        known = self.connector(raw, path, list(self.connectors))
        model = self.connectors.get(str(raw.get("connector"))) if known else None
        config = None
        if model is not None:
            config, _ = self.part(model, raw.get("config", {}), (*path, "config"))
        whole, _ = self.part(SourceConfig, {**raw, "connector": "-", "config": Model()}, path)
        if whole is None or config is None or "connector" not in raw:
            return None
        return SourceConfig(connector=raw["connector"], config=config)

    def sink(self, name: str, raw: Any) -> tuple[SinkConfig | None, dict[str, Any]]:
        """One sink, or None, and those of its values that are right."""
        path: Path = ("sinks", name)
        if not isinstance(raw, dict):
            self.expect_keys(path)
            return None, {}
        known = self.connector(raw, path, SINK_CONNECTORS)
        config = None
        inner: dict[str, Any] = {}
        if known and "config" in raw:
            config, inner = self.part(DeltaLakeConfig, raw["config"], (*path, "config"))
            self.salvage_columns(inner, raw["config"])
            given = [key for key in raw["config"] if inner.get(key) is not None] if inner else []
            self.add(checks.delta_sink(inner, given), *path, "config")
        whole = {**raw, "connector": "delta-lake"}
        if "config" in raw or not known:
            whole["config"] = config or _STAND_IN
        sink, values = self.part(SinkConfig, whole, path)
        self.add(checks.sink(values, [key for key in raw if key in values]), *path)
        complete = known and config is not None and "connector" in raw
        return (sink if complete else None), {**values, "config": inner}

    def connector(self, raw: dict[str, Any], path: Path, known: Sequence[str]) -> bool:
        """Whether the part names a connector there is; a part that names none is reported, too."""
        name = raw.get("connector")
        if "connector" not in raw:
            self.missing((*path, "connector"))
            return path[0] == "sinks"
        if isinstance(name, str) and name in known:
            return True
        if not isinstance(name, str):
            self.add([Finding((*path, "connector"), "InvalidValue", "connector: expected text, got {value}")])
        else:
            message = f"there is no {path[0][:-1]} connector {{value}}"  # type: ignore[index]
            listing = f"the {path[0][:-1]} connectors are"  # type: ignore[index]
            close = suggest(name, known, listing)
            hint = close if close.startswith(listing) else f"{close} {listing}: {', '.join(known)}"
            self.add([Finding((*path, "connector"), "UnknownConnector", message, hint)])
        return False

    def part(self, model: type[Model], raw: Any, path: Path) -> tuple[Any, dict[str, Any]]:
        """Validate one part: the instance if all is well, and the values of all fields that are."""
        if not isinstance(raw, dict):
            self.expect_keys(path)
            return None, {}
        try:
            instance = _validate(model, raw)
            return instance, dict(vars(instance))
        except ValidationError as error:
            wrong = self.explain(error, model, raw, path)
        rest = {key: value for key, value in raw.items() if key not in wrong}
        try:
            values = vars(_validate(model, {**_STAND_INS.get(model, {}), **rest}))
        except ValidationError:
            return None, {}
        by_key = {field.alias or name: name for name, field in model.model_fields.items()}
        absent = {by_key.get(str(key), key) for key in wrong}
        return None, {name: value for name, value in values.items() if name not in absent}

    def explain(self, error: ValidationError, model: type[Model], raw: Any, path: Path) -> set[str | int]:
        """Report what pydantic found; returns the keys that are wrong."""
        wrong: set[str | int] = set()
        by_path: dict[Path, list[Finding]] = {}
        for item in error.errors(include_url=False, include_input=False):
            if item["type"] == "default_factory_not_called":
                continue  # follows from another error
            wrong.update(item["loc"][:1])
            steps, value = _steps(item["loc"], raw)
            if item["type"] == "missing":
                steps = (*steps, item["loc"][-1])
            known = _keys_of(model, steps[:-1])
            finding = explain(dict(item), (*path, *steps), known, value)
            by_path.setdefault(finding.path, []).append(finding)
        for where, findings in by_path.items():
            # Each kind a value may have complains; what is said of the inside says most.
            if any(
                len(other) > len(where) and other[: len(where)] == where for other in by_path if where != path
            ):
                continue
            self.add([_together(findings, model, where[len(path) :])])
        return wrong

    def salvage_columns(self, values: dict[str, Any], raw: Any) -> None:
        """Put back the columns that are right when others of the schema are wrong."""
        columns = raw.get("schema") if isinstance(raw, dict) else None
        if not values or "fields" in values or not isinstance(columns, list):
            return
        values["fields"] = [_column(column) for column in columns]
        if "schema_type" not in raw:
            values["schema_type"] = "json"

    def add(self, findings: Sequence[Finding], *parents: str | int) -> None:
        """Report findings of a part that stands under these keys."""
        for finding in findings:
            self.report.add(finding.under(*parents) if parents else finding)

    def expect_keys(self, path: Path) -> None:
        """Report that something else stands where keys should."""
        self.add(
            [Finding(path, "InvalidValue", f"{key_name(path)}: expected keys and values, got {{value}}")]
        )

    def missing(self, path: Path) -> None:
        """Report a key that must be there."""
        self.add([explain({"type": "missing"}, path, (), None)])


def _validate(model: type[Model], raw: dict[str, Any]) -> Model:
    return model.model_validate(raw, by_alias=True, by_name=False, context={"checked_elsewhere": True})


def _together(findings: list[Finding], model: type[Model], steps: Path) -> Finding:
    """One finding where a value is none of the kinds it may have: the key's description names them all."""
    first = findings[0]
    described = {field.alias or name: field.description for name, field in model.model_fields.items()}
    if len(findings) == 1 or first.code != "InvalidValue":
        return first
    hint = (described.get(str(steps[0])) or "").rstrip(".") if steps else ""
    return Finding(first.path, first.code, f"{key_name(first.path)} cannot be {{value}}", hint)


def _column(raw: Any) -> ColumnConfig | None:
    try:
        return ColumnConfig.model_validate(raw)
    except ValidationError:
        return None


def _steps(loc: Sequence[str | int], raw: Any) -> tuple[Path, Any]:
    """The part of pydantic's location that is in the file: it also names the kinds of a union."""
    steps: list[str | int] = []
    value: Any = raw
    for step in loc:
        known = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
        if step in known:
            value = value[step]
            steps.append(step)
    return tuple(steps), value


def _keys_of(model: type[Model], path: Path) -> list[str]:
    """The keys a nested part of a model knows."""
    current: Any = model
    for step in path:
        if isinstance(step, int):
            continue
        fields = {field.alias or name: field for name, field in current.model_fields.items()}
        models = _models_in(fields[step].annotation) if step in fields else []
        if not models:
            return []
        current = models[0]
    return [field.alias or name for name, field in current.model_fields.items()]


def _models_in(annotation: Any) -> list[type[Model]]:
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models_in(argument)]
