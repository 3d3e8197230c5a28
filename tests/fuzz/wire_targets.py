"""Decoders of what peers send: packets, messages, streams of frames, datagrams, address texts."""

from __future__ import annotations

from atalanta.message.codec import decode_message, encode_message
from atalanta.message.encoding.buffer import DecodeError, Reader
from atalanta.wire.core.broadcast_datagram import (
    Announcement,
    decode_announcement,
    encode_announcement,
)
from atalanta.wire.core.client.log_columns import LogColumns
from atalanta.wire.core.client.log_properties import LogProperties, LogProperty
from atalanta.wire.core.client.log_texts import LogTexts
from atalanta.wire.core.frames import FRAME_BYTES_MAX, Framer
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.log_chunk import (
    LogReadColumnsResponse,
    LogReadResponse,
    decode_entries,
    split_entries,
)
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.detect import detect
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.uri import UriError, parse_params, parse_uri, parse_uri_list
from tests.fuzz.mutator import FrameMutator, Mutator
from tests.fuzz.target import Target
from tests.golden.frames import golden_frames, old_frames, one_of_each_type
from tests.wire.core.samples import all_packets, sample_message, sample_transport
from tests.wire.core.server.server_rig import text_message

VERSIONS = (0, 121, 129, 130, 131, 132, 134, 136, 128)
SEED_BYTES_MAX = 2048
PROPERTY_WORDS = (
    b"_AMQ_GROUP_ID", b"_AMQ_DUPL_ID", b"_AMQ_ROUTING_TYPE", b"_AMQ_SCHED_DELIVERY", b"_AMQ_ROUTE_TO",
    b"_AMQ_LARGE_SIZE", b"_AMQ_LVQ_NAME", b"JMSReplyTo", b"JMSCorrelationID",
)  # fmt: skip


def wide(word: bytes) -> bytes:
    """As an ss of CORE."""
    encoded = word.decode().encode("utf-16-le")
    return len(encoded).to_bytes(4, "big") + encoded


def sample_frames() -> list[bytes]:
    """One frame of every packet type we make and one of every type that was captured, on channel 10."""
    made = [codec.encode(packet, 10) for packet in all_packets()]
    made += [frame.data for frame in one_of_each_type()]
    return [frame for frame in made if len(frame) <= SEED_BYTES_MAX]


def captured_frames(sender: str, old: bool = False) -> list[bytes]:
    """The first frames of every captured conversation; with `old` of version 128."""
    found: dict[tuple[str, int], list[bytes]] = {}
    for frame in old_frames() if old else golden_frames():
        if frame.sender == sender and len(frame.data) <= SEED_BYTES_MAX:
            key = (frame.place.partition(":")[0], frame.connection)
            kept = found.setdefault(key, [])
            if len(kept) < 40:
                kept.append(frame.data)
    return [b"".join(frames) for frames in found.values()]


class PacketTarget(Target):
    """u8 version · i8 type · payload: decoded, looked at, encoded again."""

    name = "packets"
    refusals = (ProtocolError, DecodeError)
    words = tuple(wide(word) for word in PROPERTY_WORDS)

    def seeds(self) -> list[bytes]:
        made = [bytes([7]) + frame[4:5] + frame[13:] for frame in sample_frames()]
        old = [bytes([8]) + frame.data[4:5] + frame.payload for frame in one_of_each_type(True)]
        return made + [each for each in old if len(each) <= SEED_BYTES_MAX]

    def run(self, data: bytes) -> None:
        if len(data) < 2:
            return
        code = data[1] - 256 if data[1] > 127 else data[1]
        version = VERSIONS[data[0] % len(VERSIONS)]
        packet = codec.decode(code, data[2:], version)
        look_at(packet)
        codec.encode(packet, 10, version)


def look_at(packet: Packet) -> None:
    """Reads the packet as a receiver does: something could go wrong only then."""
    repr(packet)
    if isinstance(packet, LogReadResponse):
        decode_entries(packet)
        look_at_columns(LogColumns(packet.entries, packet.count))
    if isinstance(packet, LogReadColumnsResponse):
        chunk = packet.chunk
        split_entries(chunk.count, chunk.rows())
        look_at_columns(LogColumns(chunk.data, chunk.count, chunk))
    if isinstance(packet, SendMessage | ReceiveMessage):
        message = packet.message
        message.properties.items()
        repr((message.routing_type, message.duplicate_id, message.group_id, message.size))


def look_at_columns(columns: LogColumns) -> None:
    repr((columns.sequences, columns.redelivered, columns.edges, columns.body_bytes))
    LogTexts(columns)
    LogProperties(columns.data, columns.heads, lambda name: True)
    LogProperty(columns.data, columns.heads, "n")


class MessageTarget(Target):
    """A message and all that is read from it; then changed and encoded again."""

    name = "messages"
    refusals = (DecodeError,)
    words = tuple(wide(word) for word in PROPERTY_WORDS)

    def seeds(self) -> list[bytes]:
        grouped = sample_message()
        for word in PROPERTY_WORDS:
            grouped.put_property(word.decode(), "x")
        return [encode_message(message, 7) for message in (text_message("a", "b"), grouped)]

    def run(self, data: bytes) -> None:
        reader = Reader(data)
        message = decode_message(reader)
        repr((message.address, message.kind, message.durable, message.expiration, message.user_id))
        repr((message.priority, message.timestamp, message.size, message.grouped, message.group_id))
        repr((message.routing_type, message.duplicate_id, message.scheduled_ms))
        for word in PROPERTY_WORDS:
            message.has_property(word.decode())
            message.property_value(word.decode())
        repr(message.properties.items())
        encode_message(message.copy(8), 8)
        message.put_property("n", 1)
        message.address = "elsewhere"
        again = decode_message(Reader(encode_message(message, 8)))
        assert again.properties.get("n") == 1 and again.address == "elsewhere"
        message.text()


class FramerTarget(Target):
    """u8 pieces · a stream: cut into as many pieces, the frames are those of the whole."""

    name = "framer"
    refusals = (ProtocolError,)

    def mutator(self) -> Mutator:
        return FrameMutator(self.size_max, 1, sample_frames())

    def seeds(self) -> list[bytes]:
        return [b"\x03" + HANDSHAKE + b"".join(sample_frames()[:4]), b"\x00" + HANDSHAKE]

    def run(self, data: bytes) -> None:
        pieces, stream = (data[0] if data else 0) + 1, data[1:]
        detect(stream[:16])
        step = max(1, len(stream) // pieces)
        framer = Framer(True, FRAME_BYTES_MAX)
        found = []
        for at in range(0, len(stream), step):
            found += framer.feed(stream[at : at + step])
            assert framer.kept_bytes <= len(stream)
        whole = Framer(True, FRAME_BYTES_MAX).feed(stream)
        assert [frame.payload for frame in found] == [frame.payload for frame in whole]


class DatagramTarget(Target):
    name = "datagrams"
    refusals = (ProtocolError,)

    def seeds(self) -> list[bytes]:
        one = Announcement("node", "unique", [sample_transport()])
        none = Announcement("n" * 20, "u" * 5000, [])
        return [encode_announcement(one), encode_announcement(none)]

    def run(self, data: bytes) -> None:
        heard = decode_announcement(data)
        repr(heard)
        for connector in heard.connectors:
            repr((connector.host, connector.parameters, connector.same_target(connector)))
        assert decode_announcement(encode_announcement(heard)) == heard


class UriTarget(Target):
    name = "uris"
    refusals = (UriError,)
    words = (b"tcp://", b"udp://", b"(", b")", b"?", b";", b"%41", b"%", b"::1", b"[", b"]", b",")

    def seeds(self) -> list[bytes]:
        return [
            b"tcp://localhost:61616?tcpSendBufferSize=1048576;useEpoll=true&protocols=CORE",
            b"(tcp://a:1,tcp://b:2)?reconnectAttempts=-1",
            b"tcp://(a:1,b)?x=%41+b",
            b"udp://231.7.7.7:9876",
            b"tcp://[::1]:5/",
        ]

    def run(self, data: bytes) -> None:
        text = data.decode("utf-8", "surrogateescape")
        schemes = ("tcp", "udp", "vm")
        problems = 0
        for parse in (
            lambda: parse_uri(text, schemes),
            lambda: parse_uri_list(text, schemes),
            lambda: parse_params(text),
        ):
            try:
                parse()
            except UriError:
                problems += 1
        if problems == 3:
            raise UriError("nothing of it")
