"""How fast is decoding JSON, and what do bad records cost?

Prints a table; run with `python bench/formats.py`.

Batches of 50,000 records of about 190 bytes and nine columns, clean and with 1 % bad records of each kind
and of all kinds. The times are CPU time of one thread, the best of several runs, because other work on the
machine only ever adds to it. The runs of a row and of the clean batch take turns.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable

import pyarrow as pa

from rivermouth.config.types import parse_schema
from rivermouth.formats import create
from rivermouth.formats.base import Format
from rivermouth.records import RECORD_SCHEMA

SCHEMA = parse_schema(
    "order_id string NOT NULL, customer_id bigint, product string, quantity int, price double, paid boolean, "
    "country string, ts timestamp, note string"
)
BAD: dict[str, Callable[[bytes], bytes | None]] = {
    "no value": lambda _: None,
    "truncated": lambda value: value[:100],
    "two objects": lambda value: value + value,
    "not an object": lambda value: b"[" + value + b"]",
    "wrong encoding": lambda value: value.replace(b"note", b"not\xff"),
    "NaN": lambda value: value.replace(b'"price": ', b'"price": NaN, "was": '),
    "missing field": lambda value: value.replace(b'"order_id": ', b'"order": '),
    "doubled key": lambda value: value.replace(b'"note": ', b'"paid": true, "note": '),
    "1.5 for an integer": lambda value: value.replace(b'"quantity": ', b'"quantity": 1.'),
    "overflow": lambda value: value.replace(b'"quantity": ', b'"quantity": 9999999999'),
    "text for a number": lambda value: value.replace(b'"price": ', b'"price": "abc", "was": '),
    "bad timestamp": lambda value: value.replace(b'"2024-01', b'"2024-13'),
}


def record(number: int) -> bytes:
    event = {
        "order_id": f"ord-{number:09d}",
        "customer_id": random.randrange(10**6),
        "product": random.choice(["apple", "pear", "plum", "quince"]),
        "quantity": random.randrange(1, 10),
        "price": round(random.random() * 100, 2),
        "paid": number % 2 == 0,
        "country": random.choice(["DE", "FR", "PL"]),
        "ts": f"2024-01-15T10:30:{number % 60:02d}.{number % 10**6:06d}Z",
        "note": "at door",
    }
    return json.dumps(event).encode()


def batch(values: list[bytes | None]) -> pa.RecordBatch:
    arrays = [pa.nulls(len(values), field.type) for field in RECORD_SCHEMA]
    arrays[RECORD_SCHEMA.get_field_index("value")] = pa.array(values, pa.binary())
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD_SCHEMA)


def cpu(format_: Format, records: pa.RecordBatch) -> float:
    start = time.thread_time()
    format_.decode(records)
    return time.thread_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    pa.set_cpu_count(1)
    random.seed(1)
    good = [record(number) for number in range(arguments.records)]
    clean = batch(good)
    size = sum(map(len, good)) / len(good)
    print(f"{len(good)} records, {size:.0f} bytes each, pyarrow {pa.__version__}")
    print(f"{'1 % bad':<22}{'records/s':>12}{'CPU ms':>10}{'clean ms':>10}{'times':>8}{'first':>8}")
    every = list(BAD.values())
    kinds = {name: [spoil] for name, spoil in BAD.items()} | {"all kinds": every}
    for name, spoilers in kinds.items():
        values: list[bytes | None] = list(good)
        for place, row in enumerate(range(50, len(values), 100)):
            values[row] = spoilers[place % len(spoilers)](good[row])
        bad = batch(values)
        untouched, spoilt = create("json", SCHEMA), create("json", SCHEMA)
        first = cpu(spoilt, bad)  # nothing is remembered of the stream yet
        runs = [(cpu(untouched, clean), cpu(spoilt, bad)) for _ in range(arguments.runs)]
        base, cost = (min(column) for column in zip(*runs, strict=True))
        times = f"{cost / base:>8.2f}{first / base:>8.2f}"
        print(f"{name:<22}{len(values) / cost:>12,.0f}{cost * 1e3:>10.1f}{base * 1e3:>10.1f}{times}")
    print(f"{'clean':<22}{len(good) / base:>12,.0f}{base * 1e3:>10.1f}")


if __name__ == "__main__":
    main()
