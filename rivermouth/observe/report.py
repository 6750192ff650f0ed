"""Progress where there is no terminal: one quiet line per sink and minute."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rivermouth.observe.events import Progress

if TYPE_CHECKING:
    from types import TracebackType

    from rivermouth.observe.observer import Observer


class Reporter:
    """Tells the progress of every sink that still works, once an interval, from a thread of its own."""

    def __init__(self, observer: Observer, interval: float = 60.0) -> None:
        self.observer = observer
        self.interval = interval
        self._last: dict[str, int] = {}
        self._last_time = observer.state.clock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rivermouth-report", daemon=True)

    def report(self) -> None:
        """Tell the progress since the last call."""
        state = self.observer.state
        sinks, now = state.sinks(), state.clock()
        elapsed = max(now - self._last_time, 0.001)
        for sink in sinks:
            rows = sink.written - self._last.get(sink.name, 0)
            self._last[sink.name] = sink.written
            if sink.phase in ("failed", "stopped"):  # said once, when it happened
                continue
            self.observer.emit(
                Progress(
                    sink.name,
                    phase=sink.phase,
                    epoch=sink.epoch,
                    rows_per_second=round(rows / elapsed, 3),
                    written=sink.written,
                    lag=sink.lag,
                    seconds_since_last_commit=None
                    if sink.last_commit is None
                    else round(sink.since_commit, 3),
                    dead_letters=sink.dead_letters,
                )
            )
        self._last_time = now

    def _run(self) -> None:
        while not self._stop.wait(self.interval):
            self.report()

    def __enter__(self) -> Reporter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=5)
