"""`make bench`: the comparison with others, or with BENCH_ARGS=protocol what exactly-once costs."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from duckdb_extensions import import_extension

from bench import comparison, protocol
from tests.services.kafka import Broker


def main() -> None:
    parser = argparse.ArgumentParser(prog="make bench BENCH_ARGS=...")
    parser.add_argument("part", nargs="?", choices=("comparison", "protocol"), default="comparison")
    parser.add_argument("--small", action="store_true", help="protocol: a try-out, in a minute or two")
    parser.add_argument("--events", type=int, default=2_000_000, help="comparison: events of the topic")
    parser.add_argument("--epochs", type=int, default=60, help="comparison: how many epochs of 1,000 records")
    parser.add_argument(
        "--rounds", type=int, default=3, help="comparison: how often each job is measured; the median counts"
    )
    options = parser.parse_args()
    import_extension("delta")
    with tempfile.TemporaryDirectory(prefix="rivermouth-bench-") as folder:
        work = Path(folder)
        (work / "kafka").mkdir()
        with Broker(work / "kafka", benchmark=True) as broker:
            if options.part == "protocol":
                protocol.run(broker, work, protocol.SMALL if options.small else protocol.WHOLE)
            else:
                comparison.run(broker, work, options.events, options.epochs, options.rounds)


if __name__ == "__main__":
    main()
