"""A source of synthetic events, for demos, tests and benchmarks: made inside Spark, the same each time.

It plays a web shop. Record n of a topic is a pure function of the seed, the topic and n, so that a
range can be read again, anywhere, and is the same to the byte.
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, field_validator

from rivermouth.config.model import Model
from rivermouth.config.values import Integer, Number
from rivermouth.records import Bounds, Offsets, Partition
from rivermouth.sources.base import RecordsPerOffset, Scope, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rivermouth.spark.engine import Engine

# One record's value per topic, as Spark SQL over n (its number), r (a hash of it) and ts (its time).
_TIME = "date_format(ts, \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")"


def _pick(*words: str) -> str:
    """One of some words, by the hash."""
    listed = ", ".join(f"'{word}'" for word in words)
    return f"element_at(array({listed}), 1 + cast(pmod(r, {len(words)}) as int))"


_VALUES = {
    "orders": f"""to_json(named_struct(
        'order_id', concat('o-', lpad(n, 9, '0')),
        'customer', concat('c-', pmod(r, 5000)),
        'product', {_pick("kettle", "lamp", "chair", "book", "rug", "mug", "clock")},
        'quantity', 1 + pmod(shiftright(r, 8), 5),
        'amount', round(1 + pmod(shiftright(r, 16), 50000) / 100, 2),
        'ts', {_TIME}))""",
    "payments": f"""to_json(named_struct(
        'payment_id', concat('p-', lpad(n, 9, '0')),
        'order_id', concat('o-', lpad(n, 9, '0')),
        'method', {_pick("card", "transfer", "invoice", "cash")},
        'amount', round(1 + pmod(shiftright(r, 16), 50000) / 100, 2),
        'paid', pmod(shiftright(r, 9), 10) < 9,
        'ts', {_TIME}))""",
    "clicks": f"""to_json(named_struct(
        'session', concat('s-', hex(pmod(shiftright(r, 5), 1000000))),
        'page', concat('/', {_pick("home", "search", "product", "basket", "pay")}),
        'duration_ms', pmod(shiftright(r, 20), 60000),
        'agent', named_struct('mobile', pmod(shiftright(r, 3), 2) = 0, 'language', {_pick("en", "de", "fr")}),
        'ts', {_TIME}))""",
    "numbers": f"to_json(named_struct('n', n, 'ts', {_TIME}))",
}

# The ways in which a record can be broken: what producers really do.
_BROKEN = """case cast(pmod(shiftright(r, 40), 6) as int)
    when 0 then encode(left(value, cast(length(value) / 2 as int)), 'UTF-8')
    when 1 then encode(concat('[', value, ']'), 'UTF-8')
    when 2 then encode(regexp_replace(value, '"ts":"[^"]*"', '"ts":"yesterday"'), 'UTF-8')
    when 3 then encode(regexp_replace(value, '^\\\\{"[a-z_]+":("[^"]*"|[0-9]+),', '{'), 'UTF-8')
    when 4 then concat(encode(value, 'UTF-8'), unhex('FFFE'))
    else null end"""


class GeneratorConfig(Model):
    """Synthetic events of a web shop."""

    topics: list[str] = Field(
        default=["orders", "payments", "clicks"],
        min_length=1,
        description=f"Which topics to play, of: {', '.join(_VALUES)}.",
    )
    rate: Number | None = Field(
        default=None,
        ge=0.001,
        le=1e9,
        description="Records a second and topic; left out: as fast as they are taken.",
    )
    count: Integer | None = Field(
        default=None,
        ge=0,
        le=10**15,
        description="Records a topic in all; left out: no end with a rate, a million without.",
    )
    partitions: Integer = Field(default=1, ge=1, le=1000, description="Partitions a topic.")
    broken: Number = Field(default=0.0, ge=0, le=1, description="The share of records that are broken.")
    seed: Integer = Field(default=0, ge=-(2**62), le=2**62, description="Another seed gives other events.")
    start_time: datetime = Field(
        default=datetime(2026, 1, 1, tzinfo=timezone.utc), description="The time of the first event."
    )

    @field_validator("topics")
    @classmethod
    def _known(cls, topics: list[str]) -> list[str]:
        for topic in topics:
            if topic not in _VALUES:
                raise ValueError(f"the generator has no topic {topic!r}; it has {', '.join(_VALUES)}")
        if len(set(topics)) < len(topics):
            raise ValueError("a topic is named twice")
        return topics

    @field_validator("start_time")
    @classmethod
    def _in_utc(cls, moment: datetime) -> datetime:
        return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


class Generator(Source):
    """Plays a web shop."""

    connector: ClassVar[str] = "generator"
    config_model: ClassVar[type[Model]] = GeneratorConfig
    records_per_offset: ClassVar[RecordsPerOffset] = "one"

    # Without a rate and without a count, this many records are there per topic.
    _DEFAULT_COUNT = 1_000_000

    def __init__(self, config: GeneratorConfig, scope: Scope, engine: Engine) -> None:
        super().__init__(config, scope, engine)
        self._began: float | None = None
        self._base: Offsets = {}

    def _partitions(self) -> list[Partition]:
        topics = [t for t in self.config.topics if self.scope.takes(t)]
        return [Partition(t, number) for t in topics for number in range(self.config.partitions)]

    def resolve(self, known: Offsets) -> Offsets:
        return {p: known.get(p, 0) for p in self._partitions()}

    def bounds(self, position: Offsets) -> dict[Partition, Bounds]:
        """With a rate, the head moves on from where the reader began, as time passes."""
        now = time.monotonic()
        if self._began is None:
            self._began = now - 1  # the records of the second just passed are there already
        heads = {}
        for partition in self._partitions():
            here = position.get(partition, 0)
            base = self._base.setdefault(partition, here)
            limit = self._limit(partition)
            if self.config.rate is None:
                head = self._DEFAULT_COUNT if limit is None else limit
            else:
                head = base + int((now - self._began) * self.config.rate / self.config.partitions)
                head = head if limit is None else min(head, limit)
            # A smaller count than the last run's is no reason to go back.
            heads[partition] = Bounds(0, max(head, here))
        return heads

    def _limit(self, partition: Partition) -> int | None:
        if self.config.count is None:
            return None
        share, rest = divmod(self.config.count, self.config.partitions)
        return int(share + (1 if partition.number < rest else 0))

    def read(self, start: Offsets, end: Offsets) -> DataFrame:
        parts = [self._slice(p, start[p], end[p]) for p in end if end[p] > start[p]]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionAll(part)
        return whole

    def _slice(self, partition: Partition, start: int, end: int) -> DataFrame:
        from pyspark.sql import functions as f

        c = self.config
        tasks = max(1, min(self.spark.sparkContext.defaultParallelism, (end - start) // 20_000))
        # Partition p has the numbers p, p + partitions, ...: each number stands in one of them.
        microseconds = 1e6 / (c.rate or 1000)
        begin = int(c.start_time.timestamp() * 1e6)
        broken: Any = f.expr(f"pmod(shiftright(r, 24), 1000000) < {round(c.broken * 1e6)}")
        return (
            self.spark.range(start, end, 1, tasks)
            .select(
                f.col("id").alias("offset"),
                f.expr(f"id * {c.partitions} + {partition.number}").alias("n"),
            )
            .select(
                "offset",
                "n",
                f.expr(f"xxhash64({c.seed}L, '{partition.topic}', n)").alias("r"),
                f.expr(f"timestamp_micros({begin} + cast(n * {microseconds} as bigint))").alias("ts"),
            )
            .select("*", f.expr(_VALUES[partition.topic]).alias("value"))
            .select(
                f.expr("encode(cast(n as string), 'UTF-8')").alias("key"),
                f.when(broken, f.expr(_BROKEN)).otherwise(f.expr("encode(value, 'UTF-8')")).alias("value"),
                f.lit(partition.topic).alias("topic"),
                f.lit(partition.number).cast("int").alias("partition"),
                "offset",
                f.col("ts").alias("timestamp"),
                f.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
            )
        )
