"""A real Apache Kafka broker, from jars: for tests, for faults (kill, restart) and for benchmarks."""

from __future__ import annotations

import base64
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from rivermouth.spark import jars, java

DEFINITION = Path(__file__).with_name("ivy.xml")

SASL_USER, SASL_PASSWORD = "reader", "correct-horse-7"
_SASL_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"

_TEST_JVM = ("-Xms128m", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_BENCHMARK_JVM = ("-Xms512m", "-Xmx1g")
_READY_WITHIN = 120.0


@dataclass(frozen=True)
class Message:
    """One message to produce; a value of None is a tombstone."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = field(default=())
    partition: int | None = None
    timestamp_ms: int | None = None


class Broker:
    """One broker on a port of its own, which keeps its port and data over a kill and a restart."""

    def __init__(
        self,
        folder: Path,
        *,
        benchmark: bool = False,
        properties: Mapping[str, str] | None = None,
        proxy_port: int | None = None,
    ) -> None:
        """`proxy_port` is where a proxy will listen that passes on to `behind_proxy`."""
        self.folder = folder
        self.log = folder / "broker.log"
        self._jvm = _BENCHMARK_JVM if benchmark else _TEST_JVM
        self._extra = dict(properties or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._port, self._sasl_port, self._controller_port, self.behind_proxy = _free_ports(4)
        self._proxy_port = proxy_port
        self._classpath = ""

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def sasl_servers(self) -> str:
        """Where it asks for a user and a password, with SASL/PLAIN."""
        return f"127.0.0.1:{self._sasl_port}"

    @property
    def proxied_servers(self) -> str:
        """Where it is reached through the proxy: a client goes on where the broker says it is."""
        assert self._proxy_port is not None, "the broker was made without a proxy"
        return f"127.0.0.1:{self._proxy_port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start it, formatting its data folder the first time, and return when it answers."""
        assert self._process is None, "the broker is running"
        self._classpath = os.pathsep.join(map(str, jars.ensure(("broker",), definition=DEFINITION)))
        if not (self.folder / "server.properties").exists():
            self._format()
        self._process = self._run("kafka.Kafka", str(self.folder / "server.properties"))
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ask it to end and wait; kill it if it does not."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Let it hang: connections stay open, nothing answers, until `resume`."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def admin(self) -> AdminClient:
        """A new admin client; keep it while its futures run."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, "log_level": 0})

    def create_topic(
        self, prefix: str = "topic", partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic that no other test has, named after `prefix`, and return its name."""
        name = f"{prefix}-{uuid.uuid4().hex[:10]}"
        self.create_named_topic(name, partitions, config)
        return name

    def create_named_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic of exactly this name (also one that was just deleted)."""
        admin = self.admin()
        wanted = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        deadline = time.monotonic() + _READY_WITHIN
        while True:
            try:
                admin.create_topics([wanted])[name].result()
                break
            except KafkaException as error:
                # A deletion goes on for a moment after it was confirmed.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        _until(lambda: len(self._partitions(admin, name)) == partitions, f"topic {name}")

    def delete_topic(self, name: str) -> None:
        admin = self.admin()
        admin.delete_topics([name])[name].result()
        _until(lambda: not self._partitions(admin, name), f"deletion of topic {name}")

    def add_partitions(self, name: str, total: int) -> None:
        """Raise the number of a topic's partitions to `total`."""
        admin = self.admin()
        admin.create_partitions([NewPartitions(name, total)])[name].result()
        _until(lambda: len(self._partitions(admin, name)) == total, f"partitions of {name}")

    def delete_records(self, name: str, before: Mapping[int, int]) -> None:
        """Let records expire: per partition, those with an offset below the given one."""
        admin = self.admin()
        places = [TopicPartition(name, partition, offset) for partition, offset in before.items()]
        for future in admin.delete_records(places).values():
            future.result()

    def topic_config(self, name: str) -> dict[str, str]:
        admin = self.admin()
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        entries = admin.describe_configs([resource])[resource].result()
        return {key: entry.value for key, entry in entries.items()}

    def produce(
        self,
        topic: str,
        messages: Iterable[Message | bytes | None],
        *,
        transaction: Literal["commit", "abort"] | None = None,
        config: Mapping[str, str | int] | None = None,
    ) -> list[tuple[int, int]]:
        """Write messages and return the partition and offset of each, in order; all are acknowledged."""
        settings: dict[str, str | int] = {
            "bootstrap.servers": self.bootstrap_servers,
            "log_level": 0,
            "enable.idempotence": "true",
            "queue.buffering.max.messages": 1_000_000,
            "linger.ms": 5,
            **(config or {}),
        }
        if transaction:
            settings["transactional.id"] = f"test-{uuid.uuid4().hex}"
        producer = Producer(settings)
        if transaction:
            producer.init_transactions()
            producer.begin_transaction()
        written: dict[int, tuple[int, int]] = {}
        failures: list[KafkaError] = []
        total = 0
        for number, item in enumerate(messages):
            message = item if isinstance(item, Message) else Message(item)
            self._send(producer, topic, message, number, written, failures)
            total += 1
        remaining = producer.flush(_READY_WITHIN)
        if failures or remaining:
            raise KafkaException(failures[0] if failures else KafkaError(KafkaError._TIMED_OUT))
        if transaction == "commit":
            producer.commit_transaction()
        elif transaction == "abort":
            producer.abort_transaction()
        return [written[number] for number in range(total)]

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """The earliest offset and the head of every partition."""
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap_servers, "group.id": "bounds", "log_level": 0}
        )
        try:
            partitions = self._partitions(self.admin(), topic)
            return {
                partition: consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)
                for partition in partitions
            }
        finally:
            consumer.close()

    @staticmethod
    def _send(
        producer: Producer,
        topic: str,
        message: Message,
        number: int,
        written: dict[int, tuple[int, int]],
        failures: list[KafkaError],
    ) -> None:
        def delivered(error: KafkaError | None, record: object) -> None:
            if error is not None:
                failures.append(error)
            else:
                written[number] = (record.partition(), record.offset())  # type: ignore[attr-defined]

        optional: dict[str, int] = {}
        if message.partition is not None:
            optional["partition"] = message.partition
        if message.timestamp_ms is not None:
            optional["timestamp"] = message.timestamp_ms
        headers = list(message.headers) or None
        while True:
            try:
                producer.produce(
                    topic,
                    value=message.value,
                    key=message.key,
                    headers=headers,
                    on_delivery=delivered,
                    **optional,
                )
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)

    @staticmethod
    def _partitions(admin: AdminClient, topic: str) -> list[int]:
        # Asked for one topic by name, the broker would create it.
        described = admin.list_topics(timeout=10).topics.get(topic)
        return sorted(described.partitions) if described is not None and described.error is None else []

    def _format(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        open_to_clients = f"PLAINTEXT://{self.bootstrap_servers},SASL://{self.sasl_servers}"
        listeners, advertised = open_to_clients, open_to_clients
        if self._proxy_port is not None:
            listeners += f",PROXIED://127.0.0.1:{self.behind_proxy}"
            advertised += f",PROXIED://{self.proxied_servers}"
        protocols = "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT"
        properties = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"{listeners},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": advertised,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": protocols,
            "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": f'{_SASL_LOGIN} user_{SASL_USER}="{SASL_PASSWORD}";',
            "log.dirs": str(self.folder / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.cleaner.dedupe.buffer.size": "4194304",
            "broker.heartbeat.interval.ms": "1000",
            "broker.session.timeout.ms": "4000",  # else a restart after a kill waits for nine seconds
            **self._extra,
        }
        path = self.folder / "server.properties"
        draft = path.with_suffix(".draft")
        draft.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        # The first byte of a uuid4 may give a leading "-", which the tool takes for an option.
        cluster = base64.urlsafe_b64encode(b"\0" + uuid.uuid4().bytes[1:]).rstrip(b"=").decode()
        process = self._run("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(draft))
        if process.wait(_READY_WITHIN) != 0:
            raise RuntimeError(f"the broker's folder could not be formatted: {self._said()}")
        draft.rename(path)

    def _run(self, *arguments: str) -> subprocess.Popen[bytes]:
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        command = [str(java.find().executable), *self._jvm, level, "-cp", self._classpath, *arguments]
        with self.log.open("ab") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                preexec_fn=_die_with_the_parent if sys.platform == "linux" else None,
            )

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        process, admin = self._process, self.admin()
        deadline = time.monotonic() + _READY_WITHIN
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise RuntimeError(f"the broker ended with code {process.returncode}: {self._said()}")
            try:
                if admin.list_topics(timeout=1).brokers:
                    return
            except KafkaException:
                continue
        raise RuntimeError(f"the broker did not answer within {_READY_WITHIN:.0f} s: {self._said()}")

    def _said(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _READY_WITHIN
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.02)


def _die_with_the_parent() -> None:
    """Let the kernel kill the broker if the test process is killed."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [opened.getsockname()[1] for opened in sockets]
    for opened in sockets:
        opened.close()
    return ports
