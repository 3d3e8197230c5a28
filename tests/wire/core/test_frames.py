"""Cutting a stream into frames."""

from __future__ import annotations

import tracemalloc

import pytest
from librt.strings import BytesWriter

from atalanta.wire.core.frames import Framer, write_frame_header
from atalanta.wire.core.packets.codec import decode_frame, encode
from atalanta.wire.core.packets.connection import NullResponse, Ping
from atalanta.wire.core.packets.session import SessionStart
from atalanta.wire.protocol_error import ProtocolError


def test_the_handshake_may_come_in_pieces_and_with_frames() -> None:
    ping = encode(Ping(60_000), 0)
    stream = b"ARTEMIS" + ping + ping
    for step in range(1, len(stream) + 1):
        framer = Framer(True)
        found = []
        for start in range(0, len(stream), step):
            found += framer.feed(stream[start : start + step])
        assert [decode_frame(frame) for frame in found] == [Ping(60_000), Ping(60_000)]


@pytest.mark.parametrize("start", [b"GET / HT", b"ARTEMIX", b"A0", b"\x00\x00\x00\x11\x0a\x00\x00"])
def test_another_beginning_is_refused(start: bytes) -> None:
    with pytest.raises(ProtocolError, match="does not begin with ARTEMIS"):
        Framer(True).feed(start)


def test_a_frame_knows_what_it_is() -> None:
    (frame,) = Framer(False).feed(encode(NullResponse(-3), 11))
    assert (frame.type, frame.channel, frame.size) == (21, 11, 21)
    assert frame.payload == (-3).to_bytes(8, "big", signed=True)


def test_frames_without_payload_and_negative_types() -> None:
    out = BytesWriter()
    write_frame_header(out, -18, 1, 0)
    out.write(encode(SessionStart(), 10))
    first, second = Framer(False).feed(out.getvalue())
    assert (first.type, first.channel, first.payload) == (-18, 1, b"")
    assert (second.type, second.channel, second.payload) == (67, 10, b"")


def test_a_frame_too_long_is_refused_before_it_is_kept() -> None:
    framer = Framer(False, frame_bytes_max=100)
    framer.feed(encode(Ping(1), 0))
    with pytest.raises(ProtocolError, match="frame of 101 bytes: at most 100"):
        framer.feed((97).to_bytes(4, "big"))
    assert framer.kept_bytes == 0


def test_the_limit_can_be_raised_after_login() -> None:
    framer = Framer(False, frame_bytes_max=20)
    framer.frame_bytes_max = 21
    assert len(framer.feed(encode(Ping(1), 0))) == 1


@pytest.mark.parametrize("length", [0, 8, -1, -(1 << 31)])
def test_lengths_that_no_frame_has(length: int) -> None:
    with pytest.raises(ProtocolError, match="at least 9 bytes"):
        Framer(False).feed(length.to_bytes(4, "big", signed=True))


def test_a_long_frame_in_many_pieces_is_joined_once() -> None:
    """Joining at each piece would take the square of the frame's length."""
    payload = bytes(4 << 20)
    out = BytesWriter()
    write_frame_header(out, 77, 10, len(payload))
    out.write(payload)
    stream = out.getvalue()
    framer = Framer(False)
    found = []
    for start in range(0, len(stream), 256):
        found += framer.feed(stream[start : start + 256])
    assert [frame.payload == payload for frame in found] == [True]
    assert framer.kept_bytes == 0


def test_a_frame_that_comes_byte_by_byte_takes_no_more_memory_than_its_bytes() -> None:
    """An object for each byte would be some forty times as much, before login too."""
    size = 60_000
    frame = (size + 9).to_bytes(4, "big") + b"\x47" + bytes(8) + bytes(range(250)) * (size // 250)
    framer = Framer(False)
    tracemalloc.start()
    try:
        for at in range(len(frame) - 1):
            assert framer.feed(frame[at : at + 1]) == []
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * size, f"{kept} bytes kept, {peak} at once"
    (found,) = framer.feed(frame[-1:])
    assert found.payload == frame[13:]
