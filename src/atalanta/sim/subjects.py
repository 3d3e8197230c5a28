"""The subjects of a simulation, drawn from its seed, each by a separate generator."""

from __future__ import annotations

from atalanta.cluster.config import ON_DEMAND, STRICT
from atalanta.sim.checks.ledger import Ledger
from atalanta.sim.loads import (
    absence,
    core_bridge,
    divert,
    groups,
    large,
    permissions,
    router,
    slow_readers,
    xa,
)
from atalanta.sim.nodes import Shape
from atalanta.sim.subject import Subject
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World


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
    if drawn("transactions", xa.SHARE):
        subjects.append(xa.Transactions(world, network, ledger, everywhere, shape.departures))
    if drawn("core bridges", core_bridge.SHARE):
        subjects.append(core_bridge.CoreBridges(world, network, ledger, nodes, shape))
    if drawn("diverts", divert.SHARE):
        subjects.append(divert.Diverts(world, network, ledger, everywhere))
    if drawn("large messages", large.SHARE):
        subjects.append(large.LargeMessages(world, network, ledger, everywhere))
    if drawn("permissions", permissions.SHARE):
        subjects.append(permissions.QueuePermissions(world, network, ledger))
    if drawn("doors", router.SHARE):
        subjects.append(router.Routers(world, network, ledger, nodes, shape))
    if faults and shape.mode in (ON_DEMAND, STRICT) and drawn("away", absence.SHARE):
        subjects.append(absence.Absences(world, network, ledger, nodes, shape))
    return subjects
