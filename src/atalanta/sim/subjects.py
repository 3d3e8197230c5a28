"""Which subjects a world has: drawn from its seed, each from a generator of its own."""

from __future__ import annotations

from atalanta.cluster.config import ON_DEMAND, STRICT
from atalanta.sim import (
    absence_load,
    core_bridge_load,
    divert_load,
    groups,
    large_load,
    router_load,
    slow_readers,
    xa_load,
)
from atalanta.sim.ledger import Ledger
from atalanta.sim.network import Network
from atalanta.sim.nodes import Shape
from atalanta.sim.subject import Subject
from atalanta.sim.world import World


def draw_subjects(
    world: World, network: Network, ledger: Ledger, shape: Shape, nodes: int, faults: bool
) -> list[Subject]:
    def drawn(name: str, share: float) -> bool:
        return world.random(name).random() < share

    subjects: list[Subject] = []
    everywhere = shape.taken_everywhere()
    if nodes < 2:
        return subjects
    if faults and drawn("slow readers", slow_readers.SHARE):
        subjects.append(slow_readers.SlowReaders(world, network, ledger))
    if drawn("groups", groups.SHARE):
        subjects.append(groups.Groups(world, network, ledger))
    if drawn("transactions", xa_load.SHARE):
        subjects.append(xa_load.Transactions(world, network, ledger, everywhere, shape.departures))
    if drawn("core bridges", core_bridge_load.SHARE):
        subjects.append(core_bridge_load.CoreBridges(world, network, ledger, nodes, shape))
    if drawn("diverts", divert_load.SHARE):
        subjects.append(divert_load.Diverts(world, network, ledger, everywhere))
    if drawn("large messages", large_load.SHARE):
        subjects.append(large_load.LargeMessages(world, network, ledger, everywhere))
    if drawn("doors", router_load.SHARE):
        subjects.append(router_load.Routers(world, network, ledger, nodes, shape))
    if faults and shape.mode in (ON_DEMAND, STRICT) and drawn("away", absence_load.SHARE):
        subjects.append(absence_load.Absences(world, network, ledger, nodes, shape))
    return subjects
