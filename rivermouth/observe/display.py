"""The live table on a terminal: one row a sink, errors below, log lines above."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from rivermouth.observe import log
from rivermouth.observe.figures import age, brief, duration, plural, printable, short, whole
from rivermouth.observe.health import problem

if TYPE_CHECKING:
    from types import TracebackType

    from rivermouth.observe.observer import Observer
    from rivermouth.observe.state import Phase, SinkStatus

REFRESH = 0.25  # seconds between two views
GAP = 2  # blanks between columns
ERRORS = 4  # at most so many errors below the table, so that they do not push it off the screen

STYLES: dict[Phase, str] = {
    "starting": "dim",
    "running": "green",
    "retrying": "yellow",
    "failed": "bold red",
    "stopped": "dim",
}

# After the sink's name: the heading where there is room, and where there is not.
COLUMNS = (
    ("state", "state"),
    ("epoch", "epoch"),
    ("rows/s", "rows/s"),
    ("rows", "rows"),
    ("lag", "lag"),
    ("epoch time", "took"),
    ("files", "files"),
    ("last commit", "commit"),
    ("dead letters", "dead"),
)


class Display:
    """Shows a pipeline's sinks, four times a second, while the context lasts; the last view stays."""

    def __init__(self, observer: Observer, console: Console | None = None, note: str = "") -> None:
        """`note` stands in the heading, for example the address of the metrics."""
        self.state = observer.state
        self.console = console or Console(stderr=True)
        self.note = note
        self._live = Live(self, console=self.console, auto_refresh=False)
        self._closing = False
        # Rich's own refresh thread and a print may disagree on the height of the last view, and then one
        # erases a line of the other; one at a time they agree.
        self._lock = threading.RLock()  # reentrant: a signal handler may log in the middle of a log line
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._refresh, name="rivermouth-display", daemon=True)
        self._stack = ExitStack()

    def __enter__(self) -> Display:
        self._stack.enter_context(self._live)
        self._stack.enter_context(log.printing_through(self._print))
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=5)
        self._closing = True  # the last view scrolls away like any output: it may exceed the screen
        with self._lock:
            self._stack.close()

    def _refresh(self) -> None:
        while not self._stop.wait(REFRESH):
            with self._lock, suppress(OSError):  # a terminal that went away must not stop the pipeline
                self._live.refresh()

    def _print(self, line: str) -> None:
        # Text, so that brackets are no markup; soft_wrap, so that a copied line is whole.
        with self._lock:
            self.console.print(Text(line), soft_wrap=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.render(options.max_width, console.height)

    def render(self, width: int, height: int) -> RenderableType:
        """The present view, for a terminal of this size."""
        sinks = self.state.sinks()
        errors = [_error(sink, 2 * width) for sink in sinks if sink.phase in ("retrying", "failed")]
        if len(errors) > ERRORS:
            more = Text(f"and {plural(len(errors) - ERRORS, 'more error')}", style="dim")
            errors = [*errors[:ERRORS], more]
        # Heading, column heads, the line of what is left out, and some air.
        room = len(sinks) if self._closing else max(height - 5 - 2 * len(errors), 3)
        shown = sinks if len(sinks) <= room else sorted(sinks, key=lambda s: problem(s) is None)[:room]
        parts: list[RenderableType] = [self._heading(sinks), _table(shown, width)]
        if len(shown) < len(sinks):
            parts.append(Text(f"and {plural(len(sinks) - len(shown), 'more sink')}", style="dim"))
        return Group(*parts, *errors)

    def _heading(self, sinks: list[SinkStatus]) -> Text:
        rate = sum(sink.rows_per_second for sink in sinks)
        parts = [
            self.state.pipeline,
            plural(len(sinks), "sink"),
            f"{short(rate)} rows/s",
            f"{short(sum(sink.written for sink in sinks))} rows",
            f"up {duration(self.state.uptime)}",
            *([self.note] if self.note else []),
        ]
        heading = Text(" · ".join(parts), style="dim", no_wrap=True, overflow="ellipsis")
        heading.stylize("bold not dim", 0, len(self.state.pipeline))
        return heading


def _table(sinks: list[SinkStatus], width: int) -> Table:
    names = max([len(sink.name) for sink in sinks], default=4)
    for wide in (True, False):
        heads = [full if wide else brief for full, brief in COLUMNS]
        rows = [_row(sink, wide) for sink in sinks]
        widths = [max(map(len, column)) for column in zip(heads, *(row[1:] for row in rows), strict=True)]
        left = width - sum(widths) - GAP * len(widths)
        if left >= names:
            break
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
    # Only the name gives way when it is tight: a number that is cut is a wrong number.
    name_width = min(max(names, 4), max(left, 4))
    table.add_column("sink", no_wrap=True, overflow="ellipsis", min_width=name_width, max_width=name_width)
    for head, column_width in zip(heads, widths, strict=True):
        table.add_column(
            head, justify="left" if head == "state" else "right", no_wrap=True, min_width=column_width
        )
    for row in rows:
        table.add_row(*row)
    return table


def _row(sink: SinkStatus, wide: bool) -> list[Text]:
    number = whole if wide else brief
    stuck = sink.phase == "running" and problem(sink) is not None
    ago = age(sink.since_commit)
    none = Text("-", style="dim")
    return [
        Text(sink.name),
        Text("stuck", style="bold yellow") if stuck else Text(sink.phase, style=STYLES[sink.phase]),
        Text(number(sink.epoch)),
        Text(short(sink.rows_per_second)),
        Text(number(sink.written)),
        none if sink.lag is None else Text(number(sink.lag)),
        Text(duration(sink.last_epoch_seconds)) if sink.commits else none,
        Text(number(sink.files)),
        none if sink.last_commit is None else Text(f"{ago} ago" if wide else ago),
        Text(number(sink.dead_letters), style="yellow" if sink.dead_letters else ""),
    ]


def _error(sink: SinkStatus, room: int) -> Text:
    error = sink.last_error
    if error is None:
        return Text(f"{sink.name}: {sink.phase}")
    again = (
        "" if error.retry_at is None else f"; starting again in {age(max(error.retry_at - sink.now, 0.0))}"
    )
    start = f"{sink.name}: {error.code}: "
    message = printable(" ".join(error.message.split()))
    room = max(room - len(start) - len(again) - 10, 20)  # 10: what wrapping at words may lose
    if len(message) > room:
        message = message[: room - 1] + "…"
    return Text(start + message + again, style="yellow" if error.retry_at else "red", overflow="fold")
