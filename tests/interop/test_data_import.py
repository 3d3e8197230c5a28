"""The output of `artemis data exp` for a real data folder, sent by `atalanta data import` to a node of ours."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from atalanta.client import Byte, Char, Float, Int, Message, Property, Short
from atalanta.client.blocking import Connection, connect
from atalanta.client.encoding import python_values
from tests.cli.calls import Cli
from tests.interop.harness.broker_xml import Shape
from tests.interop.harness.jms import PASSWORD, USER, Jms
from tests.interop.harness.lineup import Lineup
from tests.interop.harness.node import BrokerProcess
from tests.interop.harness.tools import SMALL_JVM, java

pytestmark = [pytest.mark.interop, pytest.mark.timeout(300)]

KINDS = ("text", "bytes", "map", "stream", "object", "empty")
LARGE_BYTES = 150_000
HOUR_MS = 3_600_000
ADDRESSES = """<address name="both"><anycast><queue name="both"/></anycast>
<multicast><queue name="both.copy"><filter string="kind = 'kept'"/></queue></multicast></address>
<address name="unheard"><anycast/><multicast/></address>
<address name="prices"><anycast><queue name="prices" last-value="true"/></anycast></address>"""
QUEUES = (
    "kinds", "compressed", "paging.q", "groups", "late", "typed", "prices", "DLQ", "both::both",
    "both::both.copy", "news::desk.reader", "once",
)  # fmt: skip


def fill(jms: Jms, node: BrokerProcess) -> None:
    """Puts messages of all kinds into its queues."""
    jms.open("plain", node, client_id="desk")
    jms.open("packed", node, "compressLargeMessage=true")
    jms.producer("kinds", "plain", "queue:kinds")
    for number, kind in enumerate(KINDS):
        for size in (100, LARGE_BYTES):
            jms("send kind", "kinds", kind, number, size)
    jms.producer("compressed", "packed", "queue:compressed")
    for kind in ("text", "bytes"):
        jms("send kind", "compressed", kind, 1, LARGE_BYTES)
    jms.producer("paged", "plain", "queue:paging.q")
    jms.send("paged", range(400), length=1_000)
    jms.consumer("paged.reader", "plain", "queue:paging.q", mode="each")
    assert jms.receive("paged.reader", 3) == ["0", "1", "2"]
    jms.producer("groups", "plain", "queue:groups")
    for group in ("a", "b"):
        jms.send("groups", range(3), JMSXGroupID=group)
    jms.producer("late", "plain", "queue:late")
    jms.send("late", range(1), delay=HOUR_MS)
    jms.producer("prices", "plain", "queue:prices")
    jms.send("prices", range(3), _AMQ_LVQ_NAME="tea")
    jms.consumer("reader", "plain", "durable:news:reader")
    jms.producer("news", "plain", "topic:news")
    jms.send("news", range(3))
    jms.producer("rejected", "plain", "queue:redeliver.me")
    for queue in ("redeliver.me", "redeliver.too"):
        jms.producer(queue, "plain", f"queue:{queue}")
        jms.send(queue, range(1), dup="same")
        jms.consumer(f"{queue}.reader", "plain", f"queue:{queue}", mode="transacted")
        for _ in range(3):
            jms.receive(f"{queue}.reader", 1)
            jms("rollback", f"{queue}.reader")
    jms.close_all("plain", "packed")
    with connect(f"tcp://127.0.0.1:{node.port}", user=USER, password=PASSWORD) as client:
        values: dict[str, Property] = {
            "boolean": True, "byte": Byte(-1), "short": Short(-2), "int": Int(-3), "long": -4, "float": Float(0.5),
            "huge": 1e300, "nan": float("inf"), "char": Char("<"), "string": 'a "b" & <c> ä€', "none": None,
            "bytes": bytes(range(256)), "empty": "",
        }  # fmt: skip
        client.producer("typed", routing="anycast").send(Message(text="\x00\x1b<]]>\n", properties=values, priority=9))
        client.producer("once", routing="anycast").send(Message(b"x", duplicate_id="once"))
        for kind in ("kept", "dropped"):
            client.producer("both", routing="multicast").send(Message(kind, properties={"kind": kind}))
            client.producer("both", routing="anycast").send(Message(kind))


def contents(client: Connection) -> dict[str, list[tuple[object, ...]]]:
    """All that is in the queues, in order, and their number, scheduled ones included."""
    found: dict[str, list[tuple[object, ...]]] = {}
    for queue in QUEUES:
        found[queue] = [(client.query_queue(queue.rpartition("::")[2]).message_count, (), (), (), "")]
        for message in client.consumer(queue, browse=True):
            properties = python_values(message._message.properties)
            properties.pop("_AMQ_ROUTING_TYPE", None)  # dead letters of Artemis have none
            typed = {name: (type(value), value) for name, value in properties.items()}
            times = (message.timestamp_ms, message.expires_at_ms)
            heads = (message.type, message.priority, message.durable, message.user_id)
            found[queue].append((message.body, typed, times, heads, message.address))
    return found


def exported(node: BrokerProcess, file: Path) -> None:
    """`artemis data exp` of the stopped node."""
    command = [str(node.folder / "bin" / "artemis"), "data", "exp", "--output", str(file)]
    environment = {**os.environ, "JAVACMD": java(), "JAVA_ARGS": " ".join(("-Xmx256M", *SMALL_JVM))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=90)
    assert file.exists() and done.returncode == 0, done.stdout + done.stderr


def exported_by_artemis(
    jms: Jms, brokers: Lineup, file: Path
) -> tuple[BrokerProcess, dict[str, list[tuple[object, ...]]]]:
    """Fills a real Artemis, and exports it. Returns it, stopped, and what it had."""
    (old,) = brokers.cluster("artemis", lambda index, ports: Shape(addresses=ADDRESSES))
    old.start()
    fill(jms, old)
    with connect(f"tcp://127.0.0.1:{old.port}", user=USER, password=PASSWORD) as client:
        before = contents(client)
    old.stop()
    exported(old, file)
    return old, before


def test_all_that_a_real_artemis_had_is_here(jms: Jms, brokers: Lineup, tmp_path: Path) -> None:
    _, before = exported_by_artemis(jms, brokers, tmp_path / "export.xml")
    ours = brokers.single("atalanta")
    ours.start()
    cli = Cli(f"tcp://127.0.0.1:{ours.port}")
    cli.environment |= {"ATALANTA_USER": USER, "ATALANTA_PASSWORD": PASSWORD}
    cli("data", "import", str(tmp_path / "export.xml"))
    with connect(f"tcp://127.0.0.1:{ours.port}", user=USER, password=PASSWORD) as client:
        after = contents(client)
        assert {queue: len(found) for queue, found in after.items()} == {
            "kinds": 13, "compressed": 3, "paging.q": 398, "groups": 7, "late": 1, "typed": 2, "prices": 2, "DLQ": 3,
            "both::both": 3, "both::both.copy": 2, "news::desk.reader": 4, "once": 2,
        }  # fmt: skip
        assert after == before and [each[0] for each in after["late"]] == [1]
        types = client.query_address("unheard")
        assert types.supports_anycast and types.supports_multicast
    (again,) = cli.rows("data", "import", str(tmp_path / "export.xml"))
    assert again["sent"] == 0 and again["repeated"] == sum(int(str(found[0][0])) for found in before.values())
    jms.open("new", ours)
    jms.consumer("new.kinds", "new", "queue:kinds")
    lines = jms("receive kinds", "new.kinds", len(KINDS) * 2, 5_000)
    assert [line.split()[0].partition("|")[0] for line in lines] == [kind for kind in KINDS for _ in range(2)]
    assert all("string=String:säge" in line for line in lines)
    jms.close_all("new")


def test_artemis_own_import_puts_messages_into_their_queues_only(
    jms: Jms, brokers: Lineup, tmp_path: Path
) -> None:
    old, before = exported_by_artemis(jms, brokers, tmp_path / "export.xml")
    ours = brokers.single("atalanta")
    text = (tmp_path / "export.xml").read_text(encoding="utf-8")
    # The dead letters share a duplicate id, by which Artemis' tool fails at any broker.
    (tmp_path / "export.xml").write_text(re.sub('<property name="_AMQ_DUPL_ID"[^>]*>', "", text), encoding="utf-8")
    ours.start()
    url = f"tcp://127.0.0.1:{ours.port}"
    command = [str(old.folder / "bin" / "artemis"), "data", "imp", "--input", str(tmp_path / "export.xml")]
    command += ["--url", url, "--user", USER, "--password", PASSWORD]
    environment = {**os.environ, "JAVACMD": java(), "JAVA_ARGS": " ".join(("-Xmx256M", *SMALL_JVM))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    with connect(url, user=USER, password=PASSWORD) as client:
        after = contents(client)
        for queue in QUEUES:
            assert [(each[0], each[4]) for each in after[queue]] == [(each[0], each[4]) for each in before[queue]]


def test_an_export_of_a_node_comes_into_the_queues_of_a_real_artemis(brokers: Lineup, tmp_path: Path) -> None:
    (real,) = brokers.cluster("artemis", lambda index, ports: Shape(addresses=ADDRESSES))
    file = tmp_path / "lines.jsonl"
    head = {"timestamp": 1_700_000_000_000, "address": "news", "routing_type": "multicast"}
    queues = [{"export": {"version": 1, "node_id": "one"}}] + [
        {"export_queue": {"name": name, "address": "news", "routing_type": "multicast", "ring_size": 50}}
        for name in ("one", "two")
    ]
    messages = [
        {**head, "message_id": n, "queue": name, "text": f"{name} {n}"} for n in (1, 2) for name in ("one", "two")
    ]
    file.write_text("\n".join(json.dumps(line) for line in (*queues, *messages)), encoding="utf-8")
    real.start()
    cli = Cli(f"tcp://127.0.0.1:{real.port}")
    cli.environment |= {"ATALANTA_USER": USER, "ATALANTA_PASSWORD": PASSWORD}
    for _ in range(2):
        cli("data", "import", str(file))
        with connect(f"tcp://127.0.0.1:{real.port}", user=USER, password=PASSWORD) as client:
            for name in ("one", "two"):
                found = [(each.address, each.text) for each in client.consumer(f"news::{name}", browse=True)]
                assert found == [("news", f"{name} 1"), ("news", f"{name} 2")]
