"""A folder that looks like the root of the repository, and the brokers the documents speak of."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import EXAMPLES
from tests.services.kafka import Broker

_TS = "2026-01-01T00:00:00Z"
_SHOP = {
    "orders": [{"order_id": f"o-{n}", "product": "lamp", "amount": n, "ts": _TS} for n in range(50)],
    "payments": [{"payment_id": f"p-{n}", "order_id": f"o-{n}", "paid": True, "ts": _TS} for n in range(50)],
    "clicks": [{"session": f"s-{n}", "page": "/home", "ts": _TS} for n in range(50)],
}


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the documents' commands are typed: a copy of the examples, with a gzipped file among the data."""
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    late = {"order_id": "o-7", "amount": 1, "items": [], "ts": "2026-01-03T00:00:00Z"}
    packed = tmp_path / "examples" / "data" / "orders" / "2026-01-03.ndjson.gz"
    packed.write_bytes(gzip.compress(json.dumps(late).encode() + b"\n"))
    for file in (tmp_path / "examples" / "data").rglob("*.ndjson*"):
        os.utime(file, (time.time() - 60, time.time() - 60))  # it rests
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def shop(kafka: Broker) -> Iterator[str]:
    """A broker that has the topics of a web shop, by the names the documents use; its address."""
    for topic, events in _SHOP.items():
        kafka.create_named_topic(topic, partitions=2)
        kafka.produce(topic, [json.dumps(event).encode() for event in events])
    yield kafka.bootstrap_servers
    for topic in _SHOP:
        kafka.delete_topic(topic)
