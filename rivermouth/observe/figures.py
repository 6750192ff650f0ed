"""How numbers are shown to people: short enough for a table, exact enough to trust."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# What could forge a log line or drive a terminal. A newline is its caller's to handle.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


def printable(text: str) -> str:
    """Text that may come from anywhere, with control characters made visible."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text.replace("\r\n", "\n"))


def whole(number: int) -> str:
    """A whole number with thousands separated: 1,234,567."""
    return f"{number:,}"


def short(number: float) -> str:
    """A number in at most five characters: 950, 12.3k, 1.23M."""
    if number < 1000:
        text = f"{number:.1f}" if 0 < number < 9.95 and number != int(number) else f"{number:.0f}"
        if text != "1000":
            return text
    for suffix in ("k", "M", "G", "T", "P"):
        number /= 1000
        # The limits are where rounding to three digits would need a fourth.
        for limit, digits in ((9.995, 2), (99.95, 1), (999.5, 0)):
            if number < limit:
                return f"{number:.{digits}f}{suffix}"
    return f"{number:.0f}P"


def brief(number: int) -> str:
    """A count in at most five characters, exact as long as that is possible: 99999, 100k."""
    return str(number) if number < 100_000 else short(number)


def duration(seconds: float) -> str:
    """A length of time in at most six characters: 340ms, 1.2s, 42s, 3m05s, 2h10m, 4d03h."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    total = round(seconds)
    if total < 60:
        return f"{total}s"
    if total < 3600:
        return f"{total // 60}m{total % 60:02d}s"
    if total < 86400:
        return f"{total // 3600}h{total % 3600 // 60:02d}m"
    return f"{total // 86400}d{total % 86400 // 3600:02d}h"


def age(seconds: float) -> str:
    """How long ago something was, in whole seconds or coarser: 3s, 1m05s."""
    return f"{int(seconds)}s" if seconds < 60 else duration(int(seconds))


def size(number: int) -> str:
    """A number of bytes: 512 B, 1.2 MB."""
    if number < 1000:
        return f"{number} B"
    text = short(number)
    return f"{text[:-1]} {text[-1]}B"


def plural(number: int, noun: str) -> str:
    """A count with its noun: 1 file, 2 files."""
    return f"{whole(number)} {noun}" + ("" if number == 1 else "s")


def reasons(counts: Mapping[str, int]) -> str:
    """Counts by reason, the largest first: ` (InvalidJson 60, WrongType 40)`, or nothing."""
    parts = [f"{name} {whole(n)}" for name, n in sorted(counts.items(), key=lambda i: (-i[1], i[0])) if n]
    return f" ({', '.join(parts)})" if parts else ""
