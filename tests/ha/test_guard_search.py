"""Exhaustive searches of small groups with guards: a kill of what was started is as good as one of the broker."""

from __future__ import annotations

import pytest

from tests.ha.explorer import explore
from tests.ha.guard_world import GuardParts, GuardScope, started

FAULT_STATES = 20_000
RIGHT_STATES = 4_000
DEEP_STATES = 300_000
TIMED = GuardScope(messages=0, versions=1, ticks=4, joins=False, drops=False, heartbeats=1)
BESIDE = GuardScope(messages=0, versions=1, ticks=4, joins=False, drops=False, heartbeats=2)
VOTER = GuardScope(messages=0, versions=2, joins=False, drops=False, voter=True)

# Small enough to be searched whole in seconds.
WHOLE = {
    "a kill, with clocks": TIMED,
    "a kill, with a voter": VOTER,
    "a kill with a message": GuardScope(messages=1, versions=1, drops=False, joins=False),
}
WIDE = {
    "two kills, with a voter and a message": GuardScope(messages=1, versions=3, kills=2, voter=True, crashes=1),
    "kills and lost answers": GuardScope(messages=1, versions=2, kills=2, lost_answers=1, voter=True),
    "three members, with clocks": GuardScope(
        members=3, messages=0, versions=2, ticks=5, kills=2, heartbeats=2, rates=("slow", "fast", "even"), voter=True
    ),
}
FAULTS = {
    "two processes, of which the guard was started": (GuardParts(two_processes=True), TIMED, "nobody serves"),
    "two processes, of which the guard has the voter": (GuardParts(two_processes=True), VOTER, "nobody serves"),
    "a voter that does not outlive the broker": (GuardParts(ends_voter_at_once=True), VOTER, "nobody serves"),
    "the end of what was started taken for that of the broker": (GuardParts(proves_at_once=True), TIMED, "serve"),
    "a restart that does not wait for the folder": (GuardParts(ignores_lock=True), BESIDE, "serve"),
    "a voter that does not wait for its folder": (GuardParts(ignores_voter_lock=True), VOTER, "has begun twice"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_is_wrong_in_a_whole_scope(name: str) -> None:
    result = explore(started(WHOLE[name], GuardParts()), 100_000, heal_every=3)
    assert result.complete and not result.wrong, result


@pytest.mark.parametrize("name", WIDE)
def test_nothing_is_wrong_in_the_first_states_of_a_wide_scope(name: str) -> None:
    result = explore(started(WIDE[name], GuardParts()), RIGHT_STATES, heal_every=20)
    assert not result.wrong, result


@pytest.mark.soak
@pytest.mark.parametrize("name", WIDE)
def test_nothing_is_wrong_in_a_wide_scope(name: str) -> None:
    result = explore(started(WIDE[name], GuardParts()), DEEP_STATES, heal_every=50)
    assert not result.wrong, result


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    parts, scope, finds = FAULTS[name]
    result = explore(started(scope, parts), FAULT_STATES, heal_every=1)
    assert finds in result.wrong, result
