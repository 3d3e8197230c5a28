"""undecodable=dead-letter: what cannot be a row goes to the dead-letter address, and the stream goes on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql.types import BinaryType, StructType

from atalanta.client import Message, blocking
from atalanta.message.codec import encode_message
from atalanta.message.message import TEXT
from atalanta.message.message import Message as BrokerMessage
from atalanta.spark.arrow.columns import BatchBuilder
from atalanta.spark.arrow.schema import COLUMNS
from atalanta.spark.errors import LeaseTaken, OptionError, Undecodable
from atalanta.spark.gateway.core_gateway import connect
from atalanta.spark.options import read_options
from atalanta.spark.read.stream_reader import AtalantaStreamReader
from atalanta.spark.source import AtalantaDataSource
from tests.spark.fake_node import FakeCluster, chunk_of, message
from tests.spark.nodes import PASSWORD, QUEUE, USER, BrokerCluster
from tests.spark.read.query_rig import Json, Query, add
from tests.spark.read.streaming_rig import waiting

NO_TEXT = encode_message(BrokerMessage.create("flights", b"no text", TEXT), 77)


def add_no_text(cluster: FakeCluster) -> None:
    """Another message at the first node, whose text is malformed."""
    queue = cluster.nodes[0].queue(QUEUE)
    queue.last += 1
    queue.messages[queue.last] = (0, NO_TEXT)


def planned(cluster: FakeCluster, query: Query) -> tuple[Json, Json]:
    """Sequences 1, 2 and 4 are rows at the first node, 3 is not; 1 and 2 are rows at the second."""
    add(cluster, 2)
    add_no_text(cluster)
    cluster.nodes[0].queue(QUEUE).add("row")
    start = query.reader.initialOffset()
    return start, query.plan(start)


def test_the_message_is_no_row_and_goes_to_dead_letters_once_also_when_the_batch_repeats(
    cluster: FakeCluster,
) -> None:
    query = Query(cluster, undecodable="dead-letter")
    start, end = planned(cluster, query)
    for _ in range(2):
        assert sorted(query.read(start, end)) == [1, 1, 2, 2, 4]
    dead = cluster.nodes[0].queue("DLQ").dead
    assert [encoded for encoded, _ in dead] == [NO_TEXT]
    assert dead[0][1].startswith("the body is not a text")
    query.plan(end)
    assert waiting(cluster) == [0, 0]


def test_a_node_that_is_lost_during_the_move_is_asked_again(cluster: FakeCluster) -> None:
    query = Query(cluster, undecodable="dead-letter")
    start, end = planned(cluster, query)
    node = cluster.nodes[0]
    node.dies_at["dead_letter"] = 0
    def revive() -> None:
        node.stopped.wait(10)
        node.start()

    threading.Thread(target=revive).start()
    assert sorted(query.read(start, end)) == [1, 1, 2, 2, 4]
    assert len(node.queue("DLQ").dead) == 1


def test_a_fenced_task_moves_nothing(cluster: FakeCluster) -> None:
    query = Query(cluster, undecodable="dead-letter")
    start, end = planned(cluster, query)
    parts = query.reader.partitions(start, end)
    cluster.nodes[0].do_lease(QUEUE, "spark", "another", 1000, 0)
    with pytest.raises(LeaseTaken, match="another query took over group 'spark'"):
        for part in parts:
            list(query.reader.read(part))
    assert cluster.nodes[0].queue("DLQ").dead == []


def test_messages_of_a_malformed_chunk_are_omitted_one_by_one() -> None:
    chunks = [chunk_of([(at, message("row", {"n": 1}), 0)])[1] for at in (5, 6, 7)]
    name = b"\x00\x00\x00\x02n\x00"
    chunks[1] = chunks[1].replace(name, b"\x7f" + name[1:])
    builder = BatchBuilder(COLUMNS, "q", "n", "dead-letter")
    assert builder.build(3, b"".join(chunks)).column("sequence").to_pylist() == [5, 7]
    ((sequence, why),) = builder.omitted
    assert sequence == 6 and "malformed" in why
    alone = BatchBuilder(COLUMNS, "q", "n", "dead-letter")
    assert alone.build(1, chunks[1]).num_rows == 0 and len(alone.omitted) == 1


def test_dead_letters_are_refused_for_batches_and_for_a_write_ahead_log(tmp_path: Path) -> None:
    options = {"servers": "a:1", "queue": "q", "undecodable": "dead-letter"}
    with pytest.raises(OptionError, match="is for streams"):
        AtalantaDataSource(options).reader(COLUMNS)
    folder = {"sourceMode": "wal", "walLocation": str(tmp_path)}
    with pytest.raises(OptionError, match="undecodable=dead-letter needs the log view"):
        AtalantaDataSource(options | folder).streamReader(COLUMNS)


DEAD = """<address-settings>
      <address-setting match="flights"><dead-letter-address>DLA</dead-letter-address></address-setting>"""


@pytest.mark.process
@pytest.mark.timeout(300)
def test_a_body_above_the_limit_goes_to_the_dead_letters_of_a_real_node(tmp_path: Path) -> None:
    schema = StructType().add("body", BinaryType())
    large = bytes(5 << 20)
    brokers = BrokerCluster(tmp_path, 1)
    node = brokers.nodes[0]
    xml = node.broker_xml
    text = xml.read_text()
    with brokers:
        options = {"servers": brokers.servers, "queue": QUEUE, "user": USER, "password": PASSWORD}
        options |= {"undecodable": "dead-letter", "maxBodyBytes": "1m"}
        with (
            blocking.connect(f"tcp://{node.server}", user=USER, password=PASSWORD) as connection,
            connection.producer(QUEUE) as producer,
        ):
            for one in (Message(b"before"), Message(large), Message(b"behind")):
                producer.send(one)
        reader = AtalantaStreamReader(read_options(options), schema, connect)
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())

        def rows() -> list[bytes]:
            return [
                body
                for part in reader.partitions(start, end)
                for batch in reader.read(part)
                for body in batch.column("body").to_pylist()
            ]

        with pytest.raises(Undecodable, match="It stays in the queue.* no dead-letter address"):
            rows()
        reader.stop()
        node.stop()
        with_queue = text.replace("<address-settings>", DEAD).replace(
            "<addresses>",
            '<addresses><address name="DLA"><anycast><queue name="DLQ"/></anycast></address>',
        )
        assert with_queue != text
        xml.write_text(with_queue)
        node.start()
        reader = AtalantaStreamReader(read_options(options), schema, connect)
        for _ in range(2):
            assert rows() == [b"before", b"behind"]
        assert reader.latestOffset(end, reader.getDefaultReadLimit()) == end
        reader.stop()
        assert node.position().messages == 0
        with (
            blocking.connect(f"tcp://{node.server}", user=USER, password=PASSWORD) as connection,
            connection.consumer("DLA::DLQ") as consumer,
        ):
            dead = consumer.receive(10)
            assert dead is not None and dead.body == large
            assert dead.header("_AMQ_ORIG_QUEUE") == "archive"
            assert "more than 1048576" in str(dead.header("_AMQ_ORIG_REASON"))
            assert consumer.receive(0.2) is None
