"""A real broker: where reading begins, what is read, and that nothing is read twice."""

from __future__ import annotations

import threading
import time

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from pydantic import ValidationError

from rivermouth.errors import SourceInvalid, SourceUnavailable
from rivermouth.pipeline import sink as module
from rivermouth.sources.kafka import KafkaConfig
from rivermouth.sources.kafka_admin import Admin
from tests.services.kafka import Message

SCHEMA = {"schema": "n BIGINT NOT NULL"}


@pytest.fixture
def source(kafka):
    def describe(*topics: str, **more):
        named = {"topics": list(topics)} if topics else {}
        return {
            "connector": "kafka",
            "config": {"bootstrap_servers": kafka.bootstrap_servers, **named, **more},
        }

    return describe


def numbers(start: int, end: int, **more):
    return [Message(b'{"n": %d}' % n, **more) for n in range(start, end)]


def landed(lake, name: str = "t"):
    return [n for (n,) in lake.query(f"SELECT n FROM {{{name}}} ORDER BY n")]


def test_records_land_once_over_several_runs(lake, kafka, source):
    topic = kafka.create_topic(partitions=4)
    kafka.produce(topic, numbers(0, 1000))
    lake.run(source(topic), {"t": SCHEMA})
    kafka.produce(topic, numbers(1000, 1500))
    lake.run(source(topic), {"t": SCHEMA})
    lake.run(source(topic), {"t": SCHEMA})
    assert landed(lake) == list(range(1500)) == sorted(range(lake.spark_count("t")))


def test_latest_means_the_moment_of_the_first_start_for_ever(lake, kafka, source):
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, numbers(0, 10))
    lake.run(source(topic, starting_offsets="latest"), {"t": SCHEMA})
    kafka.produce(topic, numbers(10, 20))  # while it is down
    lake.run(source(topic, starting_offsets="latest"), {"t": SCHEMA})
    assert landed(lake) == list(range(10, 20))


def test_a_timestamp_begins_at_the_first_record_that_late(lake, kafka, source):
    topic = kafka.create_topic(partitions=2, config={"retention.ms": "-1"})  # the records are old
    for n in range(10):
        kafka.produce(topic, numbers(n, n + 1, timestamp_ms=1_767_225_600_000 + n * 1000, partition=n % 2))
    lake.run(source(topic, starting_offsets="2026-01-01T00:00:05Z"), {"t": SCHEMA})
    assert landed(lake) == [5, 6, 7, 8, 9]
    lake.run(source(topic, starting_offsets="2030-01-01"), {"late": SCHEMA})
    assert landed(lake, "late") == []


def test_offsets_for_each_partition(lake, kafka, source):
    topic = kafka.create_topic(partitions=3)
    for partition in range(3):
        kafka.produce(topic, numbers(partition * 10, partition * 10 + 10, partition=partition))
    lake.run(source(topic, starting_offsets={topic: {0: 7, 1: "latest"}}), {"t": SCHEMA})
    assert landed(lake) == [7, 8, 9, *range(20, 30)]


def test_a_partition_that_does_not_exist_is_named(lake, kafka, source, statuses):
    topic = kafka.create_topic(partitions=1)
    seen = statuses(lake.run(source(topic, starting_offsets={topic: {5: 0}}), {"t": SCHEMA}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "SourceInvalid")
    assert f"{topic}/5" in seen.last_error.message


@pytest.mark.parametrize(("typed", "range_"), [(12000, "2 to 10"), (1, "2 to 10")])
def test_an_offset_that_is_not_there_is_told_and_never_pinned(lake, kafka, source, statuses, typed, range_):
    topic = kafka.create_topic(partitions=2)
    for partition in range(2):
        kafka.produce(topic, numbers(partition * 10, partition * 10 + 10, partition=partition))
    kafka.delete_records(topic, {1: 2})
    wrong = source(topic, starting_offsets={topic: {0: 3, 1: typed}})
    seen = statuses(lake.run(wrong, {"t": SCHEMA}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "SourceInvalid")
    assert f"{topic}/1 has {range_}, not {typed}" in seen.last_error.message
    assert f"{topic}/0" not in seen.last_error.message
    lake.run(source(topic, starting_offsets={topic: {0: 3, 1: 9}}), {"t": SCHEMA})
    assert landed(lake) == [*range(3, 10), 19]


def test_the_head_is_an_offset_to_begin_at(lake, kafka, source):
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 10))
    wanted = source(topic, starting_offsets={topic: {0: 10}})
    lake.run(wanted, {"t": SCHEMA})
    kafka.produce(topic, numbers(10, 12))
    lake.run(wanted, {"t": SCHEMA})
    assert landed(lake) == [10, 11]


def figures(spark, pattern: str, attribute: str) -> dict[str, float]:
    """A metric of the Kafka clients in the driver's JVM, by client id."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
    kind = jvm.java.lang.Class.forName("javax.management.MBeanServer")

    def ask(name, *arguments):
        # By reflection on the interface: the server's own class is closed to py4j.
        (method,) = [m for m in kind.getMethods() if m.getName() == name]
        values = gateway.new_array(jvm.java.lang.Object, len(arguments))
        for number, argument in enumerate(arguments):
            values[number] = argument
        return method.invoke(server, values)

    beans = ask("queryNames", jvm.javax.management.ObjectName(pattern), None)
    return {str(b.getKeyProperty("client-id")): float(ask("getAttribute", b, attribute)) for b in beans}


@pytest.mark.parametrize(("options", "name"), [({}, "rivermouth.test.t"), ({"group.id": "mine"}, "mine")])
def test_the_consumers_have_a_group_id_which_is_the_users_if_there_is_one(
    lake, kafka, source, spark, options, name
):
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 5))
    lake.run(source(topic, options=options), {"t": SCHEMA})
    # Spark keeps its consumers a while; each names itself after its group.
    kind = "consumer-fetch-manager-metrics"
    pattern = f"kafka.consumer:type={kind},client-id=*,topic={topic}"
    clients = figures(spark, pattern, "records-consumed-total")
    assert clients and all(client.startswith(f"consumer-{name}-") for client in clients)
    assert landed(lake) == list(range(5))


def test_all_topics_are_described_in_one_request(kafka, spark):
    topics = [kafka.create_topic(partitions=n) for n in (1, 2, 3, 1, 2, 3)]
    admin = Admin(
        lambda: spark._jvm,
        {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "counted"},
        "read_committed",
    )

    def requests() -> float:
        return figures(spark, "kafka.admin.client:type=admin-client-metrics,*", "request-total")["counted"]

    try:
        admin.topics(topics[:1])  # connects
        before = requests()
        found = admin.topics(topics)
        assert requests() - before < len(topics)
        assert [len(found[name].partitions) for name in topics] == [1, 2, 3, 1, 2, 3]
        assert len({topic.identity for topic in found.values()}) == len(topics)
        with pytest.raises(SourceUnavailable, match="there is no topic 'no-such-topic'"):
            admin.topics([*topics, "no-such-topic"])
        assert admin.topics([]) == {}
    finally:
        admin.close()


def test_a_pattern_takes_the_topics_that_match_also_later_ones(lake, kafka, source):
    prefix = kafka.create_topic("shop")
    kafka.create_named_topic(f"{prefix}.a")
    kafka.produce(f"{prefix}.a", numbers(0, 5))
    wanted = source(topic_pattern=f"{prefix}[.].*")
    lake.run(wanted, {"t": SCHEMA})
    kafka.create_named_topic(f"{prefix}.b")
    kafka.produce(f"{prefix}.b", numbers(5, 10))
    lake.run(wanted, {"t": SCHEMA})
    assert landed(lake) == list(range(10))


def test_partitions_added_later_are_read_from_their_beginning(lake, kafka, source):
    topic = kafka.create_topic(partitions=1)
    kafka.produce(topic, numbers(0, 5))
    lake.run(source(topic, starting_offsets="latest"), {"t": SCHEMA})
    kafka.add_partitions(topic, 3)
    kafka.produce(topic, numbers(5, 10, partition=2))
    lake.run(source(topic, starting_offsets="latest"), {"t": SCHEMA})
    assert landed(lake) == list(range(5, 10))


def test_aborted_records_are_not_read_and_open_transactions_wait(lake, kafka, source):
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 5), transaction="commit")
    kafka.produce(topic, numbers(100, 105), transaction="abort")
    kafka.produce(topic, numbers(5, 10), transaction="commit")
    lake.run(source(topic), {"t": SCHEMA})
    lake.run(source(topic), {"t": SCHEMA})
    assert landed(lake) == list(range(10))
    lake.run(source(topic, isolation_level="read_uncommitted"), {"raw": SCHEMA})
    assert landed(lake, "raw") == [*range(10), *range(100, 105)]


def test_headers_keys_and_tombstones_reach_the_dead_letters_whole(lake, kafka, source):
    topic = kafka.create_topic()
    kafka.produce(
        topic,
        [
            Message(b"\xff\x00 not json", key=b"k\xff", headers=[("h", b"\x00\x01"), ("h", None)]),
            Message(None, key=b"gone"),
        ],
    )
    lake.run(source(topic), {"t": SCHEMA})
    rows = lake.query(
        'SELECT key, value, headers, topic, "offset", reason FROM {t_dead_letters} ORDER BY "offset"'
    )
    assert rows[0] == (
        b"k\xff",
        b"\xff\x00 not json",
        [{"key": "h", "value": b"\x00\x01"}, {"key": "h", "value": None}],
        topic,
        0,
        "InvalidEncoding",
    )
    assert (rows[1][:2], rows[1][5]) == ((b"gone", None), "NullValue")


def test_bad_records_with_odd_headers_and_times_are_dead_letters_like_any_other(lake, kafka, source):
    topic = kafka.create_topic(
        config={"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}
    )
    kafka.produce(
        topic,
        [
            Message(b"bad", headers=[("file", b"\xff\xfe")]),
            Message(b"bad", timestamp_ms=1_767_225_600_000_000),  # microseconds, taken for milliseconds
            Message(b'{"n": 1}', timestamp_ms=1_767_225_600_000_000),
        ],
    )
    lake.run(source(topic), {"t": SCHEMA})
    assert landed(lake) == [1]
    assert lake.query("SELECT count(*) FROM {t_dead_letters}") == [(2,)]


def test_envelopes_tell_the_type_of_event(lake, kafka, source):
    topic = kafka.create_topic()
    kafka.produce(
        topic,
        [
            Message(b'{"id": 1}'),
            Message(b'{"id": 1}', headers=[("event_type", b"state")]),
            Message(b'{"op": "u", "after": {"id": 1}}'),
            Message(None, key=b'{"id": 1}'),
        ],
    )
    lake.run(source(topic), {"t": {"partition_columns": ["event_type"]}})
    rows = lake.query("SELECT event_type, data, stream FROM {t} ORDER BY event_type")
    assert rows == [
        ("delete", '{"id": 1}', topic),
        ("insert", '{"id": 1}', topic),
        ("state", '{"id": 1}', topic),
        ("update", '{"op": "u", "after": {"id": 1}}', topic),
    ]


def test_a_running_pipeline_follows_the_topic_and_takes_up_new_partitions(lake, kafka, source, monkeypatch):
    monkeypatch.setattr("rivermouth.sources.kafka._METADATA_SECONDS", 0.5)
    topic = kafka.create_topic()
    done = threading.Event()

    def feed():
        kafka.produce(topic, numbers(0, 50))
        kafka.add_partitions(topic, 2)
        kafka.produce(topic, numbers(50, 100, partition=1))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not done.is_set():
            folder = lake.folder / "t"
            if folder.exists() and len(landed(lake)) == 100:
                done.set()
            time.sleep(0.2)

    feeder = threading.Thread(target=feed)
    feeder.start()
    keys = {**SCHEMA, "flush_interval": "200ms"}
    run = threading.Thread(
        target=lambda: lake.run(source(topic, starting_offsets="latest"), {"t": keys}, seconds=30)
    )
    run.start()
    feeder.join()
    run.join()
    missing = set(range(50, 100)) - set(landed(lake))
    assert not missing
    assert len(landed(lake)) == len(set(landed(lake)))


def test_an_epoch_waits_for_the_flush_interval_also_when_one_partition_is_quiet(
    lake, kafka, source, statuses
):
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, numbers(0, 1, partition=0))
    stop = threading.Event()

    def feed():
        for n in range(1, 40):
            kafka.produce(topic, numbers(n, n + 1, partition=0))
        stop.set()

    feeder = threading.Thread(target=feed)
    feeder.start()
    observer = lake.run(source(topic), {"t": {**SCHEMA, "flush_interval": "1h"}}, stop=stop, once=False)
    feeder.join()
    assert statuses(observer)["t"].commits == 0
    lake.run(source(topic), {"t": SCHEMA})
    assert landed(lake) == list(range(40))


def test_a_topic_recreated_while_the_sink_runs_is_recognised(lake, kafka, source, statuses, monkeypatch):
    monkeypatch.setattr("rivermouth.sources.kafka._METADATA_SECONDS", 0.0)
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 5))
    observers = []
    keys = {**SCHEMA, "flush_interval": "100ms"}
    run = threading.Thread(target=lambda: observers.append(lake.run(source(topic), {"t": keys}, seconds=60)))
    run.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not ((lake.folder / "t").exists() and len(landed(lake)) == 5):
        time.sleep(0.1)
    kafka.delete_topic(topic)
    kafka.create_named_topic(topic)
    run.join()
    seen = statuses(observers[0])["t"]
    assert seen.phase == "failed"
    assert seen.last_error.code in ("ProgressLost", "DataLoss")
    assert landed(lake) == list(range(5))


def test_a_topic_that_does_not_exist_is_an_error_that_may_pass(lake, kafka, source, statuses, monkeypatch):
    monkeypatch.setattr("rivermouth.pipeline.decide.FIRST_PAUSE", 0.01)
    seen = statuses(lake.run(source("no-such-topic"), {"t": SCHEMA}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "SourceUnavailable")
    assert "no-such-topic" in seen.last_error.message


def test_expired_offsets_are_an_error_that_shows_the_range(lake, kafka, source, statuses):
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 5))
    lake.run(source(topic), {"t": SCHEMA})
    kafka.produce(topic, numbers(5, 20))
    kafka.delete_records(topic, {0: 12})
    seen = statuses(lake.run(source(topic), {"t": SCHEMA}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "DataLoss")
    assert "offsets 5 to 11" in seen.last_error.message


def test_a_recreated_topic_is_recognised(lake, kafka, source, statuses):
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 5))
    lake.run(source(topic), {"t": SCHEMA})
    kafka.delete_topic(topic)
    kafka.create_named_topic(topic)
    kafka.produce(topic, numbers(0, 50))
    seen = statuses(lake.run(source(topic), {"t": SCHEMA}))["t"]
    assert (seen.phase, seen.last_error.code) == ("failed", "ProgressLost")
    assert landed(lake) == list(range(5))


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "topics is missing"),
        ({"topics": ["a"], "topic_pattern": "b"}, "exclude each other"),
        ({"topics": []}, "at least 1"),
        ({"topic_pattern": "("}, "not a regular expression"),
        ({"topics": ["a"], "starting_offsets": "sometimes"}, "starting_offsets"),
        ({"topics": ["a"], "starting_offsets": 1767225600}, "bare number"),
        ({"topics": ["a"], "starting_offsets": "1700000000"}, "bare number"),
        ({"topics": ["a"], "starting_offsets": "1700000000.5"}, "bare number"),
        ({"topics": ["a"], "starting_offsets": {"a": {0: -1}}}, "greater than or equal to 0"),
        ({"topics": ["a"], "options": {"kafka.bootstrap.servers": "x"}}, "bootstrap_servers"),
        ({"topics": ["a"], "options": {"isolation.level": "x"}}, "isolation_level"),
    ],
)
def test_mistakes_in_the_config_are_told(keys, words):
    with pytest.raises(ValidationError, match=words):
        KafkaConfig(bootstrap_servers="localhost:9092", **keys)


def test_options_are_client_properties_with_or_without_a_prefix():
    config = KafkaConfig(
        bootstrap_servers="b",
        topics=["a"],
        options={"kafka.client.id": "x", "fetch.max.bytes": 1, "a.b": True},
    )
    assert config.options == {"client.id": "x", "fetch.max.bytes": "1", "a.b": "true"}


def test_nothing_of_a_password_is_told(spark):
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    options = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="u" password="ab"HUNTER2";',
    }
    with pytest.raises(SourceInvalid, match="JAAS") as raised:
        Admin(lambda: spark._jvm, options, "read_committed").topic_names()
    assert "HUNTER2" not in str(raised.value)
    login = Admin(lambda: spark._jvm, {"bootstrap.servers": "sasl://u:SECRET@127.0.0.1:1"}, "read_committed")
    assert "SECRET" not in str(login._understood("TimeoutException", "no answer", ""))


def group_offsets(kafka, group: str, topic: str) -> dict[int, int]:
    """What any lag monitor would see."""
    admin = kafka.admin()
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result()
    return {place.partition: place.offset for place in found.topic_partitions if place.topic == topic}


def test_the_group_shows_what_is_in_the_table_and_is_never_read_back(lake, kafka, source):
    topic = kafka.create_topic(partitions=2)
    kafka.produce(topic, [*numbers(0, 10, partition=0), *numbers(10, 13, partition=1)])
    lake.run(source(topic), {"t": SCHEMA})
    assert group_offsets(kafka, "rivermouth.test.t", topic) == {0: 10, 1: 3}
    admin = kafka.admin()
    wrong = ConsumerGroupTopicPartitions("rivermouth.test.t", [TopicPartition(topic, 0, 2)])
    admin.alter_consumer_group_offsets([wrong])["rivermouth.test.t"].result()
    kafka.produce(topic, numbers(20, 25, partition=0))
    lake.run(source(topic), {"t": SCHEMA})
    assert landed(lake) == [*range(13), *range(20, 25)]
    assert group_offsets(kafka, "rivermouth.test.t", topic) == {0: 15, 1: 3}


def test_a_group_of_the_users_choice(lake, kafka, source):
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 10))
    lake.run(source(topic, options={"group.id": "my-own-group"}), {"t": SCHEMA})
    assert group_offsets(kafka, "my-own-group", topic) == {0: 10}


def test_a_group_that_cannot_be_told_stops_nothing(lake, kafka, source, statuses):
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 10))
    group = f"busy-{topic}"
    member = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    try:  # a group with members takes offsets from them alone
        member.subscribe([topic])
        while not member.assignment():
            member.poll(0.1)
        seen = statuses(lake.run(source(topic, options={"group.id": group}), {"t": SCHEMA}))["t"]
    finally:
        member.close()
    assert seen.phase == "stopped"
    assert seen.warnings == {"GroupOffsetsNotCommitted": 1}
    assert landed(lake) == list(range(10))


def test_a_topic_created_again_while_its_records_are_read_is_not_committed(lake, kafka, source, monkeypatch):
    """The new topic has as many records: the range can be read, and is not the table's."""
    topic = kafka.create_topic()
    kafka.produce(topic, numbers(0, 10))
    lake.run(source(topic), {"t": SCHEMA})
    kafka.produce(topic, numbers(10, 20))
    real, done = module.execute, []

    def recreated_meanwhile(*arguments, **more):
        if not done:
            done.append(True)
            kafka.delete_topic(topic)
            kafka.create_named_topic(topic)
            kafka.produce(topic, numbers(100, 120))
        return real(*arguments, **more)

    monkeypatch.setattr(module, "execute", recreated_meanwhile)
    monkeypatch.setattr("rivermouth.pipeline.decide.FIRST_PAUSE", 0.01)
    lake.run(source(topic), {"t": {**SCHEMA, "on_data_loss": "continue"}})
    assert landed(lake) == [*range(10), *range(100, 120)]
    told = lake.query("SELECT message FROM {t_dead_letters} WHERE reason = 'RecordsLost'")
    assert len(told) == 1 and "from offset 10 on is lost" in told[0][0]
