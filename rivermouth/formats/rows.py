"""Which rows of a batch became events, and which did not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats.base import NULL_VALUE, Rejects


def kept(count: int, rejects: Rejects) -> pa.Array | None:
    """The rows that are not among the rejects, or None if that is every row."""
    return pa.array(others(count, rejects.rows)) if rejects.rows else None


def others(count: int, chosen: Sequence[int] | npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """The rows of `count` that were not chosen, ascending."""
    left = np.ones(count, np.bool_)
    left[np.asarray(chosen, np.int64)] = False
    return np.flatnonzero(left)


def reject_nulls(values: pa.Array, rejects: Rejects) -> None:
    """Reject every record without a value."""
    if values.null_count:
        for row in pc.indices_nonzero(values.is_null()).to_pylist():
            rejects.add(row, NULL_VALUE, "the record has no value")


def not_utf8(values: pa.Array) -> list[int]:
    """The rows whose bytes are not text."""
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        suspects = pc.indices_nonzero(pc.invert(pc.string_is_ascii(values.view(pa.string()))))
        found = zip(suspects.to_pylist(), values.take(suspects).to_pylist(), strict=True)
        return [row for row, value in found if encoding_error(value)]
    return []


def encoding_error(value: bytes) -> str:
    """What keeps the bytes from being text, or nothing."""
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start + 1} (0x{value[error.start]:02x}) is not UTF-8"
    return ""


def in_order(rejects: Rejects) -> Rejects:
    """The same rejects, by ascending row."""
    order = sorted(range(len(rejects)), key=rejects.rows.__getitem__)
    return Rejects(
        [rejects.rows[i] for i in order],
        [rejects.reasons[i] for i in order],
        [rejects.messages[i] for i in order],
    )


def data(values: pa.Array) -> bytes:
    """All values as they lie in memory, one after the other."""
    _, offsets, buffer = values.buffers()
    if buffer is None or not len(values):
        return b""
    start, end = np.frombuffer(offsets, np.int32)[[values.offset, values.offset + len(values)]].tolist()
    found: bytes = buffer.slice(start, end - start).to_pybytes()
    return found
