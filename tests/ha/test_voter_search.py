"""Exhaustive searches of the quorum register: one value a version, nothing confirmed is lost, each planted fault is
found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.ha.explorer import explore
from tests.ha.voter_faults import VOTER_FAULTS
from tests.ha.voter_world import VoterParts, VoterScope, VoterWorld

FAULT_STATES = 12_000
SHORT_STATES = 1_500
DEEP_STATES = 200_000
# With three voters it takes more steps than the deep form reaches.
TOO_DEEP = {"a replaced value is taken for a conflict"}

# Small enough to be searched whole in seconds.
WHOLE = {
    "a write and a read": VoterScope(plans=("w", "r")),
    "two writes": VoterScope(plans=("w", "w")),
    "one voter, late answers": VoterScope(plans=("w", "wr"), voters=1, late_answers=True),
    "one voter, doubled messages": VoterScope(plans=("w", "w"), voters=1, doubled=1, rounds=1),
    "one voter, crashes": VoterScope(plans=("w", "w"), voters=1, crashes=1, slow_disks=True),
    "one voter, a restart": VoterScope(plans=("ww", "r"), voters=1, restarts=1),
}
# The first states of these in the short form, many more in the deep one.
WIDE = {
    "further rounds": VoterScope(plans=("w", "w"), rounds=2),
    "given up, then read": VoterScope(plans=("wr", "w"), given_up=1),
    "doubled messages": VoterScope(plans=("w", "wr"), doubled=2),
    "late answers": VoterScope(plans=("w", "wr"), late_answers=True, doubled=1),
    "restarts": VoterScope(plans=("ww", "w"), restarts=1, rounds=1),
    "crashes": VoterScope(plans=("w", "wr"), crashes=2, slow_disks=True),
    "five voters": VoterScope(plans=("w", "w"), voters=5, rounds=1),
    "three proposers": VoterScope(plans=("w", "w", "r"), rounds=1),
}


def world(scope: VoterScope, parts: VoterParts | None = None) -> VoterWorld:
    return VoterWorld(scope, parts or VoterParts())


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_is_wrong_in_a_whole_scope(name: str) -> None:
    result = explore(world(WHOLE[name]), 20_000, heal_every=25)
    assert result.complete and not result.wrong, result


@pytest.mark.parametrize("name", WIDE)
def test_nothing_is_wrong_in_the_first_states_of_a_wide_scope(name: str) -> None:
    result = explore(world(WIDE[name]), SHORT_STATES, heal_every=50)
    assert not result.wrong, result


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", WIDE)
def test_nothing_is_wrong_in_a_wide_scope(name: str) -> None:
    result = explore(world(WIDE[name]), DEEP_STATES, heal_every=100)
    assert not result.wrong, result


@pytest.mark.parametrize("name", VOTER_FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    fault = VOTER_FAULTS[name]
    result = explore(world(fault.scope, fault.parts), FAULT_STATES)
    assert fault.finds in result.wrong and result.wrong, result
    right = explore(world(fault.scope), 500)
    assert not right.wrong, right


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in VOTER_FAULTS if name not in TOO_DEEP])
def test_a_planted_fault_is_found_among_three_voters(name: str) -> None:
    fault = VOTER_FAULTS[name]
    result = explore(world(replace(fault.scope, voters=3), fault.parts), DEEP_STATES)
    assert fault.finds in result.wrong and result.wrong, result
