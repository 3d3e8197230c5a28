"""The wait for a shared store: what an operator is told."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from atalanta.app.startup_error import StartupError
from atalanta.app.store import passive_run
from atalanta.app.store.passive_run import PassiveRun, StoreWait
from atalanta.ha.folder_lease import FolderRecord
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.policy import HaPolicy
from atalanta.runtime.ha.member_file import MemberRecord
from atalanta.runtime.ha.pair_members import PairMembers
from atalanta.runtime.ha.shared_store import HeldEpoch, SharedStore, StoreView
from atalanta.runtime.process import exit_codes

POLICY = HaPolicy()


class FullStore(SharedStore):
    """A store whose disk has no room for another epoch, for some attempts."""

    attempts = 0
    full = 3

    def take(self, holder: str = "") -> HeldEpoch | None:
        self.attempts += 1
        if self.attempts > self.full:
            return super().take(holder)
        raise OSError(errno.ENOSPC, "no space left on device")


class CountedPorts:
    opened = 0

    def listen_early(self) -> None:
        self.opened += 1


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FullStore:
    monkeypatch.setattr(passive_run, "RETRY_S", 0.01)
    return FullStore(
        tmp_path / "journal",
        tmp_path / "pages",
        tmp_path / "large",
        LeaseTerms(500_000_000),
        lambda: bytes(15) + b"\x01",
    )


def runs_of(
    store: SharedStore,
    store_wait: StoreWait,
    ports: CountedPorts,
    policy: HaPolicy = POLICY,
    waiting: Callable[[StoreView], None] = lambda view: None,
) -> list[PassiveRun]:
    """Runs until the store is taken, or nobody waits any more; all runs belong to one wait."""
    own = MemberRecord("own", "primary", {}, "failback", 0)
    members = PairMembers(store.members_folder, own, time.monotonic_ns)
    runs: list[PassiveRun] = []

    async def wait() -> None:
        while not runs or runs[-1].again:
            run = PassiveRun(store, policy, members, "test", time.monotonic_ns, store_wait)
            runs.append(run)
            held = await run.wait(ports, waiting)
            if held is not None:
                held.stop("released")

    asyncio.run(wait())
    return runs


def test_a_store_that_cannot_be_taken_is_told_once(
    store: FullStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ports = CountedPorts()
    runs = runs_of(store, StoreWait(POLICY, time.monotonic_ns), ports)
    assert store.attempts == 4
    # The first attempt has opened the ports: they are bound anew, and wait for an attempt that succeeds.
    assert (len(runs), ports.opened) == (2, 1)
    events = [getattr(each, "event", "") for each in caplog.records]
    assert events.count("store_unreadable") == 1
    assert events.count("store_free") == 1


class LockedStore(FullStore):
    """A store that this user may not write, after `looks` looks."""

    looks = 0

    def look(self) -> StoreView:
        if self.looks:
            self.looks -= 1
            return super().look()
        raise PermissionError(errno.EACCES, "not allowed")


@pytest.mark.parametrize("looks", [0, 1])
def test_a_store_that_this_user_may_not_write_ends_a_start_and_not_a_wait(store: FullStore, looks: int) -> None:
    store.__class__ = LockedStore
    assert isinstance(store, LockedStore)
    store.looks = looks
    store.full = 1_000_000
    store_wait = StoreWait(POLICY, time.monotonic_ns, 300)
    if looks:
        assert runs_of(store, store_wait, CountedPorts())[-1].timed_out
    else:
        with pytest.raises(StartupError, match="this user has to write there") as refused:
            runs_of(store, store_wait, CountedPorts())
        assert refused.value.status == exit_codes.DISK_FAILED


def test_the_longest_wait_counts_from_its_begin(store: FullStore) -> None:
    store.full = 1_000_000
    begin = time.monotonic()
    runs = runs_of(store, StoreWait(POLICY, time.monotonic_ns, 300), CountedPorts())
    assert runs[-1].timed_out and len(runs) == 2
    assert time.monotonic() - begin >= 0.3


class FoundStore(FullStore):
    """A store that another process has just taken: it has made the epoch, and writes its record after `looks` looks."""

    looks = 3

    def look(self) -> StoreView:
        self.looks -= 1
        record = FolderRecord(epoch=1, holder="depot", renewals=0, state="active", length_ns=10**9, clock_ns=0, boot="")
        return StoreView(1, False, None if self.looks > 0 else record, b"%d" % (self.looks > 0))


@pytest.mark.parametrize("looks", [3, 1_000_000])
def test_who_waits_is_told_the_name_of_a_holder_that_has_just_begun(store: FullStore, looks: int) -> None:
    store.__class__ = FoundStore
    assert isinstance(store, FoundStore)
    store.looks = looks
    told: list[str] = []
    policy = replace(HaPolicy(), lease_ms=500)
    store_wait = StoreWait(policy, time.monotonic_ns, 1500)
    runs_of(store, store_wait, CountedPorts(), policy, lambda view: told.append(view.holder))
    assert told == (["depot"] if looks == 3 else [""])  # whoever never says its name is told without one
