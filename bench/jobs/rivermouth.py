"""rivermouth itself, from a config file. Usage: SERVERS TOPIC TABLE EPOCH_SIZE EPOCHS (0: until drained)"""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import yaml

from bench.events import DDL
from rivermouth import sources
from rivermouth.config.load import load
from rivermouth.observe.events import EpochCommitted
from rivermouth.pipeline.run import run


def main(servers: str, topic: str, table: str, epoch_size: int, epochs: int) -> None:
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

    commits: list[tuple[float, EpochCommitted]] = []
    stop = threading.Event()
    times: dict[str, float] = {}

    @contextmanager
    def watch(observer, _address):
        times["ready"] = time.time()

        def note(event):
            if isinstance(event, EpochCommitted):
                commits.append((time.time(), event))
                if epochs and len(commits) >= epochs:
                    stop.set()

        observer.handlers = (note,)
        yield

    run(load(file, sources.models()), once=not epochs, watch=watch, stop=stop)
    print(
        json.dumps(
            {
                "ready": times["ready"],
                "commits": [at for at, _ in commits],
                "rows": sum(event.written for _, event in commits),
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5]))
