"""Exhaustive searches of small groups: the rules hold in every state, and each planted fault is found."""

from __future__ import annotations

import pytest

from tests.ha.explorer import explore
from tests.ha.group_world import started
from tests.ha.planted_faults import FAULTS
from tests.ha.small_group import Parts, Scope

FAULT_STATES = 6_000
RIGHT_STATES = 2_000
SHORT_STATES = 1_500
DEEP_STATES = 300_000

# Small enough to be searched whole in seconds.
WHOLE = {
    "takeover and return": Scope(messages=1, versions=2),
    "lost answers, in sync": Scope(messages=1, versions=1, lost_answers=1),
    "lost answers, alone": Scope(messages=1, versions=1, lost_answers=1, alone=True),
    "behind": Scope(messages=0, versions=2, behind=True),
    "minimum of two": Scope(messages=1, versions=1, min_in_sync=2),
    "deletions": Scope(messages=1, deletions=1, versions=1),
    "handover": Scope(messages=1, versions=1, handovers=1),
    "handover, with clocks": Scope(
        messages=0, versions=1, handovers=1, ticks=3, heartbeats=2, joins=False, drops=False
    ),
    "resignation": Scope(messages=1, versions=2, resignations=1, drops=False),
    "resignation, with clocks": Scope(
        messages=0, versions=2, resignations=1, ticks=4, heartbeats=1, breaks=1, drops=False, joins=False
    ),
    "leases": Scope(messages=0, versions=1, ticks=5, heartbeats=1, crashes=1, joins=False),
    "leases, clocks of different rates": Scope(
        messages=0, versions=1, ticks=5, heartbeats=2, drops=False, rates=("slow", "fast", "even")
    ),
    "leases of different lengths": Scope(
        messages=0, versions=1, ticks=6, heartbeats=1, crashes=1, joins=False, drops=False, lengths=(12, 4, 4)
    ),
}

# The first states of these in the short form, many more in the deep one.
WIDE = {
    "crashes and breaks": Scope(messages=1, crashes=1, breaks=1, versions=2),
    "crashes and lost answers": Scope(messages=2, crashes=2, lost_answers=1, versions=3),
    "alone, crashes and lost answers": Scope(
        messages=2, crashes=1, lost_answers=1, breaks=1, versions=3, alone=True
    ),
    "three members": Scope(members=3, messages=1, versions=2, late_answers=1),
    "three members, crashes": Scope(members=3, messages=1, crashes=1, versions=2, lost_answers=1),
    "three members, handover": Scope(members=3, messages=1, versions=2, handovers=1),
    "three members, minimum of two": Scope(members=3, messages=1, versions=2, min_in_sync=2),
    "three members, leases": Scope(
        members=3, messages=0, versions=2, ticks=6, heartbeats=3, crashes=1,
        rates=("slow", "fast", "even"),
    ),
    "deletions and crashes": Scope(messages=2, deletions=2, crashes=2, versions=3),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_is_wrong_in_a_whole_scope(name: str) -> None:
    result = explore(started(WHOLE[name], Parts()), 100_000, heal_every=10)
    assert result.complete and not result.wrong, result


@pytest.mark.parametrize("name", WIDE)
def test_nothing_is_wrong_in_the_first_states_of_a_wide_scope(name: str) -> None:
    result = explore(started(WIDE[name], Parts()), SHORT_STATES, heal_every=50)
    assert not result.wrong, result


@pytest.mark.soak
@pytest.mark.parametrize("name", WIDE)
def test_nothing_is_wrong_in_a_wide_scope(name: str) -> None:
    result = explore(started(WIDE[name], Parts()), DEEP_STATES, heal_every=50)
    assert not result.wrong, result


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    fault = FAULTS[name]
    result = explore(started(fault.scope, fault.parts), FAULT_STATES)
    assert fault.finds in result.wrong and result.wrong, result
    right = explore(started(fault.scope, Parts()), RIGHT_STATES)
    assert not right.wrong, right
