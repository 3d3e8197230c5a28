"""Which subjects a world has: drawn from its seed, each from a generator of its own."""

from __future__ import annotations

from atalanta.sim.groups import SHARE as GROUPS_SHARE
from atalanta.sim.groups import Groups
from atalanta.sim.ledger import Ledger
from atalanta.sim.network import Network
from atalanta.sim.nodes import Shape
from atalanta.sim.subject import Subject
from atalanta.sim.world import World


def draw_subjects(world: World, network: Network, ledger: Ledger, shape: Shape) -> list[Subject]:
    """Not where nodes leave by scale-down: what becomes of groups then has tests of its own."""
    subjects: list[Subject] = []
    if shape.may_leave():
        return subjects
    if world.random("groups").random() < GROUPS_SHARE:
        subjects.append(Groups(world, network, ledger))
    return subjects
