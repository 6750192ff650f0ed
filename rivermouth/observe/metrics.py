"""The metrics, each declared once: name, kind, help and where its value comes from.

docs/metrics.md lists them; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from rivermouth.observe.health import problem
from rivermouth.observe.state import PHASES, Latency, SinkStatus, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

PREFIX = "rivermouth_"


@dataclass(frozen=True)
class Number:
    """A counter or gauge with one value a sink; None: no sample yet."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    value: Callable[[SinkStatus], float | None]


@dataclass(frozen=True)
class Labelled:
    """A counter or gauge with a value for each value of one more label."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    label: str
    values: Callable[[SinkStatus], Mapping[str, int]]


@dataclass(frozen=True)
class Histogram:
    """Durations in seconds, in buckets."""

    name: str
    help: str
    value: Callable[[SinkStatus], Latency]


def _ratio(part: float, whole: float, otherwise: float = 0.0) -> float:
    return part / whole if whole else otherwise


METRICS: tuple[Number | Labelled | Histogram, ...] = (
    Number("records_read", "counter", "Records read from the source in committed epochs", lambda s: s.read),
    Number("records_written", "counter", "Events committed to the table", lambda s: s.written),
    Number("records_failed", "counter", "Bad records: dead letters and dropped ones", lambda s: s.failed),
    Number("records_filtered", "counter", "Events filtered out by the sink's SQL", lambda s: s.filtered),
    Labelled("dead_letters", "counter", "Dead letters by reason", "reason", lambda s: s.dead),
    Labelled(
        "records_dropped",
        "counter",
        "Bad records dropped (on_bad_record: drop) by reason",
        "reason",
        lambda s: s.dropped,
    ),
    Number(
        "gaps", "counter", "Gap rows: losses of the source that the sink went on behind", lambda s: s.gaps
    ),
    Number("offsets_lost", "counter", "Offsets in those gaps, where their number is known", lambda s: s.lost),
    Number("bytes_written", "counter", "Bytes of the Parquet files committed", lambda s: s.bytes),
    Number("files_created", "counter", "Parquet files committed", lambda s: s.files),
    Number("commits_success", "counter", "Epochs committed to the Delta log", lambda s: s.commits),
    Number("commits_failed", "counter", "Commits that failed for good", lambda s: s.commits_failed),
    Number(
        "commit_retries",
        "counter",
        "Commit attempts repeated after a conflict",
        lambda s: s.commit_retries,
    ),
    Number("batches_flushed", "counter", "Batches flushed; a batch is an epoch", lambda s: s.commits),
    Number("batch_size_sum", "counter", "Sum of all batch sizes, in records", lambda s: s.batch_sum),
    Number(
        "batch_size_min",
        "gauge",
        "Smallest batch, in records; absent before the first",
        lambda s: s.batch_min,
    ),
    Number(
        "batch_size_max",
        "gauge",
        "Largest batch, in records; absent before the first",
        lambda s: s.batch_max,
    ),
    Histogram(
        "commit_latency_seconds", "Time to commit an epoch, retries included", lambda s: s.commit_latency
    ),
    Histogram("write_latency_seconds", "Time to read, decode and write an epoch", lambda s: s.write_latency),
    Histogram("epoch_latency_seconds", "Time of a whole epoch", lambda s: s.epoch_latency),
    Number(
        "commit_latency_avg_ms",
        "gauge",
        "Mean commit latency in milliseconds",
        lambda s: s.commit_latency.average_ms,
    ),
    Number(
        "write_latency_avg_ms",
        "gauge",
        "Mean write latency in milliseconds",
        lambda s: s.write_latency.average_ms,
    ),
    Number(
        "records_per_second",
        "gauge",
        "Events committed per second since the process started",
        lambda s: _ratio(s.written, s.elapsed),
    ),
    Number(
        "bytes_per_second",
        "gauge",
        "Bytes committed per second since the process started",
        lambda s: _ratio(s.bytes, s.elapsed),
    ),
    Number(
        "batch_size_avg", "gauge", "Mean batch size, in records", lambda s: _ratio(s.batch_sum, s.commits)
    ),
    Number(
        "commit_retry_rate",
        "gauge",
        "Commit retries per finished commit",
        lambda s: _ratio(s.commit_retries, s.commits + s.commits_failed),
    ),
    Number(
        "commit_success_rate",
        "gauge",
        "Share of finished commits that succeeded; 1 before the first",
        lambda s: _ratio(s.commits, s.commits + s.commits_failed, otherwise=1.0),
    ),
    Number("lag_records", "gauge", "Records that wait in the source; 0 until measured", lambda s: s.lag or 0),
    Number(
        "seconds_since_last_commit",
        "gauge",
        "Seconds since the last commit, or since the process started",
        lambda s: s.since_commit,
    ),
    Number("epoch", "gauge", "The last committed epoch", lambda s: s.epoch),
    Number(
        "generation",
        "gauge",
        "The sink's generation: grows by one with each start",
        lambda s: s.generation,
    ),
    Number("table_version", "gauge", "The table's version at the last commit", lambda s: s.version),
    Number(
        "sink_up",
        "gauge",
        "1 when the sink runs and is not stuck",
        lambda s: float(problem(s) is None),
    ),
    Labelled(
        "sink_state",
        "gauge",
        "1 for the state the sink is in, 0 for the others",
        "state",
        lambda s: {phase: int(phase == s.phase) for phase in PHASES},
    ),
    Labelled(
        "sink_errors",
        "counter",
        "Errors that stopped or restarted the sink, by code",
        "code",
        lambda s: s.errors,
    ),
    Labelled("source_warnings", "counter", "Warnings of the source, by code", "code", lambda s: s.warnings),
)


class Metrics(Collector):
    """A state's metrics in Prometheus' formats, in a registry of their own."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def describe(self) -> list[Metric]:
        """Nothing up front, so that registering does not read the state."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Every metric of every sink, all as of one moment."""
        sinks = self.state.sinks()
        for metric in METRICS:
            yield _family(metric, self.state.pipeline, sinks)

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """The text a scrape gets, and its content type, for the `Accept` header of the request."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type


def _family(metric: Number | Labelled | Histogram, pipeline: str, sinks: list[SinkStatus]) -> Metric:
    name, labels = PREFIX + metric.name, ["pipeline", "sink"]
    if isinstance(metric, Histogram):
        histogram = HistogramMetricFamily(name, metric.help, labels=labels)
        for status in sinks:
            latency = metric.value(status)
            histogram.add_metric([pipeline, status.name], latency.cumulative(), latency.seconds)
        return histogram
    if isinstance(metric, Labelled):
        labels.append(metric.label)
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(name, metric.help, labels=labels)
    for status in sinks:
        own = [pipeline, status.name]
        if isinstance(metric, Labelled):
            for key, count in metric.values(status).items():
                family.add_metric([*own, key], count)
        elif (number := metric.value(status)) is not None:
            family.add_metric(own, number)
    return family
