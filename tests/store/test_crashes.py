"""Seeded power cuts at any moment: what was reported durable is recovered, exactly."""

from __future__ import annotations

import random

import pytest

from atalanta.store.config import JournalConfig
from tests.share import share
from tests.store.journal_rig import JOURNAL_ID
from tests.store.key_table import Table

LIVES = 6
BATCHES = 20
SEEDS_A_BATCH = 25


def settings(draw: random.Random) -> JournalConfig:
    """Sizes that bring blocks, segments, steps and pages into every order."""
    return JournalConfig(
        JOURNAL_ID,
        segment_size_bytes=draw.choice((1024, 4096, 8192, 40_000)),
        compact_min_segments=2,
        compact_percentage=draw.choice((30, 50, 75)),
        block_size_bytes_max=draw.choice((100, 1000, 100_000)),
        compact_step_bytes=draw.choice((64, 700, 100_000)),
        read_size_bytes=draw.choice((64, 999, 1 << 20)),
    )


def run(seed: int) -> int:
    """Some lives of one journal, each ended by a power cut; returns how many tails were torn."""
    draw = random.Random(seed)
    table = Table(settings(draw), seed)
    table.start()
    torn = 0
    for _ in range(LIVES):
        table.work(draw, draw.randint(0, 60), draw.choice((5, 60)), draw.choice((20, 900)))
        if draw.random() < 0.2:
            table.rig.disk.fail_next_sync()
            table.rig.flush()
            while table.journal.failed is None and table.rig.schedule.step():
                pass
        table.crash()
        table.start()
        torn += table.rig.report.torn_bytes > 0
    return torn


@pytest.mark.parametrize("batch", share(range(BATCHES)))
def test_confirmed_records_survive(batch: int) -> None:
    torn = sum(run(seed) for seed in range(batch * SEEDS_A_BATCH, (batch + 1) * SEEDS_A_BATCH))
    assert torn > 0, "the crashes must hit commits"


def test_a_crash_right_after_the_start_and_again() -> None:
    """Recovery itself may be cut short: it is repeated until it gets through."""
    for seed in range(100):
        draw = random.Random(seed)
        table = Table(settings(draw), seed)
        table.start()
        table.work(draw, 30, 20, 200)
        for _ in range(4):
            table.crash()
            table.start()
            for _ in range(draw.randint(0, 2)):
                table.rig.schedule.step()


def test_one_seed_gives_one_disk() -> None:
    def files(seed: int) -> dict[str, bytes]:
        draw = random.Random(seed)
        table = Table(settings(draw), seed)
        table.start()
        table.work(draw, 60, 30, 300)
        table.crash()
        table.start()
        return {name: bytes(data) for name, data in table.rig.disk.files.items()}

    assert files(7) == files(7)
