"""Dead letters: a real node moves messages away, Spark shows where they came from and sends them back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from atalanta.client import Byte, Float, Int, Message, Short, blocking
from atalanta.client.log import PropertyValue
from atalanta.spark import dead_letters, register
from tests.spark.nodes import PASSWORD, USER, BrokerCluster

pytestmark = [pytest.mark.spark, pytest.mark.process, pytest.mark.timeout(300)]

SETTING = """\
<address-setting match="orders">
  <dead-letter-address>dead</dead-letter-address>
  <expiry-address>dead</expiry-address>
  <max-delivery-attempts>1</max-delivery-attempts>
</address-setting>
"""
ADDRESSES = """\
<address name="orders"><multicast>
  <queue name="store"><durable>true</durable></queue><queue name="bill"><durable>true</durable></queue>
</multicast></address>
<address name="dead"><anycast><queue name="dead"><durable>true</durable></queue></anycast></address>
"""
PROPERTIES: dict[str, PropertyValue] = {
    "byte": Byte(-5), "short": Short(300), "int": Int(7), "long": 7, "float": Float(0.5),
    "double": 0.5, "yes": True, "text": "7", "bytes": b"\x00\xff",
}  # fmt: skip


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerCluster]:
    cluster = BrokerCluster(tmp_path_factory.mktemp("brokers"), 1)
    xml = cluster.nodes[0].broker_xml
    text = xml.read_text().replace("</address-settings>", SETTING + "</address-settings>")
    xml.write_text(text.replace("</addresses>", ADDRESSES + "</addresses>"))
    with cluster:
        yield cluster


def connected(brokers: BrokerCluster) -> blocking.Connection:
    return blocking.connect(f"tcp://{brokers.servers}", user=USER, password=PASSWORD)


def source(spark: SparkSession, brokers: BrokerCluster) -> dict[str, str]:
    register(spark)
    return {"servers": brokers.servers, "user": USER, "password": PASSWORD}


def fill_dead(brokers: BrokerCluster) -> None:
    """One message that no consumer of `bill` could process, and one that expired there."""
    with connected(brokers) as connection:
        with connection.producer("orders", routing="multicast") as producer:
            producer.send(Message(text="poison", properties=PROPERTIES))
        with connection.transaction() as work:
            refused = work.consumer("orders::bill").receive(10)
            assert refused is not None and refused.text == "poison"
            refused.acknowledge()
            work.rollback()
        with connection.producer("orders", routing="multicast") as producer:
            producer.send(Message(text="late", expires_at_ms=1))
        with connection.consumer("orders::store") as consumer:
            kept = consumer.receive(10)
            assert kept is not None and kept.text == "poison"
            kept.acknowledge()
            assert consumer.receive(0.5) is None
        with connection.consumer("orders::bill") as consumer:
            assert consumer.receive(0.5) is None


def rows(frame: DataFrame) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_dead_letters_are_shown_and_go_back_to_their_queue_with_their_types(
    spark: SparkSession, brokers: BrokerCluster, tmp_path: Path
) -> None:
    fill_dead(brokers)
    options = source(spark, brokers)
    dead = spark.read.format("atalanta").options(**options, queue="dead").load()
    shown = dead_letters.view(dead).select("text", "original_address", "original_queue", "reason")
    assert rows(shown) == [
        ("late", "orders", "bill", "expired"),
        ("late", "orders", "store", "expired"),
        ("poison", "orders", "bill", "undelivered"),
    ]
    # Back to its queue alone, exactly once; `dead` is empty then.
    stream = spark.readStream.format("atalanta").options(
        **options, queue="dead", propertyTypes="typed"
    )
    again = dead_letters.redrive(stream.load(), to_queue=True)
    writer = again.writeStream.format("atalanta").options(**options)
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert brokers.waiting("dead") == 0
    with connected(brokers) as connection:
        with connection.consumer("orders::bill") as consumer:
            found = [consumer.receive(10), consumer.receive(10)]
            assert consumer.receive(0.5) is None
        with connection.consumer("orders::store") as consumer:
            stored = consumer.receive(10)
            assert stored is not None and stored.text == "late"
            assert consumer.receive(0.5) is None
    (poison,) = [one for one in found if one is not None and one.text == "poison"]
    assert {name: (type(value), value) for name, value in poison.properties.items()} == {
        name: (type(value), value) for name, value in PROPERTIES.items()
    }
