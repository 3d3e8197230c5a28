"""The bytes of guards: a proof is worth something for one epoch, one secret and one connection."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from atalanta.runtime.ha.guard.frames import (
    ANSWER_SIZE,
    ENDED,
    HELLO_SIZE,
    WATCH_SIZE,
    WATCHED,
    GuardBytesDamaged,
    decode_answer,
    decode_hello,
    decode_watch,
    encode_answer,
    encode_hello,
    encode_watch,
    epoch_secret,
)

BYTES = some.binary(min_size=32, max_size=32)
EPOCHS = some.integers(1, 2**64 - 1)


@given(BYTES, BYTES, BYTES, EPOCHS, some.sampled_from([WATCHED, ENDED]))
def test_both_sides_understand_each_other(
    secret: bytes, guard_nonce: bytes, nonce: bytes, epoch: int, kind: int
) -> None:
    assert decode_hello(encode_hello(guard_nonce)) == guard_nonce
    watch = encode_watch(secret, epoch, guard_nonce, nonce)
    assert len(watch) == WATCH_SIZE
    assert decode_watch(watch, secret, epoch, guard_nonce) == nonce
    answer = encode_answer(kind, secret, epoch, guard_nonce, nonce)
    assert len(answer) == ANSWER_SIZE
    assert decode_answer(answer, secret, epoch, guard_nonce, nonce) == kind


@pytest.mark.parametrize(
    "secret, epoch, guard_nonce, nonce",
    [
        (b"x" * 32, 7, b"g" * 32, b"b" * 32),
        (b"s" * 32, 8, b"g" * 32, b"b" * 32),
        (b"s" * 32, 7, b"x" * 32, b"b" * 32),
        (b"s" * 32, 7, b"g" * 32, b"x" * 32),
    ],
    ids=["another secret", "another epoch", "another connection of the guard", "another connection of the backup"],
)
def test_a_proof_of_something_else_is_none(secret: bytes, epoch: int, guard_nonce: bytes, nonce: bytes) -> None:
    answer = encode_answer(ENDED, b"s" * 32, 7, b"g" * 32, b"b" * 32)
    with pytest.raises(GuardBytesDamaged):
        decode_answer(answer, secret, epoch, guard_nonce, nonce)
    if nonce[:1] == b"b":
        watch = encode_watch(b"s" * 32, 7, b"g" * 32, b"b" * 32)
        with pytest.raises(GuardBytesDamaged):
            decode_watch(watch, secret, epoch, guard_nonce)


@given(some.integers(0), some.integers(0, 7))
def test_a_flipped_bit_is_seen(at: int, bit: int) -> None:
    secret, guard_nonce, nonce = b"s" * 32, b"g" * 32, b"b" * 32
    for frame in (encode_watch(secret, 7, guard_nonce, nonce), encode_answer(ENDED, secret, 7, guard_nonce, nonce)):
        flipped = bytearray(frame)
        flipped[at % len(frame)] ^= 1 << bit
        with pytest.raises(GuardBytesDamaged):
            if len(frame) == WATCH_SIZE:
                decode_watch(bytes(flipped), secret, 7, guard_nonce)
            else:
                decode_answer(bytes(flipped), secret, 7, guard_nonce, nonce)


def test_that_it_is_watched_does_not_prove_an_end() -> None:
    answer = encode_answer(WATCHED, b"s" * 32, 7, b"g" * 32, b"b" * 32)
    with pytest.raises(GuardBytesDamaged):
        decode_answer(bytes([ENDED]) + answer[1:], b"s" * 32, 7, b"g" * 32, b"b" * 32)


@given(some.binary(max_size=2 * WATCH_SIZE))
def test_any_bytes_are_decoded_or_refused(data: bytes) -> None:
    with contextlib.suppress(GuardBytesDamaged):
        assert len(decode_hello(data)) == HELLO_SIZE - 15
    with pytest.raises(GuardBytesDamaged):
        decode_watch(data, b"s" * 32, 7, b"g" * 32)
    with pytest.raises(GuardBytesDamaged):
        decode_answer(data, b"s" * 32, 7, b"g" * 32, b"b" * 32)


def test_each_epoch_and_each_salt_has_a_secret_of_its_own() -> None:
    secrets = {epoch_secret(key, epoch, salt) for key in (b"k", b"l") for epoch in (1, 2) for salt in (b"1", b"2")}
    assert len(secrets) == 8
