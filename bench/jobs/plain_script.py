"""What one writes by hand without Spark: confluent-kafka and write_deltalake. Usage as rivermouth.py."""

from __future__ import annotations

import io
import json
import sys
import time

import pyarrow as pa
import pyarrow.json as pj
from confluent_kafka import Consumer, TopicPartition
from deltalake import write_deltalake

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("customer", pa.string()),
        ("product", pa.string()),
        ("quantity", pa.int32()),
        ("price", pa.float64()),
        ("currency", pa.string()),
        ("paid", pa.bool_()),
        ("country", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
    ]
)


def main(servers: str, topic: str, table: str, passes: int, epoch_size: int, _epochs: int) -> None:
    print(json.dumps([land(servers, topic, f"{table}-{n}", epoch_size) for n in range(passes)]))


def land(servers: str, topic: str, table: str, batch_size: int) -> dict[str, float | list[float]]:
    start = time.time()
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "script", "auto.offset.reset": "earliest"})
    partitions = list(consumer.list_topics(topic).topics[topic].partitions)
    heads = {p: consumer.get_watermark_offsets(TopicPartition(topic, p))[1] for p in partitions}
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    left = sum(heads.values())
    commits = []
    while left:
        messages: list[bytes] = []
        while len(messages) < min(batch_size, left):
            messages += [m.value() for m in consumer.consume(min(10_000, batch_size - len(messages)), 1.0)]
        left -= len(messages)
        data = b"\n".join(messages)
        events = pj.read_json(
            io.BytesIO(data),
            read_options=pj.ReadOptions(block_size=len(data) + 1),
            parse_options=pj.ParseOptions(explicit_schema=SCHEMA),
        )
        write_deltalake(table, events, mode="append")
        commits.append(time.time())
    consumer.close()
    return {"start": start, "commits": commits}


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:7]))
