"""What must never be printed: values of keys that look secret, and logins inside addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "***"

_SECRET = re.compile(
    r"password|passwd|passphrase|secret|token|credential|jaas|(?:^|[^a-z])key$|(?:^|[^a-z])key[^a-z]|apikey|accesskey",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_LOGIN = re.compile(r"(?<=://)[^/\s@]+(?=@)")


def looks_secret(key: str) -> bool:
    """Whether a key's name says that its value is a secret."""
    return _SECRET.search(_CAMEL.sub("_", key)) is not None


def redact(value: Any, key: str = "") -> Any:
    """The value with every secret in it replaced by `***`; keys and structure stay."""
    if looks_secret(key) and value is not None and not isinstance(value, bool):
        return HIDDEN
    if isinstance(value, str):
        return _LOGIN.sub(HIDDEN, value)
    if isinstance(value, Mapping):
        return {name: redact(item, str(name)) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact(item) for item in value]
    return value
