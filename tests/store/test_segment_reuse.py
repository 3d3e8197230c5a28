"""Segments of no more use become the next ones: nothing of their old content is ever taken for new."""

from __future__ import annotations

import random

import pytest

from atalanta.store.errors import JournalDamaged
from atalanta.store.segment import SEGMENT_HEAD_SIZE, is_spare
from tests.store.journal_rig import config
from tests.store.key_table import Table

SEGMENT = 4096


def churned(seed: int = 1) -> Table:
    """A journal whose current segment was another before."""
    table = Table(config(SEGMENT), seed)
    table.start()
    key = 0
    while len(table.journal.segments) < 2 or not table.journal.segments[-1].used_before:
        key += 1
        table.put(key, 200)
        table.delete(key)
        table.rig.flush()
        table.rig.settle()
        table.compact()
        table.rig.settle()
        assert key < 1000
    return table


def test_no_file_is_filled_with_zeros_once_there_are_old_ones() -> None:
    table = churned()
    created: list[str] = []
    create = table.rig.disk.create

    def counted(name: str, size: int, head: bytes) -> None:
        created.append(name)
        create(name, size, head)

    table.rig.disk.create = counted  # type: ignore[method-assign]
    first = table.journal.segments[-1].number
    for key in range(200):
        table.put(key, 200)
        table.delete(key)
        table.rig.flush()
        table.rig.settle()
        table.compact()
        table.rig.settle()
    assert table.journal.segments[-1].number > first + 10
    assert not created


def test_what_was_there_before_is_not_replayed() -> None:
    table = churned()
    table.put(5000, 100)
    table.rig.flush()
    table.rig.settle()
    table.crash()
    table.start()
    assert list(table.live) == [5000]
    assert table.rig.report.torn_bytes == 0


@pytest.mark.parametrize("seed", range(40))
def test_a_torn_block_is_cut_and_written_over(seed: int) -> None:
    table = churned(seed)
    draw = random.Random(seed)
    table.put(5000, 100)
    table.rig.flush()
    table.rig.settle()
    for _ in range(3):
        table.put(draw.randint(6000, 7000), draw.randint(0, 900))
        table.rig.flush()
        if draw.random() < 0.5:
            table.rig.schedule.step()
        table.crash()
        table.start()
        assert 5000 in table.live


def test_damage_before_a_later_block_is_noticed() -> None:
    table = churned()
    segment = table.journal.segments[-1]
    position = segment.end
    for key in (5000, 5001):
        table.put(key, 50)
        table.rig.flush()
        table.rig.settle()
    assert table.journal.segments[-1] is segment
    table.rig.disk.flip_bit(segment.name, position + 2)
    table.rig.disk.crash()
    with pytest.raises(JournalDamaged, match="record .* follows"):
        table.start()


def test_files_set_aside_serve_the_next_life_if_their_size_is_right() -> None:
    table = churned()
    table.rig.settle()
    aside = [name for name in table.rig.disk.names() if is_spare(name)]
    if not aside:
        number = table.journal.segments[0].number
        table.rig.disk.files["journal-spare-00000000000000000000.log"] = bytearray(SEGMENT)
        aside = ["journal-spare-00000000000000000000.log"]
        assert number > 0
    table.rig.disk.files["journal-spare-00000000000000000009.log"] = bytearray(SEGMENT_HEAD_SIZE)
    table.crash()
    table.start()
    table.rig.settle()
    assert table.journal.set_aside == aside
    assert "journal-spare-00000000000000000009.log" not in table.rig.disk.names()


def test_a_spare_that_cannot_be_made_is_missed_only_when_it_is_needed() -> None:
    """Without room no spare is tried again, nothing deleted is kept, and compaction does not wait for its limits."""
    table = Table(config(SEGMENT, compact_min_segments=100), 1)
    table.start()
    journal = table.journal
    refused: list[str] = []

    def no_room(name: str, size: int, head: bytes) -> None:
        refused.append(name)

    table.rig.disk.create_spare = no_room  # type: ignore[method-assign]
    for key in range(60):
        table.put(key, 200)
        table.rig.flush()
        if refused:
            journal.set_room(False, refused[0])
        table.rig.settle()
    assert len(refused) == 1 and len(journal.segments) > 2 and journal.failed is None
    for key in range(60):
        table.delete(key)
    for _ in range(10):
        table.rig.flush()
        table.rig.settle()
        table.compact()
    table.rig.settle()
    assert len(journal.segments) <= 2
    assert not [name for name in table.rig.disk.names() if is_spare(name)]
    journal.set_room(True)
    table.put(1_000, 200)
    table.rig.flush()
    table.rig.settle()
    assert journal.idle()
