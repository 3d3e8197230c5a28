"""Messages of JGroups channels, and what is refused."""

from __future__ import annotations

import pytest

from atalanta.wire.jgroups_discovery import (
    channel_message_size,
    decode_answer,
    decode_channel_message,
    decode_posted,
    encode_answer,
    encode_channel_message,
    encode_posted,
)
from atalanta.wire.protocol_error import ProtocolError


def test_words_and_answers_come_back_as_they_were() -> None:
    assert decode_channel_message("ch\u00e4nnel", encode_channel_message("ch\u00e4nnel", b"abc")) == b"abc"
    assert decode_channel_message("other", encode_channel_message("channel", b"abc")) is None
    assert decode_posted("c", encode_posted("c", -5, b"abc")) == (-5, b"abc")
    assert decode_posted("d", encode_posted("c", 5, b"abc")) is None
    assert decode_answer(encode_answer([])) == []
    assert decode_answer(encode_answer([b"a", b"", b"ccc"])) == [b"a", b"", b"ccc"]


def test_a_part_of_it_is_not_enough_and_no_error() -> None:
    message, answer = encode_channel_message("c", b"abc"), encode_answer([b"a"])
    for size in range(len(answer)):
        assert decode_answer(answer[:size]) is None
    for size in range(len(message)):
        known = channel_message_size(message[:size])
        assert known is None or known == len(message)


def test_an_answer_is_bounded() -> None:
    found = decode_answer(encode_answer([bytes(60_000)] * 500))
    assert found is not None and len(found) == 17


@pytest.mark.parametrize(
    "data",
    [
        b"beef",
        b"ATLMEET2",
        b"ATLMEET1\x7f\xff",
        b"ATLMEET1\x00\x01c\x7f\xff\xff\xff",
        encode_channel_message("c", b"abc")[:-1],
        encode_channel_message("c", b"abc") + b"x",
    ],
)
def test_what_is_no_word_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_channel_message("c", data)


@pytest.mark.parametrize(
    "data",
    [
        b"beef",
        b"ATLMEET1\x7f\xff\xff\xff\x00\x01",
        b"ATLMEET1\x00\x00\x00\x04\x00\x01\x00\x00\x00\x09",
    ],
)
def test_what_is_no_answer_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_answer(data)
