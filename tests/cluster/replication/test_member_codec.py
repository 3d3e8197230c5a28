"""The frames between two members: every message comes back as it was, every damaged one is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.cluster.replication.member_codec import (
    FRAME_SIZE_MAX,
    SIZE_SIZE,
    MemberFramer,
    MemberMessage,
    decode_from_active,
    decode_from_follower,
    encode_message,
)
from atalanta.message.encoding.buffer import DecodeError
from tests.cluster.replication.member_samples import FROM_ACTIVE, FROM_FOLLOWER

# The frames that end with bytes of any size: shorter, they are other ones.
OPEN_ENDED = {"JournalBlock", "PageFile", "LargeData", "SettingsFile"}

Decoder = Callable[[bytes], MemberMessage]
CASES: list[tuple[Decoder, MemberMessage]] = [
    *[(decode_from_active, message) for message in FROM_ACTIVE],
    *[(decode_from_follower, message) for message in FROM_FOLLOWER],
]


def frame_of(message: MemberMessage) -> bytes:
    framer = MemberFramer()
    framer.feed(encode_message(message))
    frame = framer.next()
    assert frame is not None and framer.next() is None
    return frame


@pytest.mark.parametrize(("decode", "message"), CASES)
def test_a_message_comes_back(decode: Decoder, message: MemberMessage) -> None:
    assert decode(frame_of(message)) == message


@pytest.mark.parametrize(("decode", "message"), CASES)
def test_a_truncated_or_longer_frame_is_refused(decode: Decoder, message: MemberMessage) -> None:
    frame = frame_of(message)
    kind = type(message).__name__
    for size in range(len(frame)):
        try:
            made = decode(frame[:size])
        except DecodeError:
            continue
        assert kind in OPEN_ENDED and made != message
    if kind not in OPEN_ENDED:
        with pytest.raises(DecodeError):
            decode(frame + b"\0")


def test_the_ends_take_only_frames_of_the_other_end() -> None:
    for message in FROM_ACTIVE:
        with pytest.raises(DecodeError, match="no frame of a follower"):
            decode_from_follower(frame_of(message))
    for answer in FROM_FOLLOWER:
        with pytest.raises(DecodeError, match="no frame of an active node"):
            decode_from_active(frame_of(answer))


def test_frames_come_in_pieces_of_any_size() -> None:
    data = b"".join([encode_message(message) for message in FROM_ACTIVE])
    for step in (1, 3, 64, len(data)):
        framer = MemberFramer()
        found: list[MemberMessage] = []
        for start in range(0, len(data), step):
            framer.feed(data[start : start + step])
            while (frame := framer.next()) is not None:
                found.append(decode_from_active(frame))
        assert tuple(found) == FROM_ACTIVE


@pytest.mark.parametrize("size", [0, FRAME_SIZE_MAX + 1, 0xFFFFFFFF])
def test_a_frame_of_an_impossible_size_is_refused_by_its_size(size: int) -> None:
    framer = MemberFramer()
    framer.feed(size.to_bytes(SIZE_SIZE, "big"))
    with pytest.raises(DecodeError, match="size"):
        framer.next()


def test_a_count_beyond_the_frame_is_refused() -> None:
    huge = (1 << 31) - 1
    with pytest.raises(DecodeError):
        decode_from_active(b"\x01" + bytes(32) + huge.to_bytes(4, "big"))
    with pytest.raises(DecodeError):
        decode_from_follower(b"\x22" + huge.to_bytes(4, "big"))


def test_an_epoch_table_that_does_not_ascend_is_refused() -> None:
    table = b"".join(number.to_bytes(8, "big") for number in (3, 9, 3, 10))
    with pytest.raises(DecodeError, match="epochs"):
        decode_from_active(b"\x01" + bytes(32) + (2).to_bytes(4, "big") + table)
