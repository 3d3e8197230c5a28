"""Connection routers in the simulator: clients are sent to where they belong, and the checker sees who is not."""

from __future__ import annotations

import pytest

from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.router_client import RoutedConsumer, RoutedSender
from atalanta.sim.loads.router import HASHED, SHARDS, Routers
from atalanta.sim.nodes import Shape
from atalanta.sim.scenario import Scenario
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World


@pytest.mark.parametrize("seed", [6, 12, 14, 33])  # hashed, shards, first, gate
def test_clients_obey_redirects_and_meet(seed: int) -> None:
    scenario = Scenario(seed, 3, 6.0)
    scenario.run()
    [subject] = [each for each in scenario.subjects if isinstance(each, Routers)]
    clients = [*subject.senders, *subject.takers]
    routed = [each for each in clients if isinstance(each, RoutedSender | RoutedConsumer)]
    assert len(routed) == 2 * len(subject.keys)
    assert subject.kind == SHARDS or sum(each.redirected for each in routed) > 0


def routers(kind: str) -> Routers:
    world = World(1)
    made = Routers(world, Network(world), Ledger(world), 3, Shape())
    made.kind = kind
    return made


def test_a_key_of_a_shard_has_one_node() -> None:
    made = routers(SHARDS)
    made.arrived("k1", "n1")
    made.arrived("k1", "n1")
    with pytest.raises(Violation, match="k1 is served by n2, which belongs to n1"):
        made.arrived("k1", "n2")
    made = routers(HASHED)  # its node may be down, and not found again yet
    made.arrived("k1", "n1")
    made.arrived("k1", "n2")


def test_a_routed_message_is_owed() -> None:
    made = routers(HASHED)
    made.ledger.confirm("rp-k1/3", False)
    with pytest.raises(Violation, match=r"rp-k1/3 was never delivered from shelf\.k1"):
        made.check()
    made.ledger.acknowledge("shelf.k1", "rp-k1/3")
    made.check()
