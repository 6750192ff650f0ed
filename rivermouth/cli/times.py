"""Moments as an operator writes them: ISO timestamps or dates, in UTC unless they say otherwise."""

from __future__ import annotations

import re
from datetime import datetime, timezone

from rivermouth.errors import ConfigError

_ISO = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?")


def moment(text: str, option: str) -> datetime:
    """Read a moment; a date alone is its first one."""
    try:
        if not _ISO.fullmatch(text):
            raise ValueError("not an ISO timestamp")
        return _in_utc(text)
    except (ValueError, OverflowError):
        raise ConfigError(
            f"{option}: {text!r} is no time",
            hint="write an ISO timestamp such as 2026-01-31T12:00:00Z, or a date such as 2026-01-31",
        ) from None


def _in_utc(text: str) -> datetime:
    # Python 3.10 knows neither Z nor fractions of other than 3 or 6 digits.
    plain = re.sub(r"\.(\d+)", lambda found: f".{found[1]:0<6}", text.replace("Z", "+00:00"))
    read = datetime.fromisoformat(plain)
    return read.replace(tzinfo=timezone.utc) if read.tzinfo is None else read.astimezone(timezone.utc)
