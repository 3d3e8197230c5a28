"""The wait for a shared store: what an operator is told."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from pathlib import Path

import pytest

from atalanta.app import passive_run
from atalanta.app.passive_run import PassiveRun
from atalanta.ha.lease import LeaseTerms
from atalanta.ha.policy import HaPolicy
from atalanta.runtime.ha.member_file import MemberRecord
from atalanta.runtime.ha.pair_members import PairMembers
from atalanta.runtime.ha.shared_store import HeldEpoch, SharedStore


class FullStore(SharedStore):
    """A store whose disk has no room for another epoch."""

    def take(self, holder: str = "") -> HeldEpoch | None:
        raise OSError(errno.ENOSPC, "no space left on device")


class NoDoors:
    def listen_early(self) -> None:
        """Opens nothing."""


def test_a_store_that_cannot_be_taken_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passive_run, "RETRY_S", 0.01)
    caplog.set_level(logging.INFO)
    store = FullStore(
        tmp_path / "journal",
        tmp_path / "pages",
        tmp_path / "large",
        LeaseTerms(500_000_000),
        lambda: bytes(15) + b"\x01",
    )
    own = MemberRecord("own", "primary", {}, "failback", 0)
    members = PairMembers(store.members_folder, own, time.monotonic_ns)

    async def tries(count: int) -> None:
        told = ""
        for _ in range(count):
            run = PassiveRun(store, HaPolicy(), members, "test", time.monotonic_ns, -1, told)
            assert await run.wait(NoDoors(), lambda view: None) is None
            assert run.again
            told = run.told

    asyncio.run(tries(3))
    found = [each for each in caplog.records if getattr(each, "event", "") == "store_unreadable"]
    assert len(found) == 1
