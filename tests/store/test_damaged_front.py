"""The whole front of a damaged journal: what a member of a group goes on with, and power cuts on the way there."""

from __future__ import annotations

import random

import pytest

from atalanta.store.errors import JournalDamaged
from atalanta.store.recovery import read_back, read_front
from atalanta.store.segment import SEGMENT_HEAD_SIZE, segment_number
from atalanta.store.tail_cut import DAMAGED_PREFIX
from tests.store.grown_journal import grown, images
from tests.store.journal_rig import Collector, Rig

Records = list[tuple[int, int, bytes]]


def put(rig: Rig, files: dict[str, bytes]) -> None:
    """Gives the disk these files."""
    rig.disk.crash()
    rig.disk.files = {name: bytearray(content) for name, content in files.items()}
    rig.disk.attach(lambda token: None, rig.failures.append)


def read(rig: Rig) -> Records | None:
    """Returns the records of the journal, None if it is damaged."""
    replay = Collector()
    try:
        read_back(rig.disk, rig.config, replay)
    except JournalDamaged:
        return None
    return replay.records


def damaged(rig: Rig, draw: random.Random) -> dict[str, bytes]:
    """Flips bits of the journal until one does damage; returns the files."""
    before = images(rig)
    while True:
        put(rig, before)
        name = draw.choice([each for each in before if segment_number(each)])
        used = [place for place, byte in enumerate(before[name]) if byte]
        if used:
            rig.disk.flip_bit(name, draw.choice(used), draw.randrange(8))
            if read(rig) is None:
                return images(rig)


def front(rig: Rig) -> Records:
    """Begins to cut the journal behind its whole front; returns that."""
    replay = Collector()
    state = read_front(rig.disk, rig.config, replay)
    assert state.report.last == (replay.records[-1][0] if replay.records else 0)
    return replay.records


@pytest.mark.parametrize("seed", range(40))
def test_the_journal_ends_before_a_flipped_bit_and_the_rest_is_kept(seed: int) -> None:
    rig, _ = grown()
    whole = rig.restart().records
    before = damaged(rig, random.Random(seed))
    left = front(rig)
    assert left == whole[: len(left)]
    rig.settle()
    kept = [name for name in rig.disk.names() if name.startswith(DAMAGED_PREFIX)]
    assert kept and sum(len(rig.disk.files[name]) for name in kept) > 0
    for name in kept:  # byte for byte
        old = before[name.removeprefix(DAMAGED_PREFIX)]
        content = bytes(rig.disk.files[name])
        assert content == old or old.endswith(content[SEGMENT_HEAD_SIZE:])
    assert rig.restart().records == left
    rig.commit(b"new")
    assert rig.restart().records[-1][2] == b"new"


def test_a_missing_file_leaves_nothing() -> None:
    rig, _ = grown()
    files = images(rig)
    del files[sorted(name for name in files if segment_number(name))[2]]
    put(rig, files)
    assert read(rig) is None
    assert front(rig) == []
    rig.settle()
    assert [name for name in rig.disk.names() if segment_number(name)] == []


@pytest.mark.parametrize("seed", range(4))
def test_after_a_power_cut_the_journal_is_damaged_as_before_or_its_front(seed: int) -> None:
    rig, _ = grown()
    before = damaged(rig, random.Random(seed))
    left = front(rig)
    for steps in range(30):
        put(rig, before)
        front(rig)
        for _ in range(steps):
            rig.schedule.step()
        rig.disk.crash()
        assert read(rig) in (None, left)
        assert front(rig) == left
        rig.settle()
        assert read(rig) == left
