"""The subjects of a simulation, drawn from its seed, each by a separate generator."""

from __future__ import annotations

from typing import Final

from atalanta.cluster import ON_DEMAND, STRICT
from atalanta.sim.checks.ledger import Ledger
from atalanta.sim.loads import (
    absence,
    core_bridge,
    divert,
    full_disk,
    groups,
    large,
    members,
    overlap,
    permissions,
    priorities,
    replays,
    router,
    slow_readers,
)
from atalanta.sim.loads.xa import transactions
from atalanta.sim.nodes import Shape
from atalanta.sim.subject import Subject
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World

REPEATING: Final = (
    slow_readers.SlowReaders,
    divert.Diverts,
    permissions.QueuePermissions,
    priorities.PrioritiesLoad,
)


def draw_subjects(
    world: World, network: Network, ledger: Ledger, shape: Shape, nodes: int, faults: bool
) -> list[Subject]:
    def drawn(name: str, share: float) -> bool:
        return world.random(name).random() < share

    subjects: list[Subject] = []
    everywhere = shape.taken_everywhere()
    paired = shape.several  # then there are no subjects that look into one machine of a node
    if nodes < 2:
        if shape.groups and drawn("large messages", large.SHARE):
            subjects.append(large.LargeMessages(world, network, ledger, everywhere))
        return subjects
    if faults and drawn("slow readers", slow_readers.SHARE):
        subjects.append(slow_readers.SlowReaders(world, network, ledger))
    if drawn("groups", groups.SHARE):
        subjects.append(groups.GroupsLoad(world, network, ledger))
    if drawn("transactions", transactions.SHARE):
        subjects.append(transactions.Transactions(world, network, ledger, everywhere, shape.departures))
    if drawn("core bridges", core_bridge.SHARE):
        subjects.append(core_bridge.CoreBridgeLoad(world, network, ledger, nodes, shape))
    if drawn("diverts", divert.SHARE):
        subjects.append(divert.Diverts(world, network, ledger, everywhere))
    if drawn("large messages", large.SHARE):
        subjects.append(large.LargeMessages(world, network, ledger, everywhere))
    if drawn(overlap.DRAW, overlap.SHARE):
        subjects.append(overlap.Overlaps(world, network, ledger, nodes, shape))
    if drawn(members.DRAW, members.SHARE):
        subjects.append(members.MembersLoad(world, network, ledger))
    if drawn("permissions", permissions.SHARE):
        subjects.append(permissions.QueuePermissions(world, network, ledger))
    if not paired and drawn("priorities", priorities.SHARE):
        subjects.append(priorities.PrioritiesLoad(world, network, ledger))
    if not paired and drawn("doors", router.SHARE):
        subjects.append(router.RoutersLoad(world, network, ledger, nodes, shape))
    if faults and not paired and shape.mode in (ON_DEMAND, STRICT) and drawn("away", absence.SHARE):
        subjects.append(absence.Absences(world, network, ledger, nodes, shape))
    # Only where every sender repeats a message that was refused.
    if faults and not paired and all(isinstance(each, REPEATING) for each in subjects):
        if drawn("full disks", full_disk.SHARE):
            subjects.append(full_disk.FullDisks(world, network, ledger, shape))
            return subjects
    if not shape.departures and drawn("replays", replays.SHARE):
        subjects.append(replays.Replays(world, network, ledger))
    return subjects
