"""Acknowledgements that nobody waits for share a commit: with the next message, or alone a little later."""

from __future__ import annotations

from atalanta.store.journal import COMMIT_TIMER, IDLE_RECORDS_NS
from tests.store.journal_rig import Rig


def test_an_idle_record_waits_for_the_next_one() -> None:
    rig = Rig()
    rig.start()
    rig.journal.append_idle(1, b"idle")
    rig.flush()
    rig.settle()
    assert rig.durable == [] and rig.timers.at == {COMMIT_TIMER: IDLE_RECORDS_NS}
    rig.journal.append(1, b"message")
    rig.flush()
    rig.settle()
    assert rig.durable == [2]


def test_it_is_committed_alone_after_a_while() -> None:
    rig = Rig()
    rig.start()
    rig.journal.append_idle(1, b"idle")
    rig.flush()
    rig.journal.on_timer(IDLE_RECORDS_NS, COMMIT_TIMER)
    rig.flush()
    rig.settle()
    assert rig.durable == [1]


def test_hurry_commits_it_alone() -> None:
    rig = Rig()
    rig.start()
    rig.journal.append_idle(1, b"idle")
    rig.journal.hurry()
    rig.flush()
    rig.settle()
    assert rig.durable == [1]


def test_an_idle_record_behind_a_commit_does_not_start_another() -> None:
    rig = Rig()
    rig.start()
    rig.append(b"message")
    rig.flush()
    rig.journal.append_idle(1, b"idle")
    rig.flush()
    rig.settle()
    assert rig.durable == [1]
    rig.flush()
    assert COMMIT_TIMER in rig.timers.at
    rig.append(b"next")
    rig.journal.append_idle(1, b"with it")
    rig.flush()
    rig.settle()
    assert rig.durable == [1, 4]
