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
        assert large is not None and large.body == LARGE and large.type == 4
        assert small is not None and small.body == b"" and small.type == 0
        assert consumer.receive(timeout_s=0) is None
        assert client.consumer("unnamed").receive(timeout_s=20) is not None
        producer = client.producer("news")
        for number in (1, 2):
            producer.send(Message(text=str(number), properties={"n": number}))
        assert client.query_queue("paper").filter == "n > 1"
        assert client.query_queue("empty").message_count == 2


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
