"""Records that wait for a commit come out in order and whole, however they are cut into blocks."""

from __future__ import annotations

import random

import pytest

from atalanta.store.block import PAYLOAD_SIZE_MAX, decode_block_head, decode_records
from atalanta.store.commit_buffer import CommitBuffer
from tests.store.journal_rig import encode_block

ID = bytes(16)


def put(waiting: CommitBuffer, kind: int, payload: bytes) -> None:
    waiting.begin(kind).write(payload)
    waiting.end()


def test_any_mixture_of_putting_and_taking() -> None:
    for seed in range(30):
        dice = random.Random(seed)
        waiting = CommitBuffer(dice.choice([1, 100, 1_000, 100_000]))
        put_in: list[tuple[int, bytes]] = []
        came_out: list[tuple[int, bytes]] = []
        for _ in range(400):
            if dice.random() < 0.6:
                record = (dice.randrange(256), dice.randbytes(dice.choice([0, 1, 30, 300, 3_000])))
                put(waiting, *record)
                put_in.append(record)
            elif waiting.count:
                room = dice.choice([0, 50, 500, 5_000, 1_000_000])
                first = waiting.first_size()
                before = waiting.count
                taken = waiting.take(room)
                assert len(taken.data) <= max(room, first)
                assert waiting.count == before - len(taken.kinds)
                block = encode_block(ID, 1, len(taken.kinds), taken.data)
                head = decode_block_head(ID, block)
                assert head is not None
                found = decode_records(head, taken.data)
                assert [record.kind for record in found] == list(taken.kinds)
                came_out += [(record.kind, record.payload) for record in found]
        while waiting.count:
            taken = waiting.take(1_000_000)
            head = decode_block_head(ID, encode_block(ID, 1, len(taken.kinds), taken.data))
            assert head is not None
            came_out += [(record.kind, record.payload) for record in decode_records(head, taken.data)]
        assert came_out == put_in
        assert waiting.appended_bytes == sum(len(payload) + 5 for _, payload in put_in)


def test_what_was_begun_and_not_ended_is_not_there() -> None:
    waiting = CommitBuffer(1_000)
    put(waiting, 1, b"one")
    waiting.begin(2).write(b"half")
    put(waiting, 3, b"three")
    assert waiting.count == 2 and list(waiting.take(1_000).kinds) == [1, 3]


def test_impossible_kinds() -> None:
    waiting = CommitBuffer(1_000)
    with pytest.raises(ValueError, match="kind 256"):
        waiting.begin(256)
    assert waiting.count == 0 and PAYLOAD_SIZE_MAX < 1 << 31


def test_taking_does_not_move_what_waits_behind() -> None:
    """Pieces are closed at the size of a block: a backlog is not copied for each block that is taken of it."""
    waiting = CommitBuffer(10_000)
    for _ in range(2_000):
        put(waiting, 1, b"x" * 95)
    behind = waiting._chunks[3].data
    waiting.take(10_000)
    waiting.take(7_000)
    assert waiting._chunks[1].data is behind or waiting._chunks[2].data is behind
