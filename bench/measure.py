"""Runs a job as a process and measures it from outside: wall time, CPU and memory of its whole family."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from rivermouth.spark import java

ROOT = Path(__file__).parent.parent


@dataclass
class Measured:
    """What a job said of itself, and what was seen of it."""

    said: list[dict[str, Any]]  # a dict for each pass
    launched: float  # on the clock of time.time(), like the times a job says
    cpu_seconds: float
    peak_bytes: int
    cpu_at: list[tuple[float, float]] = field(default_factory=list)

    def cpu_between(self, start: float, end: float) -> float:
        """CPU seconds of the family from one moment to another."""
        return self._cpu(end) - self._cpu(start)

    def _cpu(self, moment: float) -> float:
        return max((cpu for at, cpu in self.cpu_at if at <= moment), default=0.0)


def measure(module: str, *arguments: str) -> Measured:
    """Run `python -m module ...`; the last line of its output is JSON."""
    launched = time.time()
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    family = psutil.Process(process.pid)
    cpu: dict[int, float] = {}
    history: list[tuple[float, float]] = []
    peak = 0
    while process.poll() is None:
        peak = max(peak, _sample(family, cpu))
        history.append((time.time(), sum(cpu.values())))
        time.sleep(0.1)
    out = process.stdout.read() if process.stdout else ""
    if process.returncode:
        raise SystemExit(f"{module} failed with exit code {process.returncode}")
    return Measured(json.loads(out.splitlines()[-1]), launched, sum(cpu.values()), peak, history)


def _sample(family: psutil.Process, cpu: dict[int, float]) -> int:
    """Take the CPU time so far of each process of a family, and their memory now."""
    memory = 0
    try:
        members = [family, *family.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for member in members:
        try:
            times = member.cpu_times()
            cpu[member.pid] = times.user + times.system
            # Not PSS: reading it stops the process for tens of milliseconds, and this is a benchmark.
            memory += member.memory_info().rss
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return memory


def machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    versions = f"Python {platform.python_version()}, Java {java.find().version}"
    return f"{psutil.cpu_count()} cores, {memory:.0f} GiB, {versions}"
