"""Frames as activemq-client writes them, in every version and encoding; round trips; damaged frames."""

from __future__ import annotations

import tracemalloc

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.openwire.commands.connections import (
    ConnectionControl,
    ConnectionError,
    ConnectionInfo,
)
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.deliveries import MessageAck, MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue, ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import BrokerId, ConsumerId, MessageId, ProducerId
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage
from atalanta.wire.openwire.commands.responses import DataArrayResponse, ExceptionResponse, Response
from atalanta.wire.openwire.encoding.structure import DataStructure, EncodeError
from atalanta.wire.openwire.encoding.throwable import Throwable
from atalanta.wire.openwire.options import WireFormatOptions
from atalanta.wire.openwire.wire_format import WireFormat
from tests.wire.openwire.samples import (
    KINDS,
    NOT_FOR_BROKERS,
    Conversation,
    RandomCommands,
    conversations,
)

MODES = [(False, False), (False, True), (True, False), (True, True)]
# Only some of the conversations have the stacks.
WITH_STACKS = (ExceptionResponse, ConnectionError, MessageAck)
CONSUMER = ConsumerId("ID:host-1-2-3:1", 5, 7)


def options(version: int = 12, tight: bool = True, cache: bool = True) -> WireFormatOptions:
    return WireFormatOptions(version=version, tight=tight, cache=cache, stack_traces=True)


def decoded(given: Conversation) -> list[DataStructure]:
    wire = WireFormat(given.options)
    found = []
    for frame in given.frames:
        each = wire.decode(frame, given.prefix_bytes)
        assert each is not None
        found.append(each)
    return found


def golden(version: int, tight: bool, cache: bool) -> Conversation:
    """The conversation of 5.18 with all commands in that form."""
    return next(
        each
        for each in conversations()
        if (each.options.version, each.options.tight, each.options.cache) == (version, tight, cache)
    )


@pytest.mark.parametrize("given", conversations(), ids=lambda given: str(given.place))
def test_frames_of_java_are_written_again_byte_by_byte(given: Conversation) -> None:
    writing = WireFormat(given.options)
    for number, (command, frame) in enumerate(zip(decoded(given), given.frames, strict=True)):
        assert writing.encode(command) == frame, f"{given.place}, frame {number}: {command}"


@pytest.mark.parametrize("version", range(1, 13))
def test_all_encodings_carry_the_same(version: int) -> None:
    loose = decoded(golden(version, False, False))
    for tight, cache in MODES:
        other = decoded(golden(version, tight, cache))[: len(loose)]
        for one, two in zip(loose, other, strict=True):
            if not isinstance(one, WITH_STACKS):
                assert one == two


def test_every_command_is_in_the_golden_frames() -> None:
    found = {each.code() for given in conversations() for each in decoded(given)}
    missing = [name for name, (_, kind) in KINDS.items() if kind().code() not in found]
    only_inside = (
        ["NetworkBridgeFilter", "ActiveMQQueue", "ActiveMQTopic", "ActiveMQTempQueue"]
        + ["ActiveMQTempTopic", "MessageId", "LocalTransactionId", "XATransactionId"]
        + ["ConnectionId", "SessionId", "ConsumerId", "ProducerId", "BrokerId"]
    )
    assert missing == only_inside


@pytest.mark.parametrize(("tight", "cache"), MODES)
def test_fields_are_what_java_set(tight: bool, cache: bool) -> None:
    found = decoded(golden(12, tight, cache))
    login = next(each for each in found if isinstance(each, ConnectionInfo))
    assert (login.command_id, login.response_required) == (1, True)
    assert (login.client_id, login.user_name, login.password) == ("client", "user", "secret")
    assert (login.manageable, login.fault_tolerant, login.failover_reconnect) == (True, True, False)
    assert login.broker_path == [BrokerId("a"), BrokerId("b")]
    consumer = next(each for each in found if isinstance(each, ConsumerInfo))
    assert consumer.consumer_id == CONSUMER and consumer.destination == ActiveMQQueue("orders.é€")
    assert (consumer.prefetch_size, consumer.priority) == (1000, -5)
    assert consumer.selector == "a = 'b\0c'"
    text = next(each for each in found if isinstance(each, ActiveMQTextMessage))
    producer = ProducerId("ID:host-1-2-3:1", 9, 5)
    assert text.producer_id == producer and text.message_id == MessageId(None, producer, 0, 70000)
    assert (text.timestamp, text.persistent, text.priority) == (1700000000123, True, 4)
    assert (text.group_id, text.group_sequence, text.jms_type) == ("group", 3, "kind")
    dispatch = next(each for each in found if isinstance(each, MessageDispatch))
    assert dispatch.message == text and dispatch.redelivery_counter == 1
    control = next(each for each in found if isinstance(each, ConnectionControl))
    assert control.connected_brokers == "tcp://a:1,tcp://b:2" and control.reconnect_to == ""
    poison = [each for each in found if isinstance(each, MessageAck)][1]
    assert poison.poison_cause is not None
    assert (poison.poison_cause.class_name, poison.poison_cause.message) == (
        "java.io.IOException", "it failed",
    )  # fmt: skip


def test_stacks_and_causes_are_read_if_both_sides_want_them() -> None:
    found = decoded(next(each for each in conversations() if each.options.stack_traces))
    failed = next(each for each in found if isinstance(each, ExceptionResponse)).exception
    assert failed is not None and failed.cause is not None
    assert [(each.method, each.file, each.line) for each in failed.stack] == [
        ("z", "Y.java", 12), ("run", "Y.java", 99),
    ]  # fmt: skip
    assert (failed.cause.class_name, failed.cause.message) == (
        "java.lang.IllegalStateException", "below",
    )  # fmt: skip


@pytest.mark.parametrize("version", range(1, 13))
@pytest.mark.parametrize(("tight", "cache"), MODES)
def test_random_commands_survive_the_way_there_and_back(version: int, tight: bool, cache: bool) -> None:
    made = RandomCommands(version, version)
    there, back = WireFormat(options(version, tight, cache)), WireFormat(options(version, tight, cache))
    again = WireFormat(options(version, tight, cache))
    for name, (since, _) in KINDS.items():
        if since > version:
            continue
        for _ in range(3):
            first = made.one(name)
            frame = there.encode(first)
            second = back.decode(frame, 4)
            assert second is not None
            # Fields that the version does not have are lost; what came through stays as it is.
            assert again.encode(second) == frame
            if version == 12 and name != "NetworkBridgeFilter" and "network_ttl" not in repr(first):
                assert second == first


def test_a_cached_structure_is_sent_once() -> None:
    there, back = WireFormat(options()), WireFormat(options())
    queue = ActiveMQQueue("orders" * 50)
    sizes = []
    for _ in range(3):
        frame = there.encode(MessageAck(queue, None, CONSUMER, 2))
        sizes.append(len(frame))
        found = back.decode(frame, 4)
        assert isinstance(found, MessageAck) and found.destination == queue
    assert sizes[0] > 300 and sizes[1] == sizes[2] < 40


@pytest.mark.parametrize("tight", [False, True])
def test_old_entries_make_room_for_new_ones(tight: bool) -> None:
    small = WireFormatOptions(cache_size=120, tight=tight)
    there, back = WireFormat(small), WireFormat(small)
    for number in [*range(200), *range(100, 200), *range(30)]:
        sent = MessageAck(ActiveMQQueue(f"q{number}"), None, ConsumerId("c", 1, number % 7), 2)
        assert back.decode(there.encode(sent), 4) == sent


@pytest.mark.parametrize(("tight", "cache"), MODES)
def test_a_command_that_cannot_be_sent_leaves_the_connection_usable(tight: bool, cache: bool) -> None:
    there, back = WireFormat(options(12, tight, cache)), WireFormat(options(12, tight, cache))
    queue = ActiveMQQueue("new")
    with pytest.raises(EncodeError, match="ActiveMQTextMessage.correlation_id: a text of 70000 bytes"):
        there.encode(ActiveMQTextMessage(destination=queue, correlation_id="x" * 70_000))
    with pytest.raises(EncodeError, match="MessageAck"):
        there.encode(MessageAck(ActiveMQQueue("other"), message_count=1 << 40))
    sent = MessageAck(queue, None, CONSUMER, 2)
    assert back.decode(there.encode(sent), 4) == sent


def test_a_frame_beyond_the_limit_of_the_other_side_is_not_sent() -> None:
    small = WireFormatOptions(frame_bytes_max=500)
    there, back = WireFormat(small), WireFormat(small)
    with pytest.raises(EncodeError, match="at most 500 are accepted"):
        there.encode(ActiveMQTextMessage(destination=ActiveMQTopic("t"), content=bytes(600)))
    sent = MessageAck(ActiveMQTopic("t"), None, CONSUMER, 2)
    assert back.decode(there.encode(sent), 4) == sent


@pytest.mark.parametrize("version", [1, 12])
@pytest.mark.parametrize(("tight", "cache"), [(False, False), (True, True)])
def test_every_cut_is_a_decode_error(version: int, tight: bool, cache: bool) -> None:
    given = golden(version, tight, cache)
    wire = WireFormat(given.options)
    for frame in given.frames[:60]:
        for end in range(4, len(frame)):
            with pytest.raises(DecodeError):
                wire.decode(frame, 4, end)
        wire.decode(frame, 4)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("1d", "type at byte 0: unknown type 29 in version 1"),
        ("1e 00000001 00 00000002 00", "end at byte 10: 1 bytes behind the last field"),
        ("12 00000001 00 00 00 00 00 00 7f", "end at byte 11"),
        ("0e 00000001 00 01 ffff", "ControlCommand.command at byte 9: needs 65535 bytes, 0 are left"),
        ("0e 00000001 00 01 0002 c3 28", "ControlCommand.command at byte 9: not Java's UTF-8"),
        ("01 4163746976654d51 00000001 01 7fffffff",
         "WireFormatInfo.marshalled_properties at byte 18: needs 2147483647 bytes"),
        ("01 4163746976654d51 00000001 01 ffffffff",
         "WireFormatInfo.marshalled_properties at byte 18: negative length -1"),
        ("21 00000001 00 00000002 01 7fff", "DataArrayResponse.data at byte 11: 32767 entries in 0"),
        ("21 00000001 00 00000002 01 ffff", "DataArrayResponse.data at byte 11: -1 entries"),
        ("21 00000001 00 00000002 01 0001 00", "DataArrayResponse.data at byte 14: null in a list"),
        ("15 00000001 00 01 78 01 0001 61", "MessageDispatch.consumer_id at byte 7: ConnectionId instead of"),
    ],
)  # fmt: skip
def test_damage_is_named(body: str, message: str) -> None:
    wire = WireFormat(options(1, False, False))
    with pytest.raises(DecodeError) as error:
        wire.decode(bytes.fromhex(body))
    assert str(error.value).startswith(message)


def test_a_type_that_no_client_sends_is_named() -> None:
    seen = set()
    for given in conversations():
        for frame in given.not_for_brokers:
            with pytest.raises(DecodeError) as error:
                WireFormat(given.options).decode(frame, given.prefix_bytes)
            code, version = frame[given.prefix_bytes], given.options.version
            seen.add((version, given.options.tight, code))
            assert error.value.text == f"unknown type {code} in version {version}"
    assert len(seen) == 12 * 2 * len(NOT_FOR_BROKERS)


@pytest.mark.parametrize(
    ("tight", "body"),
    [(False, "20 00000001 00 00000002 01 3c 00000007 00"), (True, "20 01 02 00000001 00000002 3c 00000007")],
)
def test_an_unknown_type_inside_another_is_named(tight: bool, body: str) -> None:
    with pytest.raises(DecodeError, match="^DataResponse.data at byte 1.: unknown type 60 in version 12$"):
        WireFormat(options(12, tight, False)).decode(bytes.fromhex(body))


@pytest.mark.parametrize(
    ("index", "message"), [("0400", "but the cache has 1024"), ("8000", "index -32768"), ("ffff", "")]
)
def test_indexes_of_the_cache_are_checked(index: str, message: str) -> None:
    wire = WireFormat(options(12, False, True))
    new = bytes.fromhex(f"04 00000001 00 01 {index} 01 79 01 0001 61 0000000000000001")
    if message:
        with pytest.raises(DecodeError, match=message):
            wire.decode(new)
    else:
        wire.decode(new)
    with pytest.raises(DecodeError, match="was never sent"):
        wire.decode(bytes.fromhex("04 00000001 00 00 0007"))


def test_another_class_in_the_cache_is_an_error() -> None:
    wire = WireFormat(options(12, False, True))
    wire.decode(bytes.fromhex("04 00000001 00 01 0000 01 79 01 0001 61 0000000000000001"))
    with pytest.raises(DecodeError, match="SessionId instead of ProducerId"):
        wire.decode(bytes.fromhex("06 00000001 00 00 0000 00 00 00 00000000"))


def test_nested_structures_have_a_limit() -> None:
    nested: DataStructure = Response(1)
    for _ in range(40):
        nested = DataArrayResponse([nested])
    wire = WireFormat(options())
    with pytest.raises(DecodeError, match="nested more than 16 deep"):
        wire.decode(wire.encode(nested), 4)


def test_many_structures_in_a_frame_have_a_limit() -> None:
    lists: list[DataStructure] = [BrokerId("b")] * 30_000
    four: list[DataStructure] = [DataArrayResponse(lists) for _ in range(4)]
    wire = WireFormat(options(12, False, False))
    with pytest.raises(DecodeError, match="more than 100000 structures"):
        wire.decode(wire.encode(DataArrayResponse(four)), 4)


def test_causes_have_a_limit() -> None:
    failed = Throwable("x.Y", "deepest")
    for _ in range(40):
        failed = Throwable("x.Y", "above", None, failed)
    wire = WireFormat(options())
    with pytest.raises(DecodeError, match="more than 32 causes"):
        wire.decode(wire.encode(ExceptionResponse(failed)), 4)


@pytest.mark.parametrize("body", ["3c 00000001 01 7fffffff", "21 00000001 00 00000002 01 7fff"])
def test_announced_sizes_allocate_nothing(body: str) -> None:
    wire = WireFormat(options(1, False, False))
    data = bytes.fromhex(body)
    with pytest.raises(DecodeError):
        wire.decode(data)
    tracemalloc.start()
    with pytest.raises(DecodeError):
        wire.decode(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000


def test_passwords_are_not_printed() -> None:
    assert "secret" not in repr(ConnectionInfo(user_name="u", password="secret"))
