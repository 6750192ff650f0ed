"""The disk is full or read-only: a clear error, `/ready` red, and after repair it goes on by itself."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from tests.chaos.disk import Disk, mounted
from tests.chaos.river import Here, River
from tests.services.toxiproxy import free_port

pytestmark = pytest.mark.slow


@pytest.fixture
def disk(river: River) -> Iterator[Disk]:
    """The disk on which the pipeline's tables are, and nothing else."""
    river.more["metrics_port"] = free_port()
    with mounted(river.table.parent) as made:
        yield made


def problem(river: River) -> str | None:
    """Why /ready is red; None when it is green."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{river.more['metrics_port']}/ready"):
            return None
    except urllib.error.HTTPError as error:
        return f"{error.code} {json.loads(error.read())['problems']['numbers']}"


def until_red(river: River, here: Here, why: str) -> None:
    """Wait until /ready answers 503 and says why; a sink that starts is red too."""
    red = re.compile(f"503 retrying: .*{why}", re.DOTALL)
    here.until(lambda: red.match(problem(river) or ""), f"a red /ready, for: {why}")


def until_all_is_in(river: River, here: Here) -> None:
    here.until(lambda: river.log.read() == river.stream.produced, "all that was produced")
    here.until(lambda: problem(river) is None, "a green /ready")


def test_a_full_disk_is_told_and_when_there_is_space_it_goes_on(river: River, disk: Disk):
    """Full at once, or so that some of an epoch's files fit and the others, or the commits, do not."""
    with river.here() as here:
        river.stream.produce(100)
        until_all_is_in(river, here)
        for pages in range(6):
            disk.fill(leave=pages)
            river.stream.produce(100)
            until_red(river, here, "No space left on device")
            disk.empty()
            until_all_is_in(river, here)
    river.check()


def test_a_read_only_disk_is_told_and_when_it_can_be_written_it_goes_on(river: River, disk: Disk):
    with river.here() as here:
        river.stream.produce(100)
        until_all_is_in(river, here)
        disk.read_only()
        river.stream.produce(100)
        until_red(river, here, "Read-only file system")
        disk.writable()
        until_all_is_in(river, here)
    river.check()


def test_a_start_on_a_read_only_disk_waits_for_its_repair(river: River, disk: Disk):
    river.stream.produce(100)
    river.finish()
    disk.read_only()
    river.stream.produce(100)
    with river.here() as here:
        until_red(river, here, "Read-only file system")
        disk.writable()
        until_all_is_in(river, here)
    river.check()
