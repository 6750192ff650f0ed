"""Problems of a config file: found all at once, each with its place, no secret in any of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rivermouth.config.checks import Finding, Path, suggest
from rivermouth.config.document import Document, Place, leaves
from rivermouth.config.env import references
from rivermouth.config.redact import HIDDEN, looks_secret, redact
from rivermouth.errors import ConfigError

# These name keys only, never a value, so nothing in them needs hiding.
_ABOUT_KEYS = ("UnknownKey", "MissingKey", "MissingVariable", "DuplicateKey")


class Problem(NamedTuple):
    """One thing that is wrong, and where."""

    path: Path
    line: int
    column: int
    code: str
    message: str
    hint: str

    def render(self, file: str) -> str:
        """The line that is printed: `file:line:column: code: message (hint)`."""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{file}:{self.line}:{self.column}: {self.code}: {self.message}{hint}"


class InvalidConfigFile(ConfigError):
    """A config file has problems; they are all in `problems`, in file order."""

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(problem.render(file) for problem in problems))
        self.file = file
        self.problems = list(problems)

    def __str__(self) -> str:
        return self.message


@dataclass
class Report:
    """Collects problems, puts them in their places, and keeps secrets out of them."""

    document: Document
    # Texts as they stand in the file, by path, of values that came from the environment.
    templates: dict[Path, str] = field(default_factory=dict)
    values: Any = None  # after substitution
    muted: set[Path] = field(default_factory=set)  # reported for a reason that explains all others
    problems: list[Problem] = field(default_factory=list)

    def add(self, finding: Finding, place: Place | None = None) -> None:
        """Note a problem, unless its value is already known to be missing."""
        if finding.path in self.muted:
            return
        place = place or self.document.place(finding.path, at_key=finding.at_key)
        message, hint = finding.message, finding.hint
        if finding.code not in _ABOUT_KEYS:
            message, hint = self.conceal(message, finding.path), self.conceal(hint, finding.path)
        message = message.replace("{value}", self.shown(finding.path))
        if finding.path in self.templates and not finding.at_key:
            # The names only: the rest of the text may be secret as well.
            origin = f"the value comes from {', '.join(references(self.templates[finding.path]))}"
            hint = f"{hint}; {origin}" if hint else origin
        problem = Problem(finding.path, *place, finding.code, message, hint)
        if problem not in self.problems:
            self.problems.append(problem)

    def shown(self, path: Path) -> str:
        """A value as a message may show it."""
        return HIDDEN if self.is_hidden(path) else show(_at(self.values, path))

    def is_hidden(self, path: Path) -> bool:
        """Whether the value came from the environment, or its key looks secret."""
        return any(path[:end] in self.templates for end in range(len(path) + 1)) or _secret_path(path)

    def conceal(self, text: str, path: Path) -> str:
        """Take hidden values out of a text that may quote them; near such a value, also parts of it."""
        for place, value in self.hidden_values():
            related = place[: len(path)] == path or path[: len(place)] == place
            if len(value) < 4 and not related:
                continue  # short words would be found everywhere
            words = [value, *(re.findall(r"\w{4,}", value) if related else ())]
            for word in sorted(words, key=len, reverse=True):
                text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", HIDDEN, text)
        return text

    def hidden_values(self) -> list[tuple[Path, str]]:
        """Every value that no message may show."""
        return [
            (path, str(value))
            for path, value in leaves(self.values)
            if value not in (None, "", True, False) and self.is_hidden(path)
        ]

    def sorted(self) -> list[Problem]:
        """The problems in file order."""
        return sorted(self.problems, key=lambda problem: (problem.line, problem.column))


def _secret_path(path: Path) -> bool:
    # The second step under sources and sinks is a name somebody chose.
    chosen = 1 if path[:1] in (("sources",), ("sinks",)) else None
    return any(
        isinstance(step, str) and looks_secret(step) for number, step in enumerate(path) if number != chosen
    )


def _at(value: Any, path: Path) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def show(value: Any) -> str:
    """A value in a message: short, and as the file would write it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "keys and values"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        text = str(redact(value))
        return repr(text if len(text) <= 60 else text[:57] + "...")
    return str(value)


_EXPECTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def explain(error: Mapping[str, Any], path: Path, known_keys: Sequence[str], value: Any) -> Finding:
    """Say in our words what pydantic found at a path."""
    kind, context = error["type"], error.get("ctx", {})
    name = key_name(path)
    if kind == "missing":
        owner = key_name(path[:-1])
        return Finding(
            path,
            "MissingKey",
            f"{owner} needs the key {path[-1]}" if owner else f"the key {path[-1]} is missing",
        )
    if kind == "extra_forbidden":
        owner = key_name(path[:-1]) or "the file"
        hint = suggest(str(path[-1]), known_keys, "the keys are")
        return Finding(path, "UnknownKey", f"{owner} has no key {path[-1]}", hint, at_key=True)
    if kind == "literal_error":
        allowed = str(context.get("expected", "")).replace("'", "").replace(" or ", ", ")
        hint = ""
        if isinstance(value, str):
            close = suggest(value, allowed.split(", "), "")
            hint = close if close.startswith("did") else ""
        return Finding(path, "InvalidValue", f"{name} is one of {allowed}, not {{value}}", hint)
    if kind in _EXPECTED:
        return Finding(
            path,
            "InvalidValue",
            f"{name}: expected {_EXPECTED[kind]}, got {{value}}",
            _conversion(kind, value),
        )
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return Finding(path, "InvalidValue", f"{name} is {words} {context[key]}, not {{value}}")
    if kind in ("too_short", "string_too_short"):
        least = context.get("min_length", 1)
        needs = "cannot be empty" if least == 1 else f"is too short, it needs {least}"
        return Finding(path, "InvalidValue", f"{name} {needs}", "", kind == "too_short")
    if kind[0].isupper():  # from `values.problem`
        at_key = context.get("key")
        said = str(context.get("said", error["msg"]))
        if at_key is not None:
            return Finding((*path, at_key), kind, said, context.get("hint", ""))
        got = "" if isinstance(value, (Mapping, list)) else ", got {value}"
        return Finding(path, kind, f"{name}: {said}{got}", context.get("hint", ""))
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return Finding(path, "InvalidValue", f"{name}: {message}" if name else message)


def key_name(path: Path) -> str:
    """The last key of a path, with the positions in its list: `schema[2]`, `topics[0]`."""
    keys = [number for number, step in enumerate(path) if isinstance(step, str)]
    if not keys:
        return ""
    tail = "".join(f"[{step}]" for step in path[keys[-1] + 1 :])
    name = str(path[keys[-1]])
    if len(path) >= 2 and path[0] in ("sources", "sinks") and keys[-1] == 1:
        return f"{path[0][:-1]} {name}{tail}"
    if len(path) >= 3 and path[0] in ("sources", "sinks") and path[2:] == ("config",):
        return f"the config of {path[0][:-1]} {path[1]}"
    return name + tail


def _conversion(kind: str, value: Any) -> str:
    if kind == "string_type" and isinstance(value, (int, float)):
        return "put it in quotes"
    if kind == "list_type" and isinstance(value, str):
        return "write a list, also for one: [...]"
    return ""
