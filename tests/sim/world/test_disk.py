"""The virtual disk: what finished stands, what did not is torn or gone, and one seed has one course."""

from __future__ import annotations

import random

import pytest

from atalanta.sim.world.disk import SimDisk
from tests.store.journal_rig import Schedule

OLD = bytes([1]) * 20_000
NEW = bytes([2]) * 10_000


class Bench:
    """A disk with one file of old bytes."""

    def __init__(self, seed: int = 1) -> None:
        self.schedule = Schedule()
        self.disk = SimDisk(self.schedule.at, random.Random(seed))
        self.committed: list[int] = []
        self.failures: list[str] = []
        self.disk.attach(self.committed.append, self.failures.append)
        self.disk.create("a", len(OLD), OLD)
        self.settle()

    def settle(self) -> None:
        while self.schedule.step():
            pass


def test_a_copy_has_any_pages_of_the_commit_in_work_and_the_disk_has_all_later() -> None:
    seen = set()
    for seed in range(40):
        bench = Bench(seed)
        bench.disk.commit("a", 300, NEW, 1)
        copy = SimDisk(bench.schedule.at, random.Random(seed))
        copy.inherit(bench.disk)
        bench.settle()
        assert bench.committed == [1] and bench.disk.read("a", 300, len(NEW)) == NEW
        share = copy.read("a", 0, len(OLD)).count(2)
        seen.add("none" if share == 0 else "all" if share == len(NEW) else "some")
        copy.commit("a", 0, NEW, 2)
        bench.settle()
        assert bench.disk.read("a", 0, 1) == OLD[:1]
    assert seen == {"none", "some", "all"}


def test_a_crash_keeps_any_pages_of_the_commit_in_work() -> None:
    """Each byte is old or new, pages are whole, and all, none and mixtures occur."""
    seen = set()
    for seed in range(60):
        bench = Bench(seed)
        bench.disk.commit("a", 300, NEW, 1)
        bench.disk.commit("a", 15_000, NEW[:100], 2)
        bench.disk.crash()
        bench.settle()
        assert bench.committed == []
        data = bench.disk.read("a", 0, len(OLD))
        assert data[:300] == OLD[:300] and data[12_288:] == OLD[12_288:]
        # Behind the data, in its last block of 4096, zeros may stand.
        assert set(data[10_300:12_288]) <= {OLD[0], 0}
        edges = [at for at in range(1, len(data)) if data[at] != data[at - 1]]
        assert all(at % 512 == 0 or at in (300, 10_300) for at in edges)
        share = data.count(2)
        seen.add("none" if share == 0 else "all" if share == len(NEW) else "some")
    assert seen == {"none", "some", "all"}


def test_what_was_committed_stands() -> None:
    for seed in range(20):
        bench = Bench(seed)
        bench.disk.commit("a", 0, NEW, 1)
        bench.settle()
        bench.disk.commit("a", 10_000, NEW, 2)
        bench.disk.crash()
        assert bench.disk.read("a", 0, 10_000) == NEW


def test_a_creation_may_be_cut_off_anywhere() -> None:
    lengths = set()
    for seed in range(40):
        bench = Bench(seed)
        bench.disk.create("b", 1000, b"head")
        bench.disk.crash()
        lengths.add(bench.disk.size("b") if "b" in bench.disk.names() else -1)
    assert -1 in lengths and len(lengths) > 10


def test_a_disk_that_fails_confirms_nothing_until_the_crash() -> None:
    bench = Bench()
    bench.disk.fail_next_sync()
    bench.disk.commit("a", 0, b"x", 1)
    bench.disk.commit("a", 1, b"y", 2)
    bench.settle()
    bench.disk.commit("a", 2, b"z", 3)
    bench.settle()
    assert bench.committed == [] and len(bench.failures) == 1
    with pytest.raises(OSError):
        bench.disk.repair("a", 0, b"x")
    bench.disk.crash()
    bench.disk.commit("a", 0, b"x", 4)
    bench.settle()
    assert bench.committed == [4]


def test_healing_takes_back_what_was_planted() -> None:
    bench = Bench()
    bench.disk.slow = 2_000
    bench.disk.fail_next_sync()
    bench.disk.strike_at_commit(2, lambda: pytest.fail("struck after healing"))
    bench.disk.commit("a", 0, b"x", 1)
    bench.disk.commit("a", 1, b"y", 2)
    started = bench.schedule.now
    bench.disk.heal()
    while not bench.committed:
        assert bench.schedule.step()
    assert bench.schedule.now - started <= 2 * bench.disk.job_max_ns
    bench.settle()
    assert bench.committed == [1, 2] and bench.failures == []
