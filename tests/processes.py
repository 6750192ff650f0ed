"""What tests of processes share: waiting for something observed, and finding what a process has started."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psutil

PATIENCE = 120.0


def descendants(pid: int) -> list[psutil.Process]:
    """Every process below this one."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def wait_for(condition: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """Wait for something observed; fails with what was waited for."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError(f"waited in vain for {what}")
