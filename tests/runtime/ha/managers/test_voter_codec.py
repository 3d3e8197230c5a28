"""The bytes of voters: everything comes back as it was, and no bytes do harm."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from atalanta.ha.voter import Kind, VoterAnswer, VoterRequest, VoterState
from atalanta.runtime.ha.managers.voter_codec import (
    DATA_SIZE_MAX,
    NAME_SIZE_MAX,
    PAYLOAD_SIZE_MAX,
    VoterBytesDamaged,
    VoterRefused,
    decode_answer,
    decode_request,
    decode_state_file,
    encode_answer,
    encode_refusal,
    encode_request,
    encode_state_file,
)

NUMBERS = some.integers(0, 2**64 - 1)
BALLOTS = some.tuples(NUMBERS, some.binary(max_size=16))
STATES = some.builds(VoterState, BALLOTS, BALLOTS, NUMBERS, some.binary(max_size=100))
KINDS = some.sampled_from(Kind)


@given(KINDS, BALLOTS, NUMBERS, some.binary(max_size=100), some.text(min_size=1, max_size=25))
def test_a_request_comes_back(
    kind: Kind, ballot: tuple[int, bytes], version: int, data: bytes, name: str
) -> None:
    request = VoterRequest(kind, ballot, version, data)
    assert decode_request(encode_request(name, request)) == (name, request)


@given(some.builds(VoterAnswer, KINDS, BALLOTS, some.booleans(), STATES))
def test_an_answer_comes_back(answer: VoterAnswer) -> None:
    assert decode_answer(encode_answer(answer)) == answer


@given(STATES, some.integers(0), some.integers(0, 7))
def test_a_flipped_bit_of_a_file_is_seen(state: VoterState, at: int, bit: int) -> None:
    data = encode_state_file(state)
    assert decode_state_file(data) == state
    flipped = bytearray(data)
    flipped[at % len(data)] ^= 1 << bit
    with pytest.raises(VoterBytesDamaged):
        decode_state_file(bytes(flipped))


@given(some.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    for decode in (decode_request, decode_answer, decode_state_file):
        with contextlib.suppress(VoterBytesDamaged, VoterRefused):
            decode(data)


def test_limits() -> None:
    largest = VoterRequest(Kind.ACCEPT, (1, b"l" * 16), 1, b"d" * DATA_SIZE_MAX)
    assert len(encode_request("n" * NAME_SIZE_MAX, largest)) <= PAYLOAD_SIZE_MAX
    for name, data in (("", b""), ("n" * (NAME_SIZE_MAX + 1), b""), ("n", b"d" * (DATA_SIZE_MAX + 1))):
        with pytest.raises(ValueError):
            encode_request(name, VoterRequest(Kind.ACCEPT, (1, b""), 1, data))
    with pytest.raises(VoterRefused, match="too many"):
        decode_answer(encode_refusal("too many"))
