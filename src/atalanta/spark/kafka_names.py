"""The names of Spark's Kafka source and sink, and what has their place here."""

from __future__ import annotations

from typing import Final

# Options, in lower case, and what to write here.
OPTIONS: Final = {
    "kafka.bootstrap.servers": "servers",
    "subscribe": "queue",
    "subscribepattern": "queuePattern",
    "assign": "queue",
    "topic": "address",
    "groupidprefix": "group",
    "kafka.group.id": "group",
    "startingoffsetsbytimestamp": 'startingTimestamp, with {"node id or host:port": ms}',
    "endingoffsetsbytimestamp": 'endingTimestamp, with {"node id or host:port": ms}',
    "kafkaconsumer.polltimeoutms": "requestTimeout",
    "fetchoffset.numretries": "nodeTimeout",
    "fetchoffset.retryintervalms": "nodeTimeout",
    "kafka.request.timeout.ms": "requestTimeout",
    "kafka.max.partition.fetch.bytes": "maxBodyBytes",
    "kafka.acks": "durable",
    "kafka.security.protocol": "sslEnabled",
    "kafka.ssl.truststore.location": "trustStorePath",
    "kafka.ssl.truststore.password": "trustStorePassword",
    "kafka.ssl.truststore.type": "trustStoreType",
    "kafka.ssl.keystore.location": "keyStorePath",
    "kafka.ssl.keystore.password": "keyStorePassword",
    "kafka.ssl.keystore.type": "keyStoreType",
    "kafka.sasl.jaas.config": "user, with password or passwordFile",
    "kafka.sasl.mechanism": "user, with password or passwordFile",
}
# The prefix of the options of Kafka's own client.
CLIENT_PREFIX: Final = "kafka."
# Columns, and what has their place here.
COLUMNS: Final = {
    "key": "group_id",
    "topic": "address",
    "value": "body, or text",
    "partition": "node",
    "offset": "sequence",
    "headers": "properties",
}
# Column of the sink -> the column of ours that it fills, unless an option names it otherwise.
SINK_ALIASES: Final = {"key": "group_id", "topic": "address"}


def kafka_option(name: str) -> str | None:
    """Returns what to write for an option of Kafka's, for an error text; None for any other name."""
    if name in OPTIONS:
        return f"its name here is {OPTIONS[name]}"
    if name.startswith(CLIENT_PREFIX):
        return "it is one of Kafka's client, and has no counterpart here. Leave it away"
    return None


def kafka_column(name: str) -> str:
    """Returns what has the place of a column of Kafka's, for an error text; "" for any other name."""
    return f": its name here is {COLUMNS[name]}" if name in COLUMNS else ""
