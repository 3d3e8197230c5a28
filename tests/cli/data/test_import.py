"""`atalanta data import`: an export of Artemis, written by hand in the form of XmlDataExporter."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.client import Int, Message
from atalanta.client.blocking import connect
from atalanta.client.encoding import encode_text
from tests.cli.calls import Cli, node

pytestmark = pytest.mark.process

LARGE = bytes(range(256)) * 1_000


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    with node(tmp_path_factory.mktemp("node")) as found:
        yield found


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Cli]:
    with node(tmp_path / "node") as found:
        yield found


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode("ascii")


def export() -> str:
    pieces = "\n".join(
        f"<![CDATA[{encoded(LARGE[start : start + 1_000])}]]>" for start in range(0, len(LARGE), 1_000)
    )
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<activemq-journal>
   <bindings>
      <address-binding routing-types="ANYCAST" name="orders" id="1"/>
      <address-binding routing-types="MULTICAST,ANYCAST" name="unheard" id="1"/>
      <queue-binding address="orders" filter-string="" name="orders" id="2" routing-type="ANYCAST"/>
      <queue-binding address="news" filter-string="n &gt; 1" name="paper" id="3" routing-type="MULTICAST"/>
      <queue-binding address="news" filter-string="" name="radio" id="4" routing-type="MULTICAST"/>
      <queue-binding address="news" filter-string="" name="empty" id="5" routing-type="MULTICAST"/>
   </bindings>
   <messages>
      <message id="10" priority="7" expiration="0" timestamp="1700000000000" type="text"
               user-id="7da096d6-e6f3-11f1-927e-db8e28600313">
         <properties>
            <property name="n" value="3" type="integer"/>
            <property name="flag" value="true" type="boolean"/>
            <property name="who" value="S&#228;ge" type="simple-string"/>
            <property name="raw" value="-_8=" type="bytes"/>
            <property name="nothing" value="_AMQ_NULL" type="bytes"/>
            <property name="_AMQ_DUPL_ID" value="once" type="simple-string"/>
            <property name="_AMQ_GROUP_ID" value="g1" type="simple-string"/>
            <property name="_AMQ_ROUTING_TYPE" value="0" type="byte"/>
         </properties>
         <queues><queue name="paper"/><queue name="radio"/></queues>
         <body><![CDATA[{encoded(encode_text("größer"))}]]></body>
      </message>
      <message id="11" priority="4" expiration="0" timestamp="1700000000001" type="bytes">
         <properties/>
         <queues><queue name="orders"/></queues>
         <body isLarge="true">
{pieces}
         </body>
      </message>
      <message id="12" priority="4" expiration="0" timestamp="1700000000002" type="default">
         <properties/>
         <queues><queue name="orders"/><queue name="unnamed"/></queues>
         <body><![CDATA[]]></body>
      </message>
      <message id="13" priority="4" expiration="0" timestamp="1700000000003" type="default">
         <properties/>
         <queues><queue name="$.artemis.internal.sf.my-cluster.x"/></queues>
         <body><![CDATA[]]></body>
      </message>
      <message id="14" priority="4" expiration="0" timestamp="1700000000004" type="default">
         <properties><property name="_AMQ_DUPL_ID" value="once" type="simple-string"/></properties>
         <queues><queue name="radio"/></queues>
         <body><![CDATA[]]></body>
      </message>
   </messages>
</activemq-journal>
"""


def test_queues_and_messages_arrive_as_they_were(tmp_path: Path, cli: Cli) -> None:
    file = tmp_path / "export.xml"
    file.write_text(export(), encoding="utf-8")
    cli("data", "import", str(file))
    assert "1 message of $.artemis.internal.sf.my-cluster.x not imported" in cli.errors
    with connect(cli.environment["ATALANTA_URL"]) as client:
        for queue in ("paper", "radio"):
            message = client.consumer(f"news::{queue}").receive(timeout_s=20)
            assert message is not None and message.text == "größer"
            assert (message.address, message.queue, message.duplicate_id) == ("news", queue, "once")
            assert (message.priority, message.timestamp_ms) == (7, 1_700_000_000_000)
            assert str(message.user_id) == "7da096d6-e6f3-11f1-927e-db8e28600313"
            assert message.durable and message.group_id == "g1"
            assert message.properties == {
                "n": 3, "flag": True, "who": "Säge", "raw": b"\xfb\xff", "nothing": None,
            }  # fmt: skip
            assert isinstance(message.properties["n"], Int)
        assert client.query_queue("radio").message_count == 2  # the second was not taken for a repeat
        unheard = client.query_address("unheard")
        assert unheard.supports_anycast and unheard.supports_multicast
        consumer = client.consumer("orders")
        large, small = consumer.receive(timeout_s=20), consumer.receive(timeout_s=20)
        assert large is not None and large.body == LARGE and large.type == 4 and large.address == "orders"
        assert small is not None and small.body == b"" and small.type == 0
        assert consumer.receive(timeout_s=0) is None
        assert client.consumer("unnamed").receive(timeout_s=20) is not None
        producer = client.producer("news")
        for number in (1, 2):
            producer.send(Message(text=str(number), properties={"n": number}))
        assert client.query_queue("paper").filter == "n > 1"
        assert client.query_queue("empty").message_count == 2


def counts(cli: Cli) -> dict[str, int]:
    with connect(cli.environment["ATALANTA_URL"]) as client:
        names = ("paper", "radio", "orders", "unnamed", "empty")
        return {name: client.query_queue(name).message_count for name in names}


def test_a_dry_run_sends_nothing_and_a_second_run_only_what_is_new(tmp_path: Path, fresh: Cli) -> None:
    file = tmp_path / "export.xml"
    file.write_text(export(), encoding="utf-8")
    table = fresh("data", "import", str(file), "--dry-run")
    assert "is created" in table and "MULTICAST" in table and "would send 6 messages to 5 queues" in fresh.errors
    with connect(fresh.environment["ATALANTA_URL"]) as client:
        assert not client.query_queue("paper").exists and not client.query_address("news").exists
    (planned,) = fresh.rows("data", "import", str(file), "--dry-run")
    assert planned["messages"] == 6 and planned["left"] == {"$.artemis.internal.sf.my-cluster.x": 1}
    assert {row["queue"]: (row["address"], row["messages"], row["exists"]) for row in planned["queues"]} == {
        "empty": ("news", 0, False), "orders": ("orders", 2, False), "paper": ("news", 1, False),
        "radio": ("news", 2, False), "unnamed": ("unnamed", 1, False),
    }  # fmt: skip
    assert planned["created"] == {
        "addresses": ["news", "orders", "unheard", "unnamed"],
        "queues": ["empty", "orders", "paper", "radio", "unnamed"],
    }
    (done,) = fresh.rows("data", "import", str(file))
    assert done == {"sent": 6, "repeated": 0, "left": planned["left"], "created": planned["created"]}
    first = counts(fresh)
    assert first == {"paper": 1, "radio": 2, "orders": 2, "unnamed": 1, "empty": 0}
    fresh("consume", "orders", "--count", "1")
    assert fresh.rows("data", "import", str(file))[0]["repeated"] == 6
    assert counts(fresh) == {**first, "orders": 1}
    fresh("data", "import", str(file))
    assert "sent 0 messages; 6 messages of an earlier import were there already" in fresh.errors
    (planned,) = fresh.rows("data", "import", str(file), "--dry-run")
    assert {row["queue"]: row["messages_there"] for row in planned["queues"]} == {**first, "orders": 1}
    # Another Artemis has the same numbers for other messages.
    file.write_text(export().replace("1700000000002", "1700000000009").replace('id="14"', 'id="99"'), encoding="utf-8")
    assert fresh.rows("data", "import", str(file))[0]["sent"] == 3


def test_a_broken_file_or_another_address_sends_nothing(tmp_path: Path, fresh: Cli) -> None:
    file = tmp_path / "export.xml"
    file.write_text(export()[:-40], encoding="utf-8")
    fresh("data", "import", str(file), status=65)
    file.write_text(export(), encoding="utf-8")
    with connect(fresh.environment["ATALANTA_URL"]) as client:
        client.create_queue("radio", "other", "multicast")
        fresh("data", "import", str(file), status=1)
        assert "queue radio exists at address other, in the export it is one of news" in fresh.errors
        assert not client.query_queue("orders").exists
        client.delete_queue("radio")
        client.create_queue("radio", "news", "multicast", filter="n = 77")
    fresh("data", "import", str(file))
    assert "created addresses: orders, unheard, unnamed\ncreated queues: empty, orders, paper, unnamed" in fresh.errors
    assert "queue radio stays as it is: its filter is n = 77, in the export there is none" in fresh.errors
    assert counts(fresh)["radio"] == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("<broker/>", "<broker> is not the root"),
        (export().replace("[CDATA[", "[CDATA[*", 1), ":25: not base64"),
        (export()[:-300], "unclosed token"),
        ("<!DOCTYPE activemq-journal><activemq-journal/>", "DOCTYPE"),
    ],
)
def test_a_file_that_is_no_export_is_refused_with_its_line(
    tmp_path: Path, cli: Cli, text: str, why: str
) -> None:
    file = tmp_path / "export.xml"
    file.write_text(text, encoding="utf-8")
    cli("data", "import", str(file), status=65)
    assert f"{file}:" in cli.errors and why in cli.errors
