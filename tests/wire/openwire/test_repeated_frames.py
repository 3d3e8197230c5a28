"""Frames that are decoded by comparison become the same commands as those that are decoded field by field."""

from __future__ import annotations

import copy

import pytest
from librt.strings import BytesWriter

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.openwire.commands.deliveries import MessageAck, MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.commands.identifiers import ConsumerId, MessageId, ProducerId
from atalanta.wire.openwire.commands.messages import ActiveMQBytesMessage, OpenWireMessage
from atalanta.wire.openwire.encoding.frame_pattern import MESSAGE_FIELDS
from atalanta.wire.openwire.encoding.primitives import encode_map
from atalanta.wire.openwire.encoding.structure import Command
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.wire_format import WireFormat

MODES = [(12, True, True), (12, True, False), (12, False, True), (12, False, False), (1, True, True), (3, False, True)]
QUEUE, OTHER = ActiveMQQueue("orders"), ActiveMQQueue("other")
PRODUCERS = [ProducerId("ID:host-1:1", 1, number) for number in range(6)]
NOW = 1_790_000_000_000


def message(number: int, producer: int = 0, **more: object) -> OpenWireMessage:
    made = ActiveMQBytesMessage(
        PRODUCERS[producer], QUEUE, message_id=MessageId(None, PRODUCERS[producer], number), persistent=True,
        priority=4, timestamp=NOW + number, content=b"x" * (number % 5), command_id=number,
    )  # fmt: skip
    for name, value in more.items():
        setattr(made, name, value)
    return made


def ack(number: int, **more: object) -> MessageAck:
    last = MessageId(None, PRODUCERS[0], number, number)
    made = MessageAck(QUEUE, None, ConsumerId("ID:host-1:2", 1, 1), 2, None, last, 1)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def decoders(options: WireFormatOptions) -> tuple[FrameDecoder, FrameDecoder]:
    """One that compares, and one that decodes each frame."""
    found = FrameDecoder(options), FrameDecoder(options)
    for each in found:
        each.feed(WireFormat(HANDSHAKE).encode(info_of(options)))
        each.next()
        each.open()
    found[0].compare_frames()
    return found


def check(commands: list[Command], mode: tuple[int, bool, bool] = MODES[0]) -> int:
    """Returns how many commands were found by comparison: they come in an object that was there before."""
    version, tight, cache = mode
    comparing, plain = decoders(WireFormatOptions(version=version, tight=tight, cache=cache))
    wire = WireFormat(comparing.format.options)
    seen: list[object] = []
    repeats = 0
    for command in commands:
        frame = wire.encode(command)
        comparing.feed(frame)
        plain.feed(frame)
        found, expected = comparing.next(), plain.next()
        assert found == expected and repr(found) == repr(expected)
        repeats += any(each is found for each in seen)
        seen.append(found)
    return repeats


@pytest.mark.parametrize("mode", MODES)
def test_numbers_times_and_content_differ(mode: tuple[int, bool, bool]) -> None:
    assert check([message(number) for number in range(1, 50)], mode) >= 40
    assert check([ack(number) for number in range(1, 50)], mode) >= 40
    twice = [ack(number, first_message_id=MessageId(None, PRODUCERS[0], number - 1, number)) for number in range(2, 50)]
    assert check(list(twice), mode) >= 40


def test_numbers_of_other_sizes() -> None:
    numbers = [*range(65_530, 65_545), *range(2**32 - 5, 2**32 + 5), *range(2**31 - 3, 2**31 + 3), 2**62, 2**62 + 1]
    commands: list[Command] = [message(number, command_id=7) for number in numbers]
    assert check(commands) > 10


def test_other_fields_are_noticed() -> None:
    properties = [encode_map("p", {"n": number // 4}) for number in range(40)]
    commands: list[Command] = [message(number, marshalled_properties=each) for number, each in enumerate(properties)]
    assert check(commands) > 10
    for change in (
        {"correlation_id": "c"}, {"priority": 9}, {"persistent": False}, {"reply_to": OTHER}, {"destination": OTHER},
        {"expiration": NOW}, {"content": None}, {"timestamp": 0}, {"jms_type": "t"}, {"response_required": True},
        {"compressed": True}, {"group_id": "g", "group_sequence": 7}, {"command_id": 2**31 - 1}, {"command_id": -5},
    ):  # fmt: skip
        check([message(number, **(change if number % 3 == 0 else {})) for number in range(1, 40)])


def test_several_producers_and_consumers_of_one_connection() -> None:
    mixed = [message(number, number % 3) for number in range(60)]
    assert check([each for one in mixed for each in (one, ack(one.command_id))]) > 80
    many: list[Command] = [message(number, number % 6) for number in range(60)]
    check(many)


def test_an_index_of_the_cache_that_gets_another_meaning() -> None:
    """The peer's cache has 200 places: those of the first entries are used again."""
    commands: list[Command] = []
    for number in range(400):
        commands += [message(number), message(number, destination=ActiveMQQueue(f"q{number}"))]
    version, tight, cache = MODES[0]
    options = WireFormatOptions(version=version, tight=tight, cache=cache, cache_size=200)
    comparing, plain = decoders(options)
    wire = WireFormat(comparing.format.options)
    for command in commands:
        frame = wire.encode(command)
        comparing.feed(frame)
        plain.feed(frame)
        assert comparing.next() == plain.next()


def test_a_damaged_length_is_found() -> None:
    comparing, _ = decoders(WireFormatOptions())
    wire = WireFormat(comparing.format.options)
    frames = [wire.encode(message(number, content=b"body")) for number in range(1, 6)]
    for frame in frames[:4]:
        comparing.feed(frame)
        assert comparing.next() is not None
    at = frames[4].index(b"\0\0\0\4body")
    for length in (b"\0\0\0\5", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff"):
        other = copy.copy(frames[4])
        comparing.feed(other[:at] + length + other[at + 4 :])
        with pytest.raises(DecodeError):
            comparing.next()
        comparing, _ = decoders(WireFormatOptions())
        for frame in frames[:4]:
            comparing.feed(frame)
            comparing.next()


@pytest.mark.parametrize("mode", MODES)
def test_frames_written_by_a_pattern_are_those_that_are_encoded(mode: tuple[int, bool, bool]) -> None:
    version, tight, cache = mode
    form = WireFormat(WireFormatOptions(version=version, tight=tight, cache=cache))
    consumer = ConsumerId("ID:host-1:2", 1, 1)

    def delivery(number: int) -> MessageDispatch:
        made = message(number, content=b"x" * number)
        assert made.message_id is not None
        made.message_id.broker_sequence_id = number + 100
        made.command_id = 0
        return MessageDispatch(consumer, QUEUE, made, 0)

    frames = [form.encode(delivery(number)) for number in (1, 2)]
    first, second = (form.pattern(frame[4:]) for frame in frames)
    assert (first is None) == cache and second is not None and second.names == MESSAGE_FIELDS
    for number in (3, 4, 1000):
        out = BytesWriter()
        assert form.write_by(second, out, number, number + 100, 0, NOW + number, b"x" * number)
        assert out.getvalue() == form.encode(delivery(number))
    out = BytesWriter()
    assert form.write_by(second, out, 70_000, 1, 0, NOW, b"x") == (not tight)
    other = WireFormat(WireFormatOptions(version=version, tight=tight, cache=cache, frame_bytes_max=1024))
    assert not other.write_by(second, BytesWriter(), 1, 1, 0, NOW, b"x" * 1024)
