"""Variables in a config: `${NAME}`, `${NAME:-default}`, and `$$` for a dollar."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A dollar before anything else is a dollar, so that `^orders$` stays what it is.
_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<body>[^}]*)(?P<end>\}?))")


class Substituted(NamedTuple):
    """A text after substitution."""

    text: str
    used: tuple[str, ...]  # variables whose value is in the text now
    missing: tuple[str, ...]
    malformed: tuple[str, ...]  # references that cannot be read, as they stand in the file


def references(text: str) -> list[str]:
    """The variables a text names, as `${NAME}`."""
    bodies = (match["body"].partition(":-")[0] for match in _REFERENCE.finditer(text) if match["body"])
    return [f"${{{name}}}" for name in dict.fromkeys(bodies)]


def substitute(text: str, environ: Mapping[str, str]) -> Substituted:
    """Replace the variables in a text. As in a shell, `:-` also stands in for an empty value."""
    used: list[str] = []
    missing: list[str] = []
    malformed: list[str] = []

    def replace(match: re.Match[str]) -> str:
        if match["dollar"]:
            return "$"
        name, divider, default = match["body"].partition(":-")
        if not match["end"] or not _NAME.fullmatch(name) or "${" in default:
            malformed.append(match[0])
            return match[0]
        value = environ.get(name)
        if divider and not value:
            return default.replace("$$", "$")
        if value is None:
            missing.append(name)
            return match[0]
        used.append(name)
        return value

    return Substituted(_REFERENCE.sub(replace, text), tuple(used), tuple(missing), tuple(malformed))
