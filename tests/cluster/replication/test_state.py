"""The states of a passive member: the table, and the way of a takeover (conftest.py watches all other tests here)."""

from __future__ import annotations

from atalanta.cluster.replication.passive.state import (
    ALONE,
    ASKING,
    ENDED,
    FAILED,
    FOLLOWING,
    NAMELESS,
    TAKING_OVER,
    TRANSITIONS,
)
from tests.cluster.replication.replica_rig import World, client
from tests.sim.worlds import pair_whose_connection_breaks, pair_whose_started_processes_end

Transitions = dict[tuple[str, str], int]


def test_every_state_can_be_reached_and_ends() -> None:
    assert {each for following in TRANSITIONS.values() for each in following} | {NAMELESS} == set(TRANSITIONS)
    assert [state for state, following in TRANSITIONS.items() if FAILED not in following] == [FAILED]


def test_a_takeover_in_its_states(transitions: Transitions) -> None:
    world = World()
    a, b = world["a"], world["b"]
    a.follow()
    world.until(lambda: world.serves("a"))
    client(world)
    b.follow()
    world.until(lambda: world.in_sync() == ["a", "b"])
    a.crash()
    world.until(lambda: world.serves("b"))
    way = [ALONE, FOLLOWING, ALONE, ASKING, TAKING_OVER, ENDED]
    assert set(transitions) >= set(zip(way, way[1:], strict=False))


def test_a_simulated_pair_knows_no_other_transition(transitions: Transitions) -> None:
    pair_whose_connection_breaks(1).run()
    pair_whose_started_processes_end(1).run()
    assert (FOLLOWING, ALONE) in transitions
