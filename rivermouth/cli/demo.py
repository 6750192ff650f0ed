"""`rivermouth demo`: a web shop's events land in three Delta tables, and what became of them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CONFIG = """\
# The demo: a web shop whose events land in three Delta tables. About 1 % of the records are broken.
pipeline: demo
shutdown_timeout: 2m # on a slow or busy machine, let the first epoch finish
sources:
  shop:
    connector: generator
    config: {topics: [orders, payments, clicks], rate: 20000, broken: 0.01}
sinks:
  orders:
    connector: delta-lake
    topics: [orders]
    config:
      table_uri: LAKE/orders
      schema:
        - {name: order_id, data_type: Utf8, nullable: false}
        - {name: customer, data_type: Utf8}
        - {name: product, data_type: Utf8}
        - {name: quantity, data_type: Int32}
        - {name: amount, data_type: "Decimal128(10, 2)"}
        - {name: ts, data_type: Timestamp, nullable: false}
      partition_columns: [product]
      batch_size: 60000
      flush_interval: 3s
  payments:
    connector: delta-lake
    topics: [payments]
    config:
      table_uri: LAKE/payments
      schema: >-
        payment_id STRING NOT NULL, order_id STRING, method STRING, amount DOUBLE, paid BOOLEAN,
        ts TIMESTAMP NOT NULL
      batch_size: 60000
      flush_interval: 3s
  clicks:
    connector: delta-lake
    topics: [clicks]
    config:
      table_uri: LAKE/clicks
      schema: >-
        session STRING NOT NULL, page STRING, duration_ms INT,
        agent STRUCT<mobile: BOOLEAN, language: STRING>, ts TIMESTAMP
      batch_size: 60000
      flush_interval: 3s
"""


def demo(
    lake: Annotated[Path, typer.Option("--lake", help="Where the tables go.")] = Path("demo-lake"),
    seconds: Annotated[float, typer.Option("--for", metavar="SECONDS", min=1, help="How long it runs.")] = 20,
) -> None:
    """Watch a web shop's events land in Delta tables; run it again and it goes on where it stopped."""
    from rivermouth.cli.run import load, start
    from rivermouth.observe import log

    log.configure("text")
    lake.mkdir(parents=True, exist_ok=True)
    config = lake / "demo.yaml"
    config.write_text(CONFIG.replace("LAKE", str(lake)), encoding="utf-8")
    pipeline = load(config)
    observer = start(pipeline, seconds=seconds)

    from rivermouth.cli.summary import print_summary

    print_summary(pipeline, observer.state, lake, config)
    if any(status.phase == "failed" for status in observer.state.sinks()):
        raise typer.Exit(1)
