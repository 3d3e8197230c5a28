"""A stop of a simulated node in good order: everything is confirmed, then another machine gets the service."""

from __future__ import annotations

from typing import Final

from atalanta.node import Node
from atalanta.sim.replicas.members import SimMember
from atalanta.sim.world.world import SECOND

LOOK_NS: Final = SECOND // 100
HAND_OVER_NS: Final = 2 * SECOND  # at most


class GracefulStop:
    """The stop of the node of a machine. The machine ends the process when the node has handed over."""

    def __init__(self, machine: SimMember, node: Node) -> None:
        self.machine = machine
        self.world = machine.world
        self.life = machine.life
        self.until = self.world.now + HAND_OVER_NS
        machine.stops.append(self.world.now)
        node.stop(machine.now())
        machine.flush_later()
        self._look()

    def _look(self) -> None:
        """Hands over once everything is confirmed. After a time the process ends without a successor."""
        machine = self.machine
        if machine.life != self.life or machine.node is None:
            return
        if self.world.now < self.until:
            machine.give(self._hand_over)
            self.world.at(LOOK_NS, self._look)
        else:
            machine.end_process()

    def _hand_over(self, node: Node) -> None:
        assert node.replicator is not None
        node.replicator.hand_over(self.machine.now())
