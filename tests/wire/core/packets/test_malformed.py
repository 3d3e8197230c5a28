"""Broken frames give ProtocolError and nothing else, and never make us allocate what they claim."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.core import packet_types
from atalanta.wire.core.client.log_columns import LogColumns
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.codec import decode, encode
from atalanta.wire.core.packets.log_chunk import (
    LogReadColumnsResponse,
    LogReadResponse,
    decode_entries,
)
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.protocol_error import ProtocolError
from tests.golden.frames import one_of_each_type
from tests.wire.core.samples import all_packets

HUGE = (0x7FFFFFFF).to_bytes(4, "big")
NEGATIVE = (0xFFFFFFFF).to_bytes(4, "big")


def use(packet: Packet) -> None:
    """Reads the packet as a receiver does: something could go wrong only then."""
    repr(packet)
    if isinstance(packet, LogReadResponse):
        decode_entries(packet)
    if isinstance(packet, LogReadColumnsResponse):
        packet.chunk.rows()
        LogColumns(packet.chunk.data, packet.chunk.count, packet.chunk)
    if isinstance(packet, SendMessage | ReceiveMessage):
        message = packet.message
        message.properties.items()
        repr((message.routing_type, message.duplicate_id, message.group_id, message.size))


def payloads() -> list[tuple[int, bytes]]:
    captured = [(frame.type, frame.payload) for frame in one_of_each_type()]
    made = [(packet.type, encode(packet, 10)[13:]) for packet in all_packets()]
    return [(code, payload[:2000]) for code, payload in captured + made]


def test_a_frame_cut_anywhere_is_refused_or_read() -> None:
    refused = 0
    for code, payload in payloads():
        for size in range(len(payload)):
            for version in (129, 136):
                try:
                    use(decode(code, payload[:size], version))
                except (ProtocolError, DecodeError):
                    refused += 1
    assert refused > 5000


def test_lengths_beyond_the_frame_are_refused_without_being_believed() -> None:
    """Every place near the begin of every sample overwritten by a huge and a negative length."""
    tracemalloc.start()
    try:
        for code, payload in payloads():
            for position in range(0, min(len(payload), 250) - 4):
                for length in (HUGE, NEGATIVE):
                    broken = payload[:position] + length + payload[position + 4 :]
                    try:
                        use(decode(code, broken))
                    except (ProtocolError, DecodeError):
                        continue
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


def test_random_damage_never_gives_another_error() -> None:
    source = random.Random(7)
    samples = payloads()
    for _ in range(8000):
        code, payload = source.choice(samples)
        broken = bytearray(payload or b"\x00")
        for _ in range(source.randint(1, 4)):
            broken[source.randrange(len(broken))] = source.randrange(256)
        try:
            use(decode(code, bytes(broken), source.choice((0, 125, 130, 132, 136))))
        except (ProtocolError, DecodeError):
            continue


def test_noise_as_every_packet_type() -> None:
    source = random.Random(11)
    for code in packet_types.NAMES:
        for _ in range(60):
            noise = source.randbytes(source.randrange(80))
            try:
                use(decode(code, noise))
            except (ProtocolError, DecodeError):
                continue


@pytest.mark.parametrize("size", range(0, 25))
def test_a_send_shorter_than_its_tail(size: int) -> None:
    with pytest.raises(ProtocolError, match="SESS_SEND"):
        decode(packet_types.SESS_SEND, bytes(size))


def test_broken_properties_are_refused_at_the_door() -> None:
    """Whoever filters or redistributes the message later must be able to rely on them."""
    packet = next(packet for packet in all_packets() if isinstance(packet, SendMessage))
    payload = encode(packet, 10)[13:]
    at = payload.index("carrier".encode("utf-16-le")) + 14
    assert payload[at] == 10
    with pytest.raises(ProtocolError, match="SESS_SEND: property value.*unknown property type 99"):
        decode(packet_types.SESS_SEND, payload[:at] + b"\x63" + payload[at + 1 :])
