"""Rows that a node does not take: the sink's error says why, names address and user or id, and nothing of the batch
arrives."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType

from atalanta.client import Message, MessageDropped, blocking
from atalanta.spark.errors import GatewayError, LoginRefused, SparkSourceError
from atalanta.spark.gateway.core_gateway import CoreGateway, connect
from atalanta.spark.gateway.gateway import Credentials
from atalanta.spark.options import write_options
from atalanta.spark.write.branch_name import BranchName
from atalanta.spark.write.sink import PartitionWriter, Written
from tests.broker_process import BrokerProcess
from tests.broker_xml import USE, write_broker_xml, write_users
from tests.ports import free_port

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

USER, READER, WRITER, PASSWORD = "spark", "reader", "writer", "a secret"
SETTINGS = """<address-settings>
  <address-setting match="#"><auto-create-addresses>false</auto-create-addresses>
    <auto-create-queues>false</auto-create-queues></address-setting>
  <address-setting match="fail"><max-size-bytes>10000</max-size-bytes>
    <address-full-policy>FAIL</address-full-policy></address-setting>
  <address-setting match="drop"><max-size-bytes>10000</max-size-bytes>
    <address-full-policy>DROP</address-full-policy></address-setting>
  <address-setting match="block"><max-size-bytes>10000</max-size-bytes>
    <address-full-policy>BLOCK</address-full-policy></address-setting>
</address-settings>
<addresses>"""
QUEUES = ("out", "fail", "drop", "block", "atalanta.spark.decisions")
ROWS = StructType().add("value", StringType()).add("address", StringType()).add("duplicate_id", StringType())
Row = tuple[str, str, str | None]


@dataclass
class Node:
    server: str

    def client(self) -> blocking.Connection:
        return blocking.connect(f"tcp://{self.server}?producerWindowSize=2000", user=USER, password=PASSWORD)

    def texts(self, queue: str) -> list[str]:
        """Takes all messages of a queue."""
        found: list[str] = []
        with self.client() as connection, connection.consumer(queue) as consumer:
            while (message := consumer.receive(0.3)) is not None:
                found.append(str(message.text))
                message.acknowledge()
        return found

    def prepared(self) -> list[str]:
        gateway = connect(self.server, Credentials(USER, PASSWORD, 5.0, 10.0))
        try:
            return gateway.prepared_branches()
        finally:
            gateway.close()

    def writer(self, user: str = USER, **options: str) -> PartitionWriter:
        given = {
            "servers": self.server, "user": user, "password": PASSWORD, "routing": "anycast", "requestTimeout": "10s",
        }  # fmt: skip
        return PartitionWriter(write_options(given | options), ROWS, connect)

    def write(self, *rows: Row, user: str = USER, batch: int = 0, query: str = "q", **options: str) -> Written:
        return self.writer(user, **options).write(iter([records(*rows)]), query, batch, 0)


def records(*rows: Row) -> pa.RecordBatch:
    columns = ("value", "address", "duplicate_id")
    return pa.RecordBatch.from_pylist(
        [dict(zip(columns, row, strict=True)) for row in rows],
        pa.schema([(name, pa.string()) for name in columns]),
    )


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    port = free_port()
    addresses = "".join(
        f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in QUEUES[:-1]
    )
    roles = {name: "all,readers,writers" for name in USE} | {"send": "all,writers", "manage": "all"}
    rights = "".join(f'<permission type="{name}" roles="{each}"/>' for name, each in roles.items())
    security = f'<security-settings><security-setting match="#">{rights}</security-setting></security-settings>'
    more = security + SETTINGS + addresses + "</addresses>"
    broker_xml = write_broker_xml(tmp_path_factory.mktemp("node"), port, more=more, security=True)
    users = {"all": USER, "readers": READER, "writers": WRITER}
    write_users(broker_xml, dict.fromkeys(users.values(), PASSWORD), users)
    with BrokerProcess(broker_xml):
        yield Node(f"127.0.0.1:{port}")


def rows(address: str, count: int = 3, name: str = "row") -> list[Row]:
    return [(f"{name} {number}", address, None) for number in range(count)]


def test_a_user_who_may_not_send_is_named_with_address_and_permission(node: Node) -> None:
    with pytest.raises(LoginRefused) as caught:
        node.write(*rows("out"), user=READER)
    text = str(caught.value)
    assert all(part in text for part in (node.server, "User: reader", "permission='SEND'", "address out")), text
    assert (node.texts("out"), node.prepared()) == ([], [])


def test_a_missing_address_is_named_with_what_to_do(node: Node) -> None:
    with pytest.raises(GatewayError, match=r"no\.such\.address") as caught:
        node.write(*rows("out"), *rows("no.such.address"))
    assert "create" in str(caught.value)
    assert (node.texts("out"), node.prepared()) == ([], [])


def test_a_full_address_that_fails_is_named(node: Node) -> None:
    with pytest.raises(GatewayError, match="address fail is full") as caught:
        node.write(*rows("out"), *rows("fail", 100))
    assert "address-full-policy" in str(caught.value)
    assert (node.texts("out"), node.texts("fail"), node.prepared()) == ([], [], [])


def fill_and_drop(node: Node) -> None:
    with node.client() as connection:
        producer = connection.producer("drop", "anycast")
        while True:
            try:
                producer.send(Message(text="old" * 200))
            except MessageDropped:
                return


def test_a_full_address_that_drops_takes_no_part_of_a_batch(node: Node) -> None:
    with pytest.raises(GatewayError, match="address drop is full and has dropped"):
        node.write(*rows("out"), *rows("drop", 200))  # fills it by itself
    assert (node.texts("out"), node.texts("drop"), node.prepared()) == ([], [], [])
    fill_and_drop(node)
    with pytest.raises(GatewayError, match="address drop is full and has dropped"):
        node.write(*rows("out"), *rows("drop", 1))
    assert (node.texts("out"), set(node.texts("drop")), node.prepared()) == ([], {"old" * 200}, [])


def untold(node: Node, user: str) -> CoreGateway:
    """Returns a gateway that takes our node for a broker that does not tell what it drops, as Artemis."""
    gateway = connect(node.server, Credentials(user, PASSWORD, 5.0, 10.0))
    assert isinstance(gateway, CoreGateway)
    gateway.drops._told = False
    return gateway


def test_an_address_that_drops_is_refused_at_a_broker_that_does_not_tell(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    gateway = untold(node, USER)
    rejected, branch = (str(BranchName.new("untold", 0, number)) for number in range(2))
    writer = node.writer().rows
    with pytest.raises(GatewayError, match="address drop has the address-full-policy DROP, and this broker confirms"):
        gateway.prepare(list(writer.messages(records(*rows("out"), *rows("drop")))), rejected)
    assert gateway.prepared_branches() == []
    gateway.prepare(list(writer.messages(records(*rows("out")))), branch)
    assert gateway.prepared_branches() == [branch]
    assert gateway.roll_back_branch(branch)
    gateway.close()
    assert "cannot be read" not in caplog.text


def test_a_policy_that_the_user_may_not_ask_for_is_logged_once(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    messages = list(node.writer().rows.messages(records(*rows("out"))))
    for number in range(2):
        gateway = untold(node, WRITER)
        branch = str(BranchName.new("unasked", 0, number))
        gateway.prepare(messages, branch)
        assert gateway.roll_back_branch(branch)
        gateway.close()
    assert caplog.text.count("the address-full-policy of address out cannot be read") == 1
    assert "permission manage" in caplog.text


def test_rows_that_were_prepared_arrive_although_the_address_is_full_at_the_commit(node: Node) -> None:
    written = [node.write(*rows("drop", 20, f"part {number}"), query="full") for number in range(3)]
    fill_and_drop(node)
    node.writer().commit("full", 0, written)
    texts = [text for text in node.texts("drop") if text.startswith("part")]
    assert sorted(texts) == sorted(f"part {one} {number}" for one in range(3) for number in range(20))


def test_an_address_that_blocks_is_told_and_ends_the_write(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "atalanta.spark")
    written = node.write(*rows("block", 60, "old"), query="blocked")
    node.writer().commit("blocked", 0, [written])
    with pytest.raises(GatewayError) as caught:
        node.write(*rows("out"), *rows("block", 200), blockTimeout="1500ms")
    text = str(caught.value)
    assert all(part in text for part in (node.server, "address block", "1.5 s (blockTimeout)", "BLOCK")), text
    assert "address block" in caplog.text and "waits" in caplog.text
    assert (node.texts("out"), node.prepared()) == ([], [])
    assert set(node.texts("block")) == {f"old {number}" for number in range(60)}


def test_a_write_goes_on_when_a_blocked_address_has_room_again(node: Node) -> None:
    node.writer().commit("blocked", 1, [node.write(*rows("block", 60, "old"), query="blocked", batch=1)])
    done: list[Written] = []
    task = threading.Thread(
        target=lambda: done.append(node.write(*rows("block"), query="blocked", batch=2, blockTimeout="60s"))
    )
    task.start()
    task.join(1.0)
    assert task.is_alive()
    assert len(node.texts("block")) == 60
    task.join(20)
    node.writer().commit("blocked", 2, done)
    assert node.texts("block") == [text for text, _, _ in rows("block")]


def test_a_repeated_duplicate_id_is_named_and_nothing_is_sent(node: Node) -> None:
    once: Row = ("first", "out", "id-1")
    node.writer().commit("dup", 0, [node.write(once, query="dup")])
    assert node.texts("out") == ["first"]
    for given in ([("second", "out", None), ("again", "out", "id-1")], [("a", "out", "id-2"), ("b", "out", "id-2")]):
        with pytest.raises(SparkSourceError) as caught:
            node.write(*given, query="dup", batch=1)
        text = str(caught.value)
        assert "duplicate_id" in text and "address=out" in text and str(given[1][2]) in text, text
    assert (node.texts("out"), node.prepared()) == ([], [])


def test_a_decided_batch_with_duplicate_ids_is_finished_by_its_repeat(node: Node) -> None:
    """The node has the ids already, from the very rows that the repeat writes again."""
    given: list[Row] = [(f"row {number}", "out", f"own-{number}") for number in range(3)]
    node.writer().commit("dup2", 0, [node.write(*given, query="dup2")])
    node.writer().commit("dup2", 0, [node.write(*given, query="dup2")])
    assert (sorted(node.texts("out")), node.prepared()) == ([text for text, _, _ in given], [])


def test_a_decision_waits_for_a_full_address_no_longer_than_a_write(tmp_path: Path) -> None:
    """The global limit is reached: nobody gets credits, and the driver writes its decision."""
    port = free_port()
    more = "<global-max-size>20000</global-max-size>" + SETTINGS.replace(
        '<address-setting match="#">', '<address-setting match="#"><address-full-policy>BLOCK</address-full-policy>'
    ).replace("false", "true").replace("<addresses>", "")
    with BrokerProcess(write_broker_xml(tmp_path, port, more=more)):
        node = Node(f"127.0.0.1:{port}")
        written = node.write(*rows("out"), query="slow")
        with node.client() as connection:
            producer = connection.producer("filler", "anycast")
            in_a_row = 0
            while in_a_row < 50:  # 0.5 s without credits
                connection.refresh()
                if producer.blocked:
                    in_a_row += 1
                    time.sleep(0.01)
                else:
                    in_a_row = 0
                    producer.send_soon(Message(bytes(1_000)))
            with pytest.raises(GatewayError, match=r"address atalanta\.spark\.decisions.*1 s \(blockTimeout\)"):
                node.writer(blockTimeout="1s").commit("slow", 0, [written])
        node.texts("filler")
        node.writer(blockTimeout="60s").commit("slow", 0, [node.write(*rows("out"), query="slow")])
        assert sorted(node.texts("out")) == [text for text, _, _ in rows("out")]


def test_a_repeat_of_an_undecided_batch_with_duplicate_ids_arrives(node: Node) -> None:
    """The branches of a driver that was killed before its decision have the ids, too."""
    given: list[Row] = [(f"row {number}", "out", f"left-{number}") for number in range(3)]
    node.write(*given, query="left")
    node.writer().commit("left", 0, [node.write(*given, query="left")])
    assert (sorted(node.texts("out")), node.prepared()) == ([text for text, _, _ in given], [])


def test_one_of_two_partitions_with_one_duplicate_id_arrives(node: Node) -> None:
    written = [node.write((name, "out", "shared"), query="shared") for name in "ab"]
    node.writer().commit("shared", 0, written)
    assert (node.texts("out"), node.prepared()) == (["a"], [])
