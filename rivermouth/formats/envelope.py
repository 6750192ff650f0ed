"""`envelope`: the four fixed columns `data`, `event_type`, `timestamp`, `stream`, for any JSON value.

`event_type` is what a header of that name says (the last, if there are several), else what a Debezium `op`
says, else `insert`. A record without a value is a `delete` whose `data` is the key.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermouth.formats import json_suspects, rows
from rivermouth.formats.base import INVALID_ENCODING, MISSING_FIELD, NULL_VALUE, Decoded, Rejects
from rivermouth.formats.json_text import BadValue, parse

_OPERATIONS = {"c": "insert", "r": "insert", "u": "update", "d": "delete"}


class Envelope:
    """The `envelope` format."""

    schema = pa.schema(
        [
            pa.field("data", pa.string(), nullable=False),
            pa.field("event_type", pa.string(), nullable=False),
            pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
            pa.field("stream", pa.string()),
        ]
    )

    def decode(self, records: pa.RecordBatch, *, careful: bool = False) -> Decoded:
        """Decode a batch; see `Format`. `careful` reads each value by Python's own JSON reader."""
        values, keys = records.column("value"), records.column("key")
        problems: dict[int, tuple[str, str]] = {}
        _check_timestamps(records.column("timestamp"), problems)
        types = _header_types(records.column("headers"), problems)
        _check_json(values, problems, careful)
        if values.null_count:
            _check_keys(values, keys, problems)
            types = pc.if_else(values.is_null(), "delete", types)
        rejects = Rejects()
        for row in sorted(problems):
            rejects.add(row, *problems[row])
        kept = rows.kept(len(records), rejects)
        if kept is not None:
            records, types = records.take(kept), types.take(kept)
            values, keys = records.column("value"), records.column("key")
        types = _operation_types(values, types)
        columns = [
            (pc.coalesce(values, keys) if values.null_count else values).cast(pa.string()),
            pc.fill_null(types, "insert"),
            records.column("timestamp"),
            records.column("topic"),
        ]
        return Decoded(pa.RecordBatch.from_arrays(columns, schema=self.schema), kept, rejects)


Problems = dict[int, tuple[str, str]]


def _check_timestamps(timestamps: pa.Array, problems: Problems) -> None:
    if timestamps.null_count:
        for row in pc.indices_nonzero(timestamps.is_null()).to_pylist():
            problems.setdefault(row, (MISSING_FIELD, "timestamp: the record has none"))


def _header_types(headers: pa.Array, problems: Problems) -> pa.Array:
    """The event type each record's headers name, or null. An empty header names none."""
    pairs = headers.flatten()
    nothing = pa.nulls(len(headers), pa.string())
    if not len(pairs):
        return nothing
    keys, texts = pairs.flatten()
    named = pc.and_(pc.equal(keys, "event_type"), pc.greater(pc.binary_length(texts), 0)).fill_null(False)
    if not pc.any(named).as_py():
        return nothing
    parents = pc.list_parent_indices(headers).filter(named).to_numpy()
    texts = texts.filter(named)
    last = np.append(parents[1:] != parents[:-1], True)
    parents, texts = parents[last], texts.filter(pa.array(last))
    try:
        texts = texts.cast(pa.string())
    except pa.ArrowInvalid:
        bad = rows.not_utf8(texts)
        for place in bad:
            error = rows.encoding_error(texts[place].as_py())
            problems.setdefault(int(parents[place]), (INVALID_ENCODING, f"header event_type: {error}"))
        good = rows.others(len(texts), bad)
        parents, texts = parents[good], texts.take(pa.array(good)).cast(pa.string())
    places = np.full(len(headers), -1)
    places[parents] = np.arange(len(parents))
    return texts.take(pa.array(places, mask=places < 0))


_read_any = msgspec.json.Decoder(msgspec.Raw).decode


def _skip(value: bytes | None) -> None:
    if value is not None:
        _read_any(value)


def _check_json(values: pa.Array, problems: Problems, careful: bool) -> None:
    """Note the values that are not JSON. Most are passed in C; the last word is Python's own reader's."""
    listed = values.to_pylist()
    suspects = range(len(listed)) if careful else json_suspects.find(listed, _skip)
    for row in {*suspects, *rows.not_utf8(values)}:
        try:
            if listed[row] is not None:
                parse(listed[row])
        except BadValue as bad:
            problems.setdefault(row, (bad.reason, str(bad)))


def _check_keys(values: pa.Array, keys: pa.Array, problems: Problems) -> None:
    """A record without a value needs a key that is text."""
    for row in pc.indices_nonzero(values.is_null()).to_pylist():
        key = keys[row].as_py()
        if key is None:
            problems.setdefault(row, (NULL_VALUE, "the record has neither a value nor a key"))
            continue
        error = rows.encoding_error(key)
        if error:
            problems.setdefault(row, (INVALID_ENCODING, f"key: {error}"))


class _Payload(msgspec.Struct):
    op: Any = None


class _Change(msgspec.Struct):
    op: Any = None
    payload: msgspec.Raw = msgspec.Raw(b"null")


_read_change = msgspec.json.Decoder(_Change).decode
_read_payload = msgspec.json.Decoder(_Payload).decode


def _operation_types(values: pa.Array, types: pa.Array) -> pa.Array:
    """Fill in the event types that are still open and that a Debezium `op` tells."""
    if not types.null_count:
        return types
    asked = pc.and_(types.is_null(), pc.match_substring(values, b'"op"').fill_null(False))
    places = pc.indices_nonzero(asked)
    if not len(places):
        return types
    found = pa.array([operation(value) for value in values.take(places).to_pylist()], pa.string())
    return pc.replace_with_mask(types, asked, found)


def operation(value: bytes) -> str | None:
    """What a Debezium change event does, bare or wrapped in `{"schema": .., "payload": ..}`."""
    if not value.lstrip(b" \t\r\n").startswith(b"{"):
        return None
    try:
        change = _read_change(value)
        op = change.op
        if op is None and bytes(change.payload).startswith(b"{"):
            op = _read_payload(change.payload).op
    except (msgspec.MsgspecError, RecursionError):
        whole = parse(value)
        payload = whole.get("payload")
        op = whole.get("op")
        if op is None and isinstance(payload, dict):
            op = payload.get("op")
    return _OPERATIONS.get(op) if type(op) is str else None
