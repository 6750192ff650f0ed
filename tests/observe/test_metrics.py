from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from rivermouth.observe.events import (
    CommitFailed,
    CommitRetried,
    LagMeasured,
    SinkFailed,
    SinkStarted,
    SourceWarning,
)
from rivermouth.observe.metrics import Metrics

if TYPE_CHECKING:
    from collections.abc import Callable

    from rivermouth.observe import Observer
    from rivermouth.observe.events import EpochCommitted

    from .conftest import Clock

DOC = Path(__file__).parents[2] / "docs" / "metrics.md"

# The table of metrics and the table of computed metrics in the Rivven connector's document.
RIVVEN = [
    "records_written",
    "records_failed",
    "bytes_written",
    "commits_success",
    "commits_failed",
    "commit_retries",
    "files_created",
    "batches_flushed",
    "commit_latency_us",
    "write_latency_us",
    "batch_size_min",
    "batch_size_max",
    "batch_size_sum",
    "Avg commit latency",
    "Avg write latency",
    "Records/sec",
    "Bytes/sec",
    "Avg batch size",
    "Retry rate",
    "Success rate",
]


def _text(observer: Observer) -> str:
    return Metrics(observer.state).exposition()[0].decode()


def _samples(observer: Observer, sink: str = "orders") -> dict[str, float]:
    """Sample name, with the value of its one more label if it has one, to value."""
    out = {}
    for family in parse(_text(observer)):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("pipeline") == "shop"
            if labels.pop("sink") == sink:
                more = "".join(f"{{{value}}}" for value in labels.values())
                out[sample.name.removeprefix("rivermouth_") + more] = sample.value
    return out


def _everything(observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]) -> None:
    observer.emit(SinkStarted("orders", generation=3, epoch=41, positions=4))
    observer.emit(LagMeasured("orders", 1000))
    clock.go(8)
    observer.emit(CommitRetried("orders", 1, "conflict"))
    observer.emit(committed(epoch=42, commit_seconds=0.004, write_seconds=0.5))
    observer.emit(
        committed(epoch=43, read=300, written=290, version=9, commit_seconds=0.1, write_seconds=1.5)
    )
    observer.emit(CommitFailed("orders", "DeltaCommitFailed"))
    observer.emit(CommitFailed("orders", "DeltaCommitFailed"))
    observer.emit(SourceWarning("orders", "TopicMissing", "no topic orders yet"))
    clock.go(2)


def test_every_number_is_exported(
    observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    _everything(observer, clock, committed)
    got = _samples(observer)
    expected = {
        "records_read_total": 400,
        "records_written_total": 380,
        "records_failed_total": 14,
        "records_filtered_total": 6,
        "dead_letters_total{InvalidJson}": 8,
        "dead_letters_total{WrongType}": 4,
        "records_dropped_total{InvalidJson}": 0,
        "records_dropped_total{WrongType}": 2,
        "bytes_written_total": 10_000,
        "files_created_total": 4,
        "commits_success_total": 2,
        "commits_failed_total": 2,
        "commit_retries_total": 1,
        "batches_flushed_total": 2,
        "batch_size_sum_total": 400,
        "batch_size_min": 100,
        "batch_size_max": 300,
        "batch_size_avg": 200,
        "commit_latency_avg_ms": 52,
        "write_latency_avg_ms": 1000,
        "records_per_second": 38,
        "bytes_per_second": 1000,
        "commit_retry_rate": 0.25,
        "commit_success_rate": 0.5,
        "lag_records": 600,
        "seconds_since_last_commit": 2,
        "epoch": 43,
        "generation": 3,
        "table_version": 9,
        "sink_up": 1,
        "sink_state{running}": 1,
        "sink_state{starting}": 0,
        "source_warnings_total{TopicMissing}": 1,
    }
    assert {name: got.get(name) for name in expected} == pytest.approx(expected)


def test_latencies_are_cumulative_histograms(
    observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    _everything(observer, clock, committed)
    got = _samples(observer)
    buckets = {"0.005": 1, "0.01": 1, "0.05": 1, "0.1": 2, "0.25": 2, "30.0": 2, "+Inf": 2}
    assert {le: got[f"commit_latency_seconds_bucket{{{le}}}"] for le in buckets} == buckets
    assert got["commit_latency_seconds_count"] == 2
    assert got["commit_latency_seconds_sum"] == pytest.approx(0.104)
    assert got["write_latency_seconds_sum"] == pytest.approx(2.0)
    assert got["epoch_latency_seconds_bucket{0.25}"] == 0
    assert got["epoch_latency_seconds_bucket{0.5}"] == 2


def test_a_latency_beyond_the_last_bucket_is_counted(
    observer: Observer, committed: Callable[..., EpochCommitted]
) -> None:
    observer.emit(committed(commit_seconds=31))
    got = _samples(observer)
    assert got["commit_latency_seconds_bucket{30.0}"] == 0
    assert got["commit_latency_seconds_bucket{+Inf}"] == 1


def test_everything_is_there_while_idle(
    observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    idle = {sink: _samples(observer, sink) for sink in ("orders", "clicks")}
    assert idle["orders"] == idle["clicks"]
    nonzero = {name for name, value in idle["orders"].items() if value}
    assert nonzero == {"commit_success_rate", "sink_state{starting}"}
    _everything(observer, clock, committed)
    # Only these come later: the smallest and largest of nothing, and codes nobody can know before.
    later = set(_samples(observer)) - set(idle["orders"])
    assert later == {"batch_size_min", "batch_size_max", "source_warnings_total{TopicMissing}"}


def test_help_and_type_stand_before_every_metric_even_without_samples(observer: Observer) -> None:
    text = _text(observer)
    families = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    assert families == set(re.findall(r"^# HELP (\S+) \S", text, re.M))
    assert "rivermouth_batch_size_min" in families
    sampled = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"^(\w+)\{", text, re.M)}
    assert sampled <= families
    assert not [name for name in families if name.endswith("_created")]


def test_a_failed_sink_is_not_up(observer: Observer) -> None:
    observer.emit(SinkStarted("orders", 1, 0, 1))
    assert _samples(observer)["sink_up"] == 1
    observer.emit(SinkFailed("orders", "Fenced", "another instance took over"))
    got = _samples(observer)
    assert (got["sink_up"], got["sink_state{failed}"], got["sink_state{running}"]) == (0, 1, 0)
    assert got["sink_errors_total{Fenced}"] == 1


def test_openmetrics_is_given_to_who_asks_for_it(
    observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    _everything(observer, clock, committed)
    body, content_type = Metrics(observer.state).exposition("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    names = {family.name for family in parse_openmetrics(body.decode())}
    assert "rivermouth_records_written" in names


def test_the_document_and_the_exposition_agree(
    observer: Observer, clock: Clock, committed: Callable[..., EpochCommitted]
) -> None:
    _everything(observer, clock, committed)
    observer.emit(SinkFailed("orders", "Fenced", "another instance took over"))
    text = _text(observer)
    exported = {}
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    for family in parse(text):
        for sample in family.samples:
            name = sample.name if sample.name in types else re.sub(r"_(bucket|sum|count)$", "", sample.name)
            exported.setdefault(name, set()).update(set(sample.labels) - {"pipeline", "sink"})
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in DOC.read_text().splitlines()
        if line.startswith("| `rivermouth_")
    ]
    documented = {row[0].strip("`"): (row[1], set(re.findall(r"`(\w+)`", row[2]))) for row in rows}
    assert documented == {name: (kind, exported[name]) for name, kind in types.items()}
    assert sorted(row[4].strip("`") for row in rows if row[4]) == sorted(RIVVEN)
    # The words of the page are those of the HELP lines.
    helps = dict(re.findall(r"^# HELP (\S+) (.+)$", text, re.M))
    for row in rows:
        said, help_text = row[3].replace("`", ""), helps[row[0].strip("`")]
        assert said.lower().startswith(help_text.split(";")[0].lower().split(",")[0]), row[0]
