"""Messages between OpenWire, CORE and STOMP: bodies, properties, ids, correlation and reply destinations."""

from __future__ import annotations

from uuid import UUID

import pytest

from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.message.message import BYTES, DEFAULT, MAP, OBJECT, STREAM, TEXT, Message
from atalanta.message.properties import (
    INT,
    STRING,
    Byte,
    Char,
    Float,
    Int,
    Short,
    TypedProperties,
)
from atalanta.wire.openwire.bodies import (
    compressed,
    content_of,
    map_content,
    map_of,
    stream_content,
    stream_of,
    text_content,
)
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTempTopic,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import MessageId, ProducerId
from atalanta.wire.openwire.commands.messages import (
    ActiveMQBlobMessage,
    ActiveMQBytesMessage,
    ActiveMQMapMessage,
    ActiveMQMessage,
    ActiveMQObjectMessage,
    ActiveMQStreamMessage,
    ActiveMQTextMessage,
    OpenWireMessage,
)
from atalanta.wire.openwire.conversion.delivered_message import reply_destination
from atalanta.wire.openwire.conversion.destination import consumed_parts, parts_of
from atalanta.wire.openwire.conversion.message_id import (
    Correlations,
    IdTexts,
    id_text,
    made_id,
    parsed_id,
    uuid_of,
)
from tests.wire.core.server.server_rig import Client, text_message
from tests.wire.openwire.server.openwire_rig import (
    OpenWireClient,
    OpenWireServer,
    id_of,
    properties,
    text,
)
from tests.wire.stomp.stomp_rig import StompServer, publish, received

VALUES: dict[str, object] = {
    "boolean": True, "byte": Byte(-3), "short": Short(300), "int": Int(70_000), "long": 1 << 40, "float": Float(1.5),
    "double": -2.25, "char": Char("ß"), "string": "é𝄞", "null": None,
}  # fmt: skip


class World(OpenWireServer, StompServer):
    """A server of all three protocols."""


@pytest.fixture
def world() -> World:
    return World()


def core_client(world: World, *queues: str) -> Client:
    """A CORE client that consumes the queues."""
    core = world.login()
    for number, queue in enumerate(queues):
        core.create_queue(queue)
        core.consume(queue, number)
    return core


def sent(client: OpenWireClient, made: OpenWireMessage, content: bytes | None, **more: object) -> None:
    client.fill(made, "a", **more)  # type: ignore[arg-type]
    made.content = content
    client.succeeds(made)


@pytest.mark.parametrize("deflated", [False, True])
def test_bodies_of_openwire_in_core(world: World, deflated: bool) -> None:
    core = core_client(world, "a")
    client = world.openwire_client()
    bodies: list[tuple[OpenWireMessage, bytes | None]] = [
        (ActiveMQMessage(), None),
        (ActiveMQTextMessage(), text_content("é𝄞")),
        (ActiveMQBytesMessage(), b"\x00\x01\xff"),
        (ActiveMQMapMessage(), map_content({"n": Int(1), "s": "x"})),
        (ActiveMQStreamMessage(), stream_content([Int(5), "six", None, True])),
        (ActiveMQObjectMessage(), b"\xac\xed\x00\x05"),
    ]
    for made, content in bodies:
        made.compressed = deflated and content is not None
        sent(client, made, compressed(made.code(), content) if deflated and content is not None else content)
    empty, written, raw, mapped, streamed, serialized = received(core)
    kinds = [each.kind for each in (empty, written, raw, mapped, streamed, serialized)]
    assert kinds == [DEFAULT, TEXT, BYTES, MAP, STREAM, OBJECT]
    assert written.text() == "é𝄞" and raw.body == b"\x00\x01\xff"
    entries = TypedProperties.decode(Reader(mapped.body)).entries
    assert entries == {"n": (INT, 1), "s": (STRING, "x")}
    assert serialized.body == b"\x00\x00\x00\x04\xac\xed\x00\x05"
    # The other way it is the same again.
    client.consume("b")
    world.login().create_queue("b2")
    for each in (empty, written, raw, mapped, streamed, serialized):
        each.address = "b"
        publish(core, each)
    found = [got.message for got in client.dispatches()]
    assert [each.code() for each in found if each] == [made.code() for made, _ in bodies]
    contents = [content_of(each) for each in found if each]
    assert contents == [content for _, content in bodies]


def test_properties_keep_their_types(world: World) -> None:
    core = core_client(world, "a")
    client = world.openwire_client()
    client.publish("1", "a", properties=VALUES)
    (message,) = received(core)
    for name, value in VALUES.items():
        assert message.property_value(name) == value, name
    client.consume("b")
    message.address = "b"
    message.properties.put("blob", b"\x01\xff")
    publish(core, message)
    (got,) = client.dispatches()
    assert properties(got) == {**VALUES, "blob": "01ff"}
    assert {name: type(value) for name, value in properties(got).items() if name != "blob"} == {
        name: type(value) for name, value in VALUES.items()
    }


def test_fields_have_the_names_of_core(world: World) -> None:
    core = core_client(world, "a")
    client = world.openwire_client()
    client.publish(
        "1", "a", reply_to=ActiveMQTopic("r"), correlation_id="c", jms_type="t", group_id="g", group_sequence=3,
        priority=7, expiration=1 << 42, timestamp=1 << 40,
    )  # fmt: skip
    (message,) = received(core)
    values = [message.property_value(name) for name in ("JMSReplyTo", "JMSCorrelationID", "JMSType", "_AMQ_GROUP_ID")]
    assert values == ["topic://r", "c", "t", "g"]
    assert (message.priority, message.expiration, message.timestamp, message.durable) == (7, 1 << 42, 1 << 40, True)
    assert message.user_id is not None
    client.consume("b")
    message.address = "b"
    publish(core, message)
    (got,) = client.dispatches()
    back = got.message
    assert back is not None and back.reply_to == ActiveMQTopic("r")
    assert (back.correlation_id, back.jms_type, back.group_id, back.group_sequence) == ("c", "t", "g", 3)
    assert id_text(id_of(got)) == f"{client.id}:1:1:1"


def test_a_message_of_core_keeps_its_id(world: World) -> None:
    core = core_client(world)
    client = world.openwire_client()
    client.consume("a")
    message = text_message("a", "1")
    message.user_id = bytes(range(16))
    publish(core, message)
    (got,) = client.dispatches()
    assert id_text(id_of(got)) == "ID:00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_stomp_and_openwire(world: World) -> None:
    client, stomp = world.openwire_client(), world.stomp_client()
    stomp.subscribe("/queue/a")
    client.publish("é", "a", properties={"n": Int(1)}, reply_to=ActiveMQQueue("replies"), correlation_id="c")
    (frame,) = stomp.messages()
    assert frame.body.decode() == "é" and frame["n"] == "1"
    assert frame["reply-to"] == "/queue/replies" and frame["correlation-id"] == "c"
    client.consume("replies")
    stomp.send("SEND", "answer", destination=frame["reply-to"], correlation_id="c", persistent="true")
    (got,) = client.dispatches()
    assert text(got) == "answer" and got.message is not None and got.message.correlation_id == "c"
    stomp.send("SEND", b"\x00\x01", destination="/queue/replies", content_length="2")
    (got,) = client.dispatches()
    assert got.message is not None and got.message.code() == codes.BYTES_MESSAGE and got.message.content == b"\x00\x01"


def test_what_cannot_be_converted_comes_as_bytes(world: World) -> None:
    core = core_client(world)
    client = world.openwire_client()
    client.consume("a")
    for kind, body in ((MAP, b"\x01\x00\x00\x00\x05"), (STREAM, b"\x63"), (TEXT, b"\x01\x00")):
        publish(core, Message.create("a", body, kind))
        (got,) = client.dispatches()
        assert got.message is not None and got.message.code() == codes.BYTES_MESSAGE
        assert got.message.content == body and properties(got)["AtalantaNotConverted"]


def test_what_core_has_not_is_refused(world: World) -> None:
    client = world.openwire_client()
    blob = ActiveMQBlobMessage(remote_blob_url="http://example.org")
    client.fill(blob, "a")
    kind, why = client.fails(blob)
    assert kind == "javax.jms.JMSException" and "BlobMessage" in why


NESTED: dict[str, object] = {
    "inner": {"a": Int(1), "b": [True, None, b"\x01\xff", Char("x")]}, "list": ["y", 2.5], "n": Int(7),
}  # fmt: skip


def test_maps_and_lists_within_come_as_they_were_and_as_json_to_core(world: World) -> None:
    core = core_client(world, "a")
    client = world.openwire_client()
    sent(client, ActiveMQMapMessage(), map_content(NESTED), properties={"p": {"q": ["r"]}, "s": "t"})
    sent(client, ActiveMQStreamMessage(), stream_content(["x", [Int(1)], {"k": "v"}]))
    mapped, streamed = received(core)
    assert TypedProperties.decode(Reader(mapped.body)).items() == [
        ("inner", '{"a": 1, "b": [true, null, "01ff", "x"]}'), ("list", '["y", 2.5]'), ("n", 7),
    ]  # fmt: skip
    assert mapped.property_value("p") == '{"q": ["r"]}' and mapped.property_value("s") == "t"
    client.consume("b")
    for each in (mapped, streamed):
        each.address = "b"
        publish(core, each)
    one, two = client.dispatches()
    assert one.message is not None and map_of(one.message.content) == NESTED
    assert properties(one) == {"p": {"q": ["r"]}, "s": "t"}
    assert two.message is not None and stream_of(two.message.content) == ["x", [Int(1)], {"k": "v"}]


def test_a_text_that_an_application_changed_stays_its_text(world: World) -> None:
    core = core_client(world, "a")
    client = world.openwire_client()
    sent(client, ActiveMQMapMessage(), map_content(NESTED), properties={"p": ["q"]})
    (message,) = received(core)
    changed = TypedProperties()
    changed.put("inner", "other")
    changed.put("list", '["y", 2.5]')
    writer = Writer()
    changed.encode(writer)
    client.consume("b")
    for kept in (None, b"\x00\x00", b""):
        again = Message.create("b", writer.getvalue(), MAP, True)
        for name, value in message.properties.items():
            again.properties.put(name, value)
        again.properties.put("p", "changed")
        if kept is not None:
            again.properties.put("__HDR_NESTED_BODY", kept)
            again.properties.put("__HDR_NESTED_PROPERTIES", kept)
        publish(core, again)
        (got,) = client.dispatches()
        assert got.message is not None and properties(got) == {"p": "changed"}
        expected = ["y", 2.5] if kept is None else '["y", 2.5]'
        assert map_of(got.message.content) == {"inner": "other", "list": expected}


# -- request and reply ----------------------------------------------------------------------------
def shown(message: Message) -> str:
    """JMSMessageID as a JMS client of CORE shows it."""
    assert message.user_id is not None
    return f"ID:{UUID(bytes=message.user_id)}"


def test_an_answer_of_core_names_the_id_of_the_request(world: World) -> None:
    core = core_client(world, "requests")
    client, other = world.openwire_client(), world.openwire_client("other")
    client.consume("replies")
    for number in (1, 2):
        client.publish(str(number), "requests", reply_to=ActiveMQQueue("replies"))
    other.publish("3", "requests", reply_to=ActiveMQQueue("replies"))
    requests = received(core)
    assert len({shown(each) for each in requests}) == 3
    for request in reversed(requests):
        reply = text_message("replies", request.text() or "")
        reply.properties.put("JMSCorrelationID", shown(request))
        publish(core, reply)
    found = {text(got): got.message.correlation_id for got in client.dispatches() if got.message}
    assert found == {"1": f"{client.id}:1:1:1", "2": f"{client.id}:1:1:2", "3": f"{other.id}:1:1:1"}


def test_an_answer_finds_the_selector_of_the_request(world: World) -> None:
    core = core_client(world, "requests")
    client = world.openwire_client()
    client.publish("1", "requests")
    (request,) = received(core)
    own = f"{client.id}:1:1:1"
    client.consume("replies", selector=f"JMSCorrelationID = '{own}' AND x <> 'JMSCorrelationID = ''{own}'")
    for correlation in (shown(request), own, "ID:00010203-0405-0607-0809-0a0b0c0d0e0f", own + "1"):
        reply = text_message("replies", correlation)
        reply.properties.put("JMSCorrelationID", correlation)
        reply.properties.put("x", "")
        publish(core, reply)
    assert [got.message.correlation_id for got in client.dispatches() if got.message] == [own, own]


def test_a_request_of_core_is_answered_with_its_own_id(world: World) -> None:
    core = core_client(world, "replies")
    client = world.openwire_client()
    client.consume("requests")
    request = text_message("requests", "1")
    request.user_id = bytes(range(16))
    request.properties.put("JMSReplyTo", "queue://replies")
    publish(core, request)
    (got,) = client.dispatches()
    assert got.message is not None and got.message.reply_to is not None
    client.publish("answer", got.message.reply_to, correlation_id=id_text(id_of(got)))
    (reply,) = received(core)
    assert reply.property_value("JMSCorrelationID") == shown(request)


def test_an_answer_of_stomp_names_the_id_of_the_request(world: World) -> None:
    client, stomp = world.openwire_client(), world.stomp_client()
    stomp.subscribe("/queue/requests")
    client.consume("replies")
    client.publish("1", "requests", reply_to=ActiveMQQueue("replies"))
    (frame,) = stomp.messages()
    stomp.send("SEND", "answer", destination=frame["reply-to"], correlation_id=frame["JMSMessageID"])
    (got,) = client.dispatches()
    assert got.message is not None and got.message.correlation_id == f"{client.id}:1:1:1"


def test_ids_whose_numbers_do_not_fit_are_different_all_the_same() -> None:
    ids = [
        MessageId(None, ProducerId("ID:c", 1, 1), 1), MessageId(None, ProducerId("ID:c", 1, -1), 1),
        MessageId(None, ProducerId("ID:c", 1, 1 << 20), 1), MessageId(None, ProducerId("ID:c", 1 << 20, 1), 1),
        MessageId(None, ProducerId("ID:c", 1, 1), 1 << 34), MessageId("ID:text", ProducerId("ID:c", 1, 1), 1),
        MessageId("x:1:1:1", None, 1), MessageId(None, ProducerId("ID:d", 1, 1), 1),
    ]  # fmt: skip
    assert len({uuid_of(each) for each in ids}) == len(ids)
    # Java's client of CORE writes these bits, whatever was there.
    assert all(UUID(bytes=uuid_of(each)).version == 1 for each in ids)
    largest = MessageId(None, ProducerId("ID:c", (1 << 20) - 1, (1 << 20) - 1), (1 << 34) - 1)
    known = Correlations()
    known.add(1, "ID:c")
    assert known.original(f"ID:{UUID(bytes=uuid_of(largest))}") == id_text(largest)
    known.add(2, "ID:c")
    known.remove(1, "ID:c")
    assert known.original(f"ID:{UUID(bytes=uuid_of(largest))}") == id_text(largest)
    known.remove(2, "ID:c")
    unknown = f"ID:{UUID(bytes=uuid_of(largest))}"
    for each in (unknown, "ID:" + "z" * 36, "ID:" + "-" * 36, "", "ID:" + "a" * 36):
        assert known.original(each) == each


def test_the_brokers_own_properties_are_not_taken_from_clients(world: World) -> None:
    core = core_client(world, "a")
    client = world.openwire_client()
    hostile: dict[str, object] = {"_AMQ_ROUTE_TO": b"12345678", "__HDR_MESSAGE_ID": "x", "JMSReplyTo": "queue://evil"}
    client.publish("1", "a", properties=hostile)
    (message,) = received(core)
    assert not message.has_property("_AMQ_ROUTE_TO") and not message.has_property("JMSReplyTo")
    assert message.property_value("__HDR_MESSAGE_ID") == f"{client.id}:1:1:1"


# -- names ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("queue://a", ActiveMQQueue("a")),
        ("topic://a", ActiveMQTopic("a")),
        ("plain", ActiveMQQueue("plain")),
        ("temp-queue://known", ActiveMQTempQueue("known")),
        ("temp-topic://topic", ActiveMQTempTopic("topic")),
        ("temp-queue://unknown", ActiveMQQueue("unknown")),
        ("temp-topic://unknown", ActiveMQTopic("unknown")),
    ],
)
def test_reply_destinations(written: str, expected: ActiveMQDestination) -> None:
    known = {"known": codes.TEMP_QUEUE, "topic": codes.TEMP_TOPIC}
    assert reply_destination(written, known) == expected


def test_parts_of_a_composite_name() -> None:
    parts = parts_of(ActiveMQQueue("a, topic://b,queue://c"))
    assert parts == [ActiveMQQueue("a"), ActiveMQTopic("b"), ActiveMQQueue("c")]
    assert parts_of(ActiveMQQueue("a, queue://a,topic://a")) == [ActiveMQQueue("a"), ActiveMQTopic("a")]


@pytest.mark.parametrize(
    ("written", "consumed"),
    [
        ("a.b,a.>", ["a.>"]),
        ("a,a.>", ["a.>"]),
        ("a.>,a.*.c,a.b.>", ["a.>"]),
        ("a.*,a.b,a.b.c,b.b", ["a.*", "a.b.c", "b.b"]),
        ("a.*,a.>", ["a.>"]),
        ("a.*.>,a.>", ["a.>"]),
        (">,a,b.*", [">"]),
        ("a.*,*.b", ["a.*", "*.b"]),
        ("a.*,a.*", ["a.*"]),
        ("a.>.c,a.b", ["a.>.c", "a.b"]),
    ],
)
def test_a_topic_that_another_one_includes_is_consumed_with_it(written: str, consumed: list[str]) -> None:
    assert [part.physical_name for part in consumed_parts(ActiveMQTopic(written))] == consumed


def test_a_queue_is_included_in_no_topic() -> None:
    assert len(consumed_parts(ActiveMQQueue("a.b,topic://a.>"))) == 2


@pytest.mark.parametrize("written", ["ID:host-1-2:1:-1:7", "ID:a:b:3:4:5"])
def test_message_ids_as_text(written: str) -> None:
    found = parsed_id(written, 9)
    assert found is not None and id_text(found) == written and found.broker_sequence_id == 9


def test_message_ids_that_are_none() -> None:
    ids = IdTexts()
    assert ids.parsed("a:1:1:8", 0) is not None
    for written in ("ID:x", "a:b:c:d", "a:1:1:" + "9" * 30, "a:1:1:x", "a:1:1:"):
        assert parsed_id(written, 0) is None and ids.parsed(written, 0) is None


def test_ids_of_several_producers() -> None:
    ids = IdTexts()
    one, other = ProducerId("ID:h-1", 1, 2), ProducerId("ID:h-1", 2, 1)
    given = [MessageId(None, producer, number) for number in (7, 8, -1) for producer in (one, other)]
    given += [MessageId("ID:own"), MessageId(None, None, 3)]
    assert [ids.text(each) for each in given] == [id_text(each) for each in given]
    uuids = [ids.uuid(each) for each in given]
    assert uuids == [IdTexts().uuid(each) for each in given] and len(dict.fromkeys(uuids)) == len(given)
    for number, each in enumerate(given[:4]):
        assert ids.parsed(id_text(each), number) == MessageId(None, each.producer_id, each.producer_sequence_id, number)


def test_made_ids_fit_the_numbers_of_clients() -> None:
    made = made_id("node", (5 << 31) + 3, None, 0)
    assert made.producer_id is not None and (made.producer_id.value, made.producer_sequence_id) == (5, 3)
