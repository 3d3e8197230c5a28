"""What artemis-jms-client 1.4.0 and a real Artemis 2.44 say to each other decodes and re-encodes byte for byte."""

from __future__ import annotations

from atalanta.message.codec import encode_message
from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.core.packets.codec import decode, encode
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.query import (
    BindingQueryResponseV3,
    QueueQueryResponseV2,
    QueueQueryResponseV3,
)
from atalanta.wire.core.packets.session import CreateSession
from atalanta.wire.protocol_error import ProtocolError
from tests.golden.frames import GoldenFrame, old_frames

VERSION = 128
FRAMES = 2542


def of(kind: int) -> list[GoldenFrame]:
    """The frames of one packet type."""
    return [frame for frame in old_frames() if frame.type == kind]


def test_every_frame_goes_both_ways() -> None:
    frames = old_frames()
    assert len(frames) == FRAMES
    for frame in frames:
        packet = decode(frame.type, frame.payload, VERSION)
        assert encode(packet, frame.channel, VERSION) == frame.data, frame.place


def test_the_client_is_of_version_128_from_its_first_packets_on() -> None:
    logins = [decode(frame.type, frame.payload, VERSION) for frame in of(30)]
    assert {login.version for login in logins if isinstance(login, CreateSession)} == {VERSION}


def test_its_messages_are_those_of_later_clients_in_another_layout() -> None:
    """Four bytes behind the body are all: the message as later clients write it is in the frame without them."""
    checked = 0
    for frame in of(71) + of(75):
        packet = decode(frame.type, frame.payload, VERSION)
        assert isinstance(packet, SendMessage | ReceiveMessage)
        message = packet.message
        new = encode_message(message, message.id)
        size = len(message.body)
        old = frame.payload
        assert new[4 : 4 + size] == old[4 : 4 + size], frame.place
        assert old[8 + size :].startswith(new[4 + size :]), frame.place
        end = int.from_bytes(old[4 + size : 8 + size], "big")
        tail = 1 if frame.type == 71 else 12
        assert end == len(frame.data) - tail, frame.place
        checked += 1
    assert checked == 375


def test_only_the_first_message_of_a_session_names_its_address() -> None:
    """A later one without an address is for the same one (ClientSessionImpl.setAddress, ServerSessionImpl.doSend)."""
    named: dict[tuple[int, int], bool] = {}
    without = 0
    for frame in of(71):
        packet = decode(frame.type, frame.payload, VERSION)
        assert isinstance(packet, SendMessage)
        key = (frame.connection, frame.channel)
        if packet.message.address:
            named[key] = True
        else:
            assert named.get(key), frame.place
            without += 1
    assert without > 10


def test_a_real_node_answers_queries_in_the_clients_generation_and_with_its_prefixes() -> None:
    asked: dict[tuple[int, int], int] = {}
    for frame in old_frames():
        key = (frame.connection, frame.channel)
        if frame.sender == "client":
            asked[key] = frame.type
        if frame.type != -7:
            continue
        found = decode(frame.type, frame.payload, VERSION)
        assert isinstance(found, QueueQueryResponseV2) and not isinstance(found, QueueQueryResponseV3)
        if found.exists:  # a new consumer learns the real address
            prefixed = asked[key] == 45 and not (found.address or "").startswith("jms.temp")
            assert (found.address or "").startswith(("jms.queue.", "jms.topic.")) is prefixed, frame.place
    for frame in of(-10):
        assert type(decode(frame.type, frame.payload, VERSION)) is BindingQueryResponseV3


def test_a_cut_message_is_refused_with_its_place() -> None:
    frame = min(of(71), key=lambda each: len(each.data))
    refused = 0
    for end in range(len(frame.payload)):
        try:
            decode(frame.type, frame.payload[:end], VERSION)
        except (ProtocolError, DecodeError) as error:
            assert " at byte " in str(error)
            refused += 1
    assert refused > 60
