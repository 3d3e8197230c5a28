"""`data export` of a node, `data import` into another one: what clients see is the same."""

from __future__ import annotations

import json
import signal
import uuid
from pathlib import Path

import pytest

from atalanta.client import Int, Message, QueueKind
from atalanta.client.blocking import Connection, connect
from atalanta.client.encoding import python_values
from tests.broker_process import BrokerProcess
from tests.broker_xml import write_broker_xml
from tests.cli.calls import Cli, node
from tests.ports import free_port

pytestmark = pytest.mark.process

QUEUES = (
    "orders", "paged", "a.news", "b.news", "every", "ring", "picky", "latest", "DLQ", "late", "large", "named", "empty",
)  # fmt: skip
SETTINGS = """<address-settings>
<address-setting match="paged"><max-size-messages>50</max-size-messages><address-full-policy>PAGE</address-full-policy>
</address-setting>
<address-setting match="orders"><dead-letter-address>DLQ</dead-letter-address></address-setting></address-settings>"""
OF_THE_NODE = ("more", "consumer_count")
KINDS = {
    "ring": QueueKind(ring_size=2, auto_delete=False), "latest": QueueKind(last_value=True, non_destructive=True),
    "picky": QueueKind(exclusive=True, group_buckets=4, group_first_key="first", auto_delete=False),
}  # fmt: skip


def fill(client: Connection) -> None:
    client.create_address("news", "multicast")
    client.create_address("unheard", "anycast", "multicast")
    client.create_queue("a.news", "news", "multicast")
    client.create_queue("b.news", "news", "multicast", filter="n > 1")
    client.create_queue("every", "#.eu", "multicast")
    client.create_queue("DLQ", routing="anycast")
    client.create_queue("empty", "news", "multicast", max_consumers=3, purge_on_no_consumers=True, filter="n = 77")
    for name, kind in KINDS.items():
        client.create_queue(name, routing="anycast", kind=kind)
    for number in range(3):
        client.producer("news", "multicast").send(Message(str(number), properties={"n": Int(number)}))
        client.producer("ring").send(Message(str(number)))
        client.producer("latest").send(Message(str(number), properties={"_AMQ_LVQ_NAME": "tea"}))
    gone = client.consumer("a.news").receive(10)
    assert gone is not None
    gone.acknowledge()
    client.producer("topic.eu", "multicast").send(Message("wide"))
    orders = client.producer("orders", "anycast")
    orders.send(Message("rejected", duplicate_id="own"))
    with client.consumer("orders") as consumer:
        rejected = consumer.receive(10)
        assert rejected is not None
        rejected.reject()
    orders.send(
        Message(
            map={"a": 1}, priority=7, user_id=uuid.uuid4(), group_id="g", correlation_id=b"\0\xff", reply_to="queue://r",
            properties={"raw": b"\xfe", "none": None, "text": "größer"}, expires_at_ms=4_000_000_000_000,
        )
    )  # fmt: skip
    paged = client.producer("paged", "anycast")
    for number in range(200):
        paged.send_soon(Message(bytes(1_000), properties={"number": number}))
    client.producer("late", "anycast").send(Message("late"), delay_s=3_600)
    client.producer("large", "anycast").send(Message(bytes(range(256)) * 2_000))
    client.create_queue("named", "both", "anycast")
    client.producer("both::named").send(Message("by name"))
    paged.send(Message(bytes(300_000)))


def contents(client: Connection) -> dict[str, object]:
    found: dict[str, object] = {}
    for queue in QUEUES:
        definition = client.query_queue(queue)
        messages = []
        for message in client.consumer(queue, browse=True):
            properties = python_values(message._message.properties)
            address = message.address.partition("::")[0]
            heads = (address, message.type, message.priority, message.durable, message.user_id, message.timestamp_ms)
            messages.append((message.body, properties, heads, message.expires_at_ms))
        attributes = [f"{name}={value}" for name, value in vars(definition).items() if name not in OF_THE_NODE]
        found[queue] = [*attributes, *messages]
    return found


def test_an_imported_export_is_the_same(tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "all.jsonl"
    with BrokerProcess(write_broker_xml(tmp_path, port, more=SETTINGS)) as broker:
        with connect(f"tcp://127.0.0.1:{port}") as client:
            fill(client)
            before = contents(client)
        broker.end(signal.SIGTERM)
    Cli()("data", "export", str(tmp_path), "-o", str(out))
    with node(tmp_path / "other", SETTINGS) as cli:
        cli("produce", "x", "--file", str(out), "--json-lines", status=2)
        assert "data import" in cli.errors
        (planned,) = cli.rows("data", "import", str(out), "--dry-run")
        (done,) = cli.rows("data", "import", str(out))
        assert done["sent"] == planned["messages"] and done["repeated"] == 0
        with connect(cli.environment["ATALANTA_URL"]) as client:
            after = contents(client)
            for queue in QUEUES:
                assert after[queue] == before[queue]
            assert client.query_queue("late").message_count == 1
            types = client.query_address("unheard")
            assert types.supports_anycast and types.supports_multicast
            client.producer("orders").send(Message("again", duplicate_id="own"))  # it was taken at the other node
            (again,) = cli.rows("data", "import", str(out))
            nothing: dict[str, list[str]] = {"addresses": [], "queues": []}
            assert again == {**done, "sent": 0, "repeated": done["sent"], "created": nothing}
            assert client.query_queue("a.news").message_count == 2


def test_a_damaged_large_body_is_named_and_the_rest_is_exported(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(write_broker_xml(tmp_path, port)) as broker:
        with connect(f"tcp://127.0.0.1:{port}") as client:
            for size in (200_000, 300_000, 10):
                client.producer("q", "anycast").send(Message(bytes(size)))
        broker.end(signal.SIGTERM)
    body = sorted((tmp_path / "data" / "largemessages").rglob("*.msg"))[0]
    content = body.read_bytes()
    body.write_bytes(content[:-1] + b"x")
    cli = Cli()
    lines = cli("data", "export", str(tmp_path), "--queue", "q", status=1).splitlines()
    assert len(lines) == 2 and "of q not exported" in cli.errors and body.name in cli.errors
    body.write_bytes(content)
    assert len(cli("data", "export", str(tmp_path), "--queue", "q").splitlines()) == 3


def test_lines_without_definitions_and_lines_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    line = {"message_id": 1, "queue": "q", "address": "a", "routing_type": "multicast", "text": "x", "timestamp": 1}
    file.write_text(json.dumps(line) + "\n" + json.dumps({**line, "message_id": 2}) + "\n")
    with node(tmp_path / "node") as cli:
        assert cli.rows("data", "import", str(file))[0]["sent"] == 2
        file.write_text(json.dumps({**line, "delivery_count": 3}) + "\n")
        (again,) = cli.rows("data", "import", str(file))
        assert (again["sent"], again["repeated"], again["left"]) == (0, 1, {})
        assert cli.rows("browse", "a::q")[0]["address"] == "a"
        for text, why in (
            ('{"text":"x"}', "it has no queue"), ("{", "not JSON"), ('{"export":{"version":9}}', "version 9"),
            ('{"export_queue":{"name":"q"}}', "routing_type"), ("hello", "neither XML"),
        ):  # fmt: skip
            file.write_text(text)
            cli("data", "import", str(file), status=65)
            assert str(file) in cli.errors and why in cli.errors
