"""The broker dies, is out of reach, grows partitions, or holds transactions that never end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.chaos.river import River
from tests.chaos.stream import Stream
from tests.services.kafka import Broker
from tests.services.toxiproxy import Toxiproxy, free_port

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def proxy() -> Iterator[Toxiproxy]:
    with Toxiproxy() as started:
        yield started


@pytest.fixture(scope="module")
def broker(proxy: Toxiproxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of this module's own, to be ill-treated, reached directly and through a proxy."""
    port = free_port()
    folder: Path = tmp_path_factory.mktemp("broker")
    with Broker(folder, proxy_port=port) as started:
        proxy.open("kafka", port, started.behind_proxy)
        yield started


@pytest.fixture
def stream(broker: Broker) -> Stream:
    return Stream(broker)


@pytest.fixture
def river(make_river: Callable[..., River], stream: Stream) -> River:
    """A pipeline that soon says that its source does not answer."""
    made = make_river(stream)
    made.source["options"] = {"default.api.timeout.ms": 4000, "request.timeout.ms": 3000}
    return made


def test_a_broker_that_is_killed_and_restarted_is_read_on(river: River, broker: Broker):
    with river.here() as here:
        river.stream.produce(100)
        here.until(lambda: river.log.read() == 100, "the first events")
        broker.kill()
        here.until(lambda: here.sink.phase == "retrying", "a sink that says that it waits")
        assert here.sink.last_error.code == "SourceUnavailable"
        broker.start()
        river.stream.produce(100)
        here.until(lambda: river.log.read() == 200, "the events after the restart")
    river.check()


@pytest.mark.parametrize("how", ["cut", "swallow"])
def test_a_broker_that_is_out_of_reach_is_waited_for(
    river: River, broker: Broker, proxy: Toxiproxy, how: str
):
    """The producers reach it all the time; the pipeline does not, and its connections end or hang."""
    river.source["bootstrap_servers"] = broker.proxied_servers
    with river.here() as here, river.stream.flowing():
        here.until(lambda: river.log.read() >= 100, "the first events")
        try:
            getattr(proxy, how)("kafka")
            here.until(lambda: here.sink.phase == "retrying", "a sink that says that it waits")
        finally:
            proxy.heal()
        missed = river.stream.produced
        here.until(lambda: river.log.read() >= missed, "all that was produced meanwhile")
    river.finish()
    river.check()


def test_partitions_that_are_added_are_read_from_their_beginning(river: River):
    with river.here() as here:
        river.stream.produce(60)
        here.until(lambda: river.log.read() == 60, "the first events")
        river.stream.grow(4)
        river.stream.produce(60)
        here.until(lambda: river.log.read() == 120, "the events of the new partitions")
    river.stream.grow(5)  # while it is down
    river.stream.produce(60)
    river.finish()
    river.check()


def test_aborted_records_are_left_out_and_open_transactions_waited_for(river: River):
    """What lies behind an open transaction cannot be read yet, whoever wrote it."""
    stream = river.stream
    stream.produce(50)
    aborted = transaction(stream, range(10_000, 10_050))
    aborted.abort_transaction()
    waiting = transaction(stream, range(20_000, 20_050))
    stream.produce(50)
    river.finish()
    assert river.log.read() == 50
    with river.here() as here:
        waiting.commit_transaction()
        stream.good |= set(range(20_000, 20_050))
        here.until(lambda: river.log.read() == 150, "the transaction and what lay behind it")
    river.check()


def transaction(stream: Stream, numbers: range) -> Producer:
    """A transaction with these events, all written, that is still open."""
    servers = stream.broker.bootstrap_servers
    identity = f"{stream.topic}-{numbers.start}"
    producer = Producer({"bootstrap.servers": servers, "transactional.id": identity, "log_level": 0})
    producer.init_transactions()
    producer.begin_transaction()
    for n in numbers:
        producer.produce(stream.topic, b'{"n": %d}' % n, str(n).encode(), partition=n % stream.partitions)
    assert producer.flush(60) == 0
    return producer
