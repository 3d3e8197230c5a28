"""Exhaustive searches of a small shared folder: its promises hold in every state, and each planted fault is found."""

from __future__ import annotations

import pytest

from tests.ha.epoch_folder import FolderParts, FolderScope
from tests.ha.explorer import explore
from tests.ha.folder_faults import EQUAL_SCOPES, FOLDER_FAULTS, HEAL_EVERY
from tests.ha.folder_world import FolderWorld

RIGHT_STATES = 4_000
EQUAL_STATES = 15_000
DEEP_STATES = 60_000

WHOLE = {
    "leases": FolderScope(renewals=1, ticks=4, rates=(3, 5)),
    "an unknown renewal": FolderScope(renewals=2, ticks=3, unknown=1, rates=(3, 5)),
    "a confirmation": FolderScope(messages=1, ticks=4, pauses=2, early=1, rates=(4, 4)),
}


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_is_wrong_in_a_whole_scope(name: str) -> None:
    result = explore(FolderWorld(WHOLE[name], FolderParts()), 100_000)
    assert result.complete and not result.wrong, result


@pytest.mark.parametrize("name", FOLDER_FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    fault = FOLDER_FAULTS[name]
    heal_every = HEAL_EVERY if fault.scope.equals else 0
    result = explore(FolderWorld(fault.scope, fault.parts), 60_000, heal_every)
    assert fault.finds in result.wrong, result


@pytest.mark.parametrize("name", EQUAL_SCOPES)
def test_nothing_is_wrong_between_two_equals(name: str) -> None:
    """And somebody serves when all faults have ended."""
    result = explore(FolderWorld(EQUAL_SCOPES[name], FolderParts()), EQUAL_STATES, HEAL_EVERY)
    assert not result.wrong, result


def test_nothing_is_wrong_in_the_scopes_of_the_faults() -> None:
    for scope in {fault.scope for fault in FOLDER_FAULTS.values()}:
        result = explore(FolderWorld(scope, FolderParts()), RIGHT_STATES)
        assert not result.wrong, result


@pytest.mark.soak
@pytest.mark.parametrize("name", EQUAL_SCOPES)
def test_nothing_is_wrong_between_two_equals_in_a_deep_search(name: str) -> None:
    result = explore(FolderWorld(EQUAL_SCOPES[name], FolderParts()), 2 * DEEP_STATES, HEAL_EVERY)
    assert not result.wrong and (result.complete or "two machines" in name), result


@pytest.mark.soak
@pytest.mark.parametrize("rates", [(3, 5, 5), (5, 3, 3), (4, 4, 4)])
def test_nothing_is_wrong_in_a_wide_scope(rates: tuple[int, ...]) -> None:
    scope = FolderScope(
        messages=2, renewals=3, ticks=8, pauses=1, unknown=1, crashes=2, releases=1, takes=3, early=1, prunes=1,
        rates=rates, behind=9, proof=True, ids=1,
    )  # fmt: skip
    result = explore(FolderWorld(scope, FolderParts()), DEEP_STATES)
    assert not result.wrong, result
