"""What the simulator takes for a group that was split."""

from __future__ import annotations

import pytest

from atalanta.sim.checks.groups import Grouped, GroupLedger
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.nodes import Shape, make_hosts
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World


def ledger_of_two(stopped_at: int) -> GroupLedger:
    """One group: at n0 in the 20th second, at n1 in the 21st; n0 stopped in good order then."""
    world = World(1)
    network = Network(world)
    ledger = Ledger(world)
    checks = GroupLedger(world, network, ledger, -1)
    checks.hosts = make_hosts(world, network, 2, Shape())
    checks.hosts[0].stops.append(stopped_at * SECOND)
    for at, node in ((20, "n0"), (21, "n1")):
        key = f"gp0/{at}"
        message = Grouped(key, "g", at * SECOND, False)
        message.confirmed_at = at * SECOND + 1
        message.at["work"] = node
        checks.messages[key] = message
        ledger.acknowledging["work", key] = True
    return checks


def test_a_group_may_move_when_its_node_stopped_meanwhile() -> None:
    ledger_of_two(20).check(["work"])


@pytest.mark.parametrize("stopped_at", [1, 22])
def test_a_stop_long_before_or_after_excuses_nothing(stopped_at: int) -> None:
    with pytest.raises(Violation, match="group g of work was split"):
        ledger_of_two(stopped_at).check(["work"])
