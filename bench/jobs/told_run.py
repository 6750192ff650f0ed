"""`rivermouth run FILE`, that also prints when Spark was up. Usage: FILE"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from bench.stopwatch import replaced
from rivermouth.cli import app
from rivermouth.spark import session


def main(file: str) -> None:
    start = session.start

    def told(*arguments: Any, **options: Any) -> Any:
        spark = start(*arguments, **options)
        print(json.dumps({"spark": time.time()}), flush=True)
        return spark

    with replaced(session, "start", told):
        app(["run", file])


if __name__ == "__main__":
    main(sys.argv[1])
