"""The starter file that `rivermouth init` writes: it passes `check`, and it runs."""

from __future__ import annotations

YAML = """\
# A pipeline lands records of its sources in Delta tables.
#
#   rivermouth check rivermouth.yaml     what it will do, or what is wrong with it
#   rivermouth run rivermouth.yaml       until you stop it; --once takes what is there and ends

# The pipeline's name is part of what the tables remember: under another name it starts anew.
pipeline: starter

# Metrics and health, for example http://127.0.0.1:9090/metrics
# metrics_port: 9090

sources:
  shop:
    # Synthetic events of a web shop, to see it work. For Kafka:
    #   connector: kafka
    #   config:
    #     bootstrap_servers: ${KAFKA:-localhost:9092}
    #     topics: [orders, clicks]
    connector: generator
    config:
      topics: [orders, clicks]
      count: 100000 # records a topic
      broken: 0.01 # the share of broken records

sinks:
  # Orders are JSON: each key of the schema becomes a column.
  orders:
    connector: delta-lake
    topics: [orders]
    config:
      table_uri: ./lake/orders
      schema:
        - { name: order_id, data_type: Utf8, nullable: false }
        - { name: customer, data_type: Utf8 }
        - { name: product, data_type: Utf8 }
        - { name: quantity, data_type: Int32 }
        - { name: amount, data_type: Float64 }
        - { name: ts, data_type: Timestamp, nullable: false }
      partition_columns: [product]
      # An epoch starts when batch_size records wait, or when the oldest has waited flush_interval.
      batch_size: 50000
      flush_interval: 5s
      # A record that does not fit the schema is kept here, with the reason.
      dead_letter_uri: ./lake/orders_dead_letters

  # Without a schema the whole record is kept: data, event_type, timestamp, stream.
  clicks:
    connector: delta-lake
    topics: [clicks]
    config:
      table_uri: ./lake/clicks
      flush_interval: 5s
"""

TOML = """\
# A pipeline lands records of its sources in Delta tables.
#
#   rivermouth check rivermouth.toml     what it will do, or what is wrong with it
#   rivermouth run rivermouth.toml       until you stop it; --once takes what is there and ends

# The pipeline's name is part of what the tables remember: under another name it starts anew.
pipeline = "starter"

# Metrics and health, for example http://127.0.0.1:9090/metrics
# metrics_port = 9090

# Synthetic events of a web shop, to see it work. For Kafka:
#   connector = "kafka"
#   config.bootstrap_servers = "${KAFKA:-localhost:9092}"
#   config.topics = ["orders", "clicks"]
[sources.shop]
connector = "generator"

[sources.shop.config]
topics = ["orders", "clicks"]
count = 100000 # records a topic
broken = 0.01  # the share of broken records

# Orders are JSON: each key of the schema becomes a column.
[sinks.orders]
connector = "delta-lake"
topics = ["orders"]

[sinks.orders.config]
table_uri = "./lake/orders"
schema = [
    { name = "order_id", data_type = "Utf8", nullable = false },
    { name = "customer", data_type = "Utf8" },
    { name = "product", data_type = "Utf8" },
    { name = "quantity", data_type = "Int32" },
    { name = "amount", data_type = "Float64" },
    { name = "ts", data_type = "Timestamp", nullable = false },
]
partition_columns = ["product"]
# An epoch starts when batch_size records wait, or when the oldest has waited flush_interval.
batch_size = 50000
flush_interval = "5s"
# A record that does not fit the schema is kept here, with the reason.
dead_letter_uri = "./lake/orders_dead_letters"

# Without a schema the whole record is kept: data, event_type, timestamp, stream.
[sinks.clicks]
connector = "delta-lake"
topics = ["clicks"]

[sinks.clicks.config]
table_uri = "./lake/clicks"
flush_interval = "5s"
"""
