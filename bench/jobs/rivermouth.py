"""rivermouth itself, from a config file. Usage: SERVERS TOPIC TABLE PASSES EPOCH_SIZE EPOCHS

Lands the topic once a pass, each time into a table of its own (TABLE-0, TABLE-1, ...): the first pass is on
a cold engine. EPOCHS ends a pass after so many epochs; 0 drains the topic.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import yaml

from bench.events import DDL
from rivermouth import sources
from rivermouth.config.load import load
from rivermouth.observe.events import EpochCommitted
from rivermouth.observe.observer import Observer
from rivermouth.pipeline.run import run
from rivermouth.spark import session


def main(servers: str, topic: str, table: str, passes: int, epoch_size: int, epochs: int) -> None:
    spark = session.start("bench")
    told = [land(spark, servers, topic, f"{table}-{n}", epoch_size, epochs) for n in range(passes)]
    session.stop(spark)
    print(json.dumps(told))


def land(
    spark: Any, servers: str, topic: str, table: str, epoch_size: int, epochs: int
) -> dict[str, float | list[float]]:
    file = Path(table + ".yaml")
    kafka = {"bootstrap_servers": servers, "topics": [topic]}
    keys = {
        "table_uri": table,
        "schema": DDL,
        "batch_size": min(epoch_size, 10_000),
        "max_batch_size": epoch_size,
    }
    sink = {"connector": "delta-lake", "config": keys}
    tree = {"sources": {"bus": {"connector": "kafka", "config": kafka}}, "sinks": {"events": sink}}
    file.write_text(yaml.safe_dump({"pipeline": "bench", **tree}))
    commits: list[float] = []
    stop = threading.Event()

    class Watch:
        """Notes the time of each commit."""

        def __init__(self, observer: Observer, _address: str) -> None:
            observer.handlers = (self.note,)

        def note(self, event: object) -> None:
            if isinstance(event, EpochCommitted):
                commits.append(time.time())
                if epochs and len(commits) >= epochs:
                    stop.set()

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_error: object) -> None:
            pass

    start = time.time()
    run(load(file, sources.models()), once=not epochs, watch=Watch, stop=stop, spark=spark)
    return {"start": start, "commits": commits}


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:7]))
