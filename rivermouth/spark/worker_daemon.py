"""The process Spark forks its Python workers from, with everything imported once before the fork.

Spark calls `importlib.invalidate_caches()` before every task, also in a reused worker. That reads the
directory of every archive on `sys.path` again, about 100 ms a task, though nothing is imported from them.
"""

from __future__ import annotations

import gc
import importlib
import sys
import zipimport

# What a task of rivermouth uses; without these each new worker would import them by itself.
_PRELOADED = (
    "pandas",
    "pyarrow",
    "pyarrow.compute",
    "pyarrow.json",
    "pyarrow.parquet",
    "msgspec",
    "pyspark.worker",
    "pyspark.sql.pandas.serializers",
    "rivermouth.formats",
    "rivermouth.delta.files",
)


def _drop_archives() -> None:
    """Forget the archives on `sys.path`; what a worker needs is installed as plain files."""
    sys.path[:] = [entry for entry in sys.path if not entry.endswith((".zip", ".jar"))]
    for entry, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[entry]


def main() -> None:
    """Prepare, then serve Spark's requests for workers until it closes our stdin."""
    _drop_archives()
    for name in _PRELOADED:
        importlib.import_module(name)

    import pyarrow

    # Spark runs a task a core. Set before the fork, it also keeps Arrow from starting threads there,
    # which a forked worker would not have.
    pyarrow.set_cpu_count(1)
    pyarrow.set_io_thread_count(1)

    from pyspark.daemon import manager

    gc.collect()
    gc.freeze()  # a collection in a worker then leaves the shared pages alone
    manager()


if __name__ == "__main__":
    main()
