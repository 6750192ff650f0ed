"""The events of the benchmark: 190 bytes of JSON, nine columns, one of them a timestamp."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

DDL = (
    "id BIGINT, customer STRING, product STRING, quantity INT, price DOUBLE, currency STRING, "
    "paid BOOLEAN, country STRING, ts TIMESTAMP"
)


def events(count: int, seed: int = 0) -> Iterator[bytes]:
    """That many events, the same for the same seed."""
    rng = random.Random(seed)
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    products = ["espresso machine", "office chair", "desk lamp", "water kettle", "wall clock"]
    customers = [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(5000)]
    # One text per second is formatted once: making events should not take longer than landing them.
    for n in range(count):
        if n % 1000 == 0:
            moment = (start + timedelta(seconds=n // 1000)).strftime("%Y-%m-%dT%H:%M:%S")
        text = (
            f'{{"id":{n},"customer":"{customers[rng.randrange(5000)]}","product":"{rng.choice(products)}",'
            f'"quantity":{1 + n % 9},"price":{rng.randrange(100, 99_999) / 100},"currency":"EUR",'
            f'"paid":{"true" if n % 7 else "false"},"country":"{("DE", "FR", "NL", "PL")[n % 4]}",'
            f'"ts":"{moment}.{n % 1000:03d}Z"}}'
        )
        yield text.encode()
