"""The config, as typed models: validation, defaults, docs and JSON Schema all come from here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import Self

from rivermouth.config import checks, pipeline_checks
from rivermouth.config.redact import redact
from rivermouth.config.values import DefaultText, Duration, Integer, Number, Port, TextMap, problem

if TYPE_CHECKING:
    import pyarrow as pa

SchemaType = Literal["json", "string", "int64", "bytes", "envelope"]


class Model(BaseModel):
    """What every part of the config shares: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, hide_input_in_errors=True)

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        # A config ends up in logs and stack traces; a secret must not.
        for name, value in super().__repr_args__():
            yield name, redact(value, name or "")


class SparkConfig(Model):
    """How Spark is started."""

    master: str = Field(
        default="local[*]",
        min_length=1,
        description="Where Spark runs: `local[*]` is this machine, all cores.",
    )
    conf: TextMap = Field(default_factory=dict, description="Spark properties, handed on as they are.")


class SourceConfig(Model):
    """Where records come from."""

    connector: str = Field(description="The kind of source.")
    config: Annotated[SerializeAsAny[Model], DefaultText("required if any of its keys is")] = Field(
        description="The keys of that kind of source."
    )


class ColumnConfig(Model):
    """One column of an event."""

    name: str = Field(min_length=1, description="The column's name, and the key in the JSON object.")
    data_type: str = Field(
        min_length=1,
        description="An Arrow type name (`Utf8`, `Int64`) or a Spark type (`array<string>`).",
    )
    nullable: bool = Field(default=True, description="Whether an event may do without it.")


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _check_kind(value: object) -> object:
    # Said here once, or pydantic would say it for each kind in turn.
    if value is not None and not isinstance(value, (str, list, tuple)):
        message = "a schema is a list of columns or a Spark DDL text"
        raise problem("InvalidValue", message, hint="write - {name: id, data_type: Int64}")
    return value


def _any_case(word: str) -> str:
    return "".join(f"[{c.upper()}{c}]" if c.isalpha() else c for c in word)


def _default_interval(data: dict[str, Any]) -> timedelta:
    if data.get("flush_interval_secs") is not None:
        return timedelta(seconds=data["flush_interval_secs"])
    if data.get("flush_interval_ms") is not None:
        return timedelta(milliseconds=data["flush_interval_ms"])
    return timedelta(seconds=60)


def _default_dead_letters(data: dict[str, Any]) -> str:
    return str(data["table_uri"]).rstrip("/") + "_dead_letters"


class DeltaLakeConfig(Model):
    """A Delta table, and how records become its rows."""

    table_uri: str = Field(description="Where the table is: a local path or `file:///absolute/path`.")
    auto_create_table: bool = Field(
        default=True,
        description="Create the table on first start; `false` and no table is the error `NotATable`.",
    )
    fields: Annotated[list[ColumnConfig] | str | None, BeforeValidator(_check_kind)] = Field(
        default=None,
        alias="schema",
        description="The columns of an event: a list of `{name, data_type, nullable}`, or a Spark DDL text.",
    )
    schema_type: Annotated[
        SchemaType,
        BeforeValidator(_lower),
        DefaultText("`json` with a `schema`, else `envelope`"),
        WithJsonSchema(
            {
                "anyOf": [
                    {"enum": ["json", "string", "int64", "bytes", "envelope"]},
                    {
                        "type": "string",
                        "pattern": "^("
                        + "|".join(map(_any_case, ("json", "string", "int64", "bytes", "envelope")))
                        + ")$",
                    },
                ]
            }
        ),
    ] = Field(
        default_factory=lambda data: "json" if data.get("fields") is not None else "envelope",
        description="How a record's value is read. `json` needs a `schema`; the others have fixed columns.",
    )
    partition_columns: list[str] = Field(
        default_factory=list, description="Columns the table is partitioned by; they must exist in the event."
    )
    batch_size: Integer = Field(
        default=10_000, ge=1, description="Start an epoch as soon as this many records wait."
    )
    flush_interval_secs: Number | None = Field(
        default=None,
        ge=0,
        le=366 * 86400,
        exclude=True,
        repr=False,
        description="`flush_interval`, in seconds.",
    )
    flush_interval_ms: Number | None = Field(
        default=None,
        ge=0,
        le=366 * 86_400_000,
        exclude=True,
        repr=False,
        description="`flush_interval`, in ms.",
    )
    flush_interval: Annotated[Duration, DefaultText("`60s`")] = Field(
        default_factory=_default_interval,
        description="Start an epoch when the oldest waiting record was first seen this long ago.",
    )
    max_batch_size: Integer = Field(
        default=1_000_000,
        ge=1,
        description="At most this many records in one epoch; a backlog drains in such steps.",
    )
    target_file_size_mb: Integer = Field(
        default=128, ge=1, description="A writer rolls to a new Parquet file at this size."
    )
    write_mode: Literal["append", "overwrite"] = Field(
        default="append", description="`append` adds rows; with `overwrite` each epoch replaces the table."
    )
    compression: Literal["snappy", "gzip", "lz4", "zstd", "none"] = Field(
        default="snappy", description="How Parquet pages are compressed."
    )
    max_commit_retries: Integer = Field(
        default=3,
        ge=0,
        le=100,
        description="How often a conflicting commit is tried again: after 100 ms, 200 ms, 400 ms, ...",
    )
    table_properties: TextMap = Field(default_factory=dict, description="Delta properties, set at creation.")
    on_bad_record: Literal["dead_letter", "fail", "drop"] = Field(
        default="dead_letter",
        description="A bad record is kept as a dead letter, or stops the sink, or is only counted.",
    )
    on_data_loss: Literal["fail", "continue"] = Field(
        default="fail",
        description="When the source has lost records before they were read: stop, or write the lost range "
        "to the dead-letter table as a gap row and go on.",
    )
    on_restore: Literal["fail", "rewind", "continue"] = Field(
        default="fail",
        description="When the table was set back with `RESTORE`: stop, or read again what that took away, or "
        "go on without it.",
    )
    dead_letter_uri: Annotated[str, DefaultText("`<table_uri>_dead_letters`")] = Field(
        default_factory=_default_dead_letters, description="Where the dead-letter table is."
    )

    @property
    def event_schema(self) -> pa.Schema | None:
        """The declared columns, in the types a format decodes to; None where the format has its own."""
        from rivermouth.config.types import parse_schema

        if self.fields is None:
            return None
        if isinstance(self.fields, str):
            return parse_schema(self.fields)
        return parse_schema([field.model_dump() for field in self.fields])

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        _refuse(checks.delta_sink(vars(self), self.model_fields_set), info)
        return self


class SinkConfig(Model):
    """One Delta table, and which records go there."""

    connector: Literal["delta-lake"] = Field(description="The kind of sink.")
    source: Annotated[str, DefaultText("the only source")] = Field(
        default="", description="The name of the source; may be left out when there is one."
    )
    topics: Annotated[
        list[Annotated[str, Field(min_length=1)]] | None, DefaultText("all topics of the source")
    ] = Field(default=None, min_length=1, description="The topics this sink takes.")
    topic_pattern: str | None = Field(
        default=None,
        min_length=1,
        description="Instead of `topics`: a regular expression for the whole topic name.",
    )
    config: DeltaLakeConfig = Field(description="The table, and how records become its rows.")

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        _refuse(checks.sink(vars(self), self.model_fields_set), info)
        return self


class PipelineConfig(Model):
    """A config file: named sources and sinks."""

    pipeline: Annotated[str, DefaultText("the file's name")] = Field(
        description="The pipeline's name; it scopes exactly-once, so renaming starts anew."
    )
    metrics_port: Port | None = Field(
        default=None,
        description="Serve `/metrics`, `/health`, `/live` and `/ready` here; 0 takes any free port.",
    )
    metrics_host: str = Field(
        default="127.0.0.1", min_length=1, description="The address `metrics_port` binds to."
    )
    shutdown_timeout: Duration = Field(
        default=timedelta(seconds=30),
        description="How long the epoch in flight may take to finish after a stop.",
    )
    spark: Annotated[SparkConfig, DefaultText("`{}`")] = Field(
        default_factory=SparkConfig, description="How Spark is started."
    )
    sources: dict[str, SourceConfig] = Field(min_length=1, description="Where records come from, by name.")
    sinks: dict[str, SinkConfig] = Field(min_length=1, description="Where events go, by name.")

    @field_validator("sinks", mode="after")
    @classmethod
    def _only_source(cls, sinks: dict[str, SinkConfig], info: ValidationInfo) -> dict[str, SinkConfig]:
        sources = info.data.get("sources", {})
        if len(sources) != 1:
            return sinks
        (name,) = sources
        return {
            key: sink if sink.source else sink.model_copy(update={"source": name})
            for key, sink in sinks.items()
        }

    @model_validator(mode="after")
    def _consistent(self, info: ValidationInfo) -> Self:
        found = pipeline_checks.names(self.pipeline, self.sinks, self.sources)
        sinks = {name: {**vars(sink), "config": vars(sink.config)} for name, sink in self.sinks.items()}
        found += pipeline_checks.routing(
            sinks, {name: source.config for name, source in self.sources.items()}
        )
        _refuse(found + pipeline_checks.tables(sinks), info)
        return self


def _refuse(findings: list[checks.Finding], info: ValidationInfo) -> None:
    """Raise what the checks found; `load` switches this off, to report each finding at its place."""
    if not findings or (info.context or {}).get("checked_elsewhere"):
        return
    raise PydanticCustomError(
        "InvalidConfig",
        "{said}",
        {"said": "; ".join(f"{finding.code}: {finding.text()}" for finding in findings)},
    )
