"""A stream of numbered events, some of them bad, and a memory of what was produced."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, Producer

from tests.services.kafka import Broker

_STEP = 20  # records a step while the stream flows ...
_PAUSE = 0.1  # ... and the seconds between two steps


class Stream:
    """Numbers 0, 1, 2, ... in a topic: {"n": 17}; every seventh is bad, its number in quotation marks.

    The number is also the record's key, so that a dead letter can be told from another.
    """

    def __init__(self, broker: Broker, partitions: int = 2, first: int = 0) -> None:
        self.broker = broker
        self.topic = broker.create_topic("numbers", partitions)
        self.partitions = partitions
        self.good: set[int] = set()
        self.bad: set[int] = set()
        self._next = first
        self._lock = threading.Lock()
        self._producer = self._connect()

    def _connect(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "log_level": 0,
                "enable.idempotence": True,
                "queue.buffering.max.messages": 1_000_000,
            }
        )

    @property
    def produced(self) -> int:
        return len(self.good) + len(self.bad)

    def grow(self, partitions: int) -> None:
        """Add partitions to the topic and produce to them too."""
        self.broker.add_partitions(self.topic, partitions)
        self.partitions = partitions
        self._producer = self._connect()  # the old one would learn of them in its own time

    def produce(self, count: int) -> None:
        """Produce the next events; all are acknowledged when this returns."""
        with self._lock:
            numbers = range(self._next, self._next + count)
            bad = {n for n in numbers if n % 7 == 3}
            self.send({n: b'{"n": "%d"}' % n if n in bad else b'{"n": %d}' % n for n in numbers})
            self.good |= set(numbers) - bad
            self.bad |= bad
            self._next += count

    def send(self, values: dict[int, bytes | None]) -> None:
        """Produce values of one's own under their numbers; whether they are good is the caller's to know."""
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: object) -> None:
            if error is not None:
                failures.append(error)

        for n, value in values.items():
            place = n % self.partitions
            self._producer.produce(self.topic, value, str(n).encode(), partition=place, on_delivery=delivered)
            self._producer.poll(0)
        left = self._producer.flush(120)
        assert not failures and not left, f"not all was produced: {failures[:1]}, {left} left"

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """Go on producing, a few events at a time, for as long as the block runs."""
        stop = threading.Event()
        failures: list[BaseException] = []

        def flow() -> None:
            try:
                while not stop.wait(_PAUSE):
                    self.produce(_STEP)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=flow, name="stream")
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        assert not failures, failures
