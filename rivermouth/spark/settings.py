"""The Spark properties of a session: ours, made for one machine, and then whatever the user sets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_EMBEDDED = re.compile(r"local(?:\[\s*(\*|\d+)\s*(?:,\s*(\d+)\s*)?\])?")

# Plain `local[*]` gives a failed task no second attempt, and a bad record may take a worker down with it.
_TASK_ATTEMPTS = 4

# Workers reached through files cost a tenth less CPU than through TCP; such a path may have 104 characters,
# and Spark names the file with 42 of them.
_LONGEST_SOCKET_FOLDER = 60

_EVERYWHERE = {
    "spark.scheduler.mode": "FAIR",  # a pool a sink, made on demand, all of the same weight
    "spark.python.daemon.module": "rivermouth.spark.worker_daemon",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",  # with the next, see pipeline/batches.py
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 1024 * 1024),
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

_ON_ONE_MACHINE = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.databricks.delta.snapshotPartitions": "1",
    # What the status store remembers of past jobs is never looked at without a UI.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "20",
}


def is_embedded(master: str) -> bool:
    """Whether this master means: inside this machine's own JVM."""
    return _EMBEDDED.fullmatch(master.strip()) is not None


def with_retries(master: str) -> str:
    """`local[*]` as `local[*,4]`; one that names its attempts, or a cluster, as it is."""
    match = _EMBEDDED.fullmatch(master.strip())
    if match is None or match.group(2):
        return master
    return f"local[{match.group(1) or 1},{_TASK_ATTEMPTS}]"


def driver_memory(total: int) -> str:
    """A quarter of the machine for the JVM, from 1 to 4 GiB: the data itself is in the workers."""
    gigabytes = total // 4 // 1024**3
    return f"{min(max(gigabytes, 1), 4)}g"


def properties(
    app_name: str,
    master: str,
    conf: Mapping[str, str],
    jars: Sequence[Path],
    folder: Path,
    java_options: Sequence[str],
    *,
    cores: int,
    memory: int,
) -> dict[str, str]:
    """All properties of a session; `conf` has the last word, and its JVM options come after ours."""
    ours = dict(_EVERYWHERE)
    ours["spark.app.name"] = app_name
    ours["spark.master"] = with_retries(master)
    ours["spark.sql.warehouse.dir"] = (folder / "warehouse").as_uri()
    ours["spark.driver.memory"] = driver_memory(memory)
    if is_embedded(master):
        ours.update(_ON_ONE_MACHINE)
        ours["spark.local.dir"] = str(folder)
        ours["spark.sql.shuffle.partitions"] = str(cores)
        if len(str(folder)) <= _LONGEST_SOCKET_FOLDER:
            ours["spark.python.unix.domain.socket.enabled"] = "true"
            ours["spark.python.unix.domain.socket.dir"] = str(folder)
    else:
        # An embedded session has them on its class path, which spares it a copy.
        ours["spark.jars"] = ",".join(str(path) for path in jars)
    theirs = conf.get("spark.driver.extraJavaOptions", "")
    return {**ours, **conf, "spark.driver.extraJavaOptions": f"{joined(java_options)} {theirs}".strip()}


def joined(java_options: Sequence[str]) -> str:
    """JVM options as one property."""
    return " ".join(_quoted(option) for option in java_options)


def as_file(values: Mapping[str, str]) -> str:
    """Properties in Java's file format: a file, because a command line shows secrets to everybody."""
    return "".join(f"{_escaped(key, True)}={_escaped(value, False)}\n" for key, value in values.items())


def _escaped(text: str, is_key: bool) -> str:
    special = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    if is_key:
        special.update({"=": "\\=", ":": "\\:", " ": "\\ ", "#": "\\#", "!": "\\!"})
    escaped = "".join(special.get(character, character) for character in text)
    return "\\" + escaped if escaped.startswith(" ") else escaped


def _quoted(option: str) -> str:
    """An option as Spark's launcher splits it."""
    if re.fullmatch(r"[\w\-.:=/+,@%]+", option):
        return option
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'
