"""Every frame captured from real Artemis nodes and clients decodes and re-encodes byte for byte."""

from __future__ import annotations

from atalanta.message.codec import decode_message, encode_message
from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.message.message import Message
from atalanta.message.properties import TypedProperties
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packets.codec import decode, decode_frame, encode
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from tests.golden.frames import golden_frames

FRAMES = 2991


def test_every_frame_goes_both_ways() -> None:
    frames = golden_frames()
    assert len(frames) == FRAMES
    for frame in frames:
        packet = decode(frame.type, frame.payload, 136)
        assert encode(packet, frame.channel, 136) == frame.data, frame.place


def test_every_frame_goes_both_ways_before_the_version_is_known() -> None:
    for frame in golden_frames():
        packet = decode(frame.type, frame.payload, 0)
        assert encode(packet, frame.channel, 0) == frame.data, frame.place


def test_whole_conversations_in_pieces_of_any_size() -> None:
    sides: dict[str, list[bytes]] = {}
    for golden in golden_frames():
        key = f"{golden.place.split(':', 1)[0]} {golden.connection} {golden.sender}"
        sides.setdefault(key, []).append(golden.data)
    for number, (key, frames) in enumerate(sides.items()):
        stream = b"".join(frames)
        step = (1, 7, 64, 1000, 65536)[number % 5] if len(stream) < 20_000 else 4096
        framer = Framer(False)
        found = []
        for start in range(0, len(stream), step):
            found += framer.feed(stream[start : start + step])
        again = [encode(decode_frame(frame), frame.channel) for frame in found]
        assert again == frames, key
        assert framer.kept_bytes == 0


def messages() -> list[tuple[str, Message, bytes]]:
    """(place, message, its MSG encoding) of every message sent or received."""
    found = []
    for frame in golden_frames():
        packet = decode(frame.type, frame.payload)
        if isinstance(packet, SendMessage):
            found.append((frame.place, packet.message, frame.payload[:-13]))
        elif isinstance(packet, ReceiveMessage):
            found.append((frame.place, packet.message, frame.payload[:-12]))
    return found


def test_messages_keep_their_bytes_through_a_copy() -> None:
    for place, message, encoded in messages():
        assert encode_message(message.copy(message.id), message.id) == encoded, place


def test_properties_decoded_and_encoded_are_the_same_bytes() -> None:
    for place, message, encoded in messages():
        properties = message.properties
        writer = Writer()
        properties.encode(writer)
        assert encoded.endswith(writer.getvalue()), place
        again = TypedProperties.decode(Reader(writer.getvalue()))
        assert again == properties, place


def test_a_head_made_anew_differs_from_a_java_clients_in_nothing() -> None:
    """Only the Python programs among the senders write a durable flag of 0xFF."""
    for place, message, encoded in messages():
        durable_position = encoded.find(b"\xff" + bytes(5), len(message.body) + 12)
        message.properties_changed()
        again = encode_message(message, message.id)
        if again != encoded:
            assert message.durable and durable_position > 0, place
            assert again[durable_position] == 1, place
            assert encode_message(decode_message(Reader(again)), message.id) == again, place
