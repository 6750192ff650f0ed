"""What this machine has to give: cores and memory, also inside a container."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def cores() -> int:
    """The processors this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def memory() -> int:
    """The memory in bytes this process may use: the machine's, or its container's if that is less."""
    total: int = psutil.virtual_memory().total
    for path in _CGROUP_LIMITS:
        try:
            total = min(total, int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such limit, or the word "max"
            continue
    return total
