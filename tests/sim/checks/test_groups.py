"""The simulator's check of message groups finds a group that was split, and knows when it may be."""

from __future__ import annotations

import pytest

from atalanta.sim.checks.groups import GroupLedger
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT, Shape, node_maker
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World


def split_group(world: World) -> GroupLedger:
    """The record of a group with a message at n1, and 20 s later another at n2; n0 decides."""
    network = Network(world)
    ledger = Ledger(world)
    groups = GroupLedger(world, network, ledger, -1)
    groups.hosts = [
        Host(world, network, f"n{index}", f"n{index}", PORT, node_maker(index, 3, Shape(), f"n{index}"))
        for index in range(3)
    ]
    for key, node in (("p/0", "n1"), ("p/1", "n2")):
        groups.sending(key, "red")
        groups.confirm(key)
        groups.messages[key].at["work"] = node
        ledger.acknowledging["work", key] = True
        world.now += 20 * SECOND
    return groups


def stopped(groups: GroupLedger, node: str, absent_ns: int) -> None:
    """n0 was stopped 10 s before the second message, and `absent_ns` later it freed the groups of that node."""
    local = groups.hosts[0]
    at = groups.messages["p/1"].sent_at - 10 * SECOND
    local.stops.append(at)
    local.freed.append((at + absent_ns, node))


def test_a_group_is_split() -> None:
    with pytest.raises(Violation, match="group red of work was split: p/0 went to n1, p/1 to n2"):
        split_group(World(1)).check(["work"])


def test_the_group_of_a_node_that_was_not_reached_after_a_stop_may_move() -> None:
    groups = split_group(World(1))
    stopped(groups, "n1", 5 * SECOND)
    groups.check(["work"])


@pytest.mark.parametrize(("node", "absent_ns"), [("n1", SECOND), ("n0", 5 * SECOND), ("n1", 12 * SECOND)])
def test_it_is_split_if_freed_too_early_or_too_late_or_if_another_node_was_absent(node: str, absent_ns: int) -> None:
    groups = split_group(World(1))
    stopped(groups, node, absent_ns)
    with pytest.raises(Violation, match="was split"):
        groups.check(["work"])
