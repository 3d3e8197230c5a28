"""A replicated group of a simulation: its machines, and the looks at them."""

from __future__ import annotations

from typing import Final

from atalanta.ha import LeaseTerms
from atalanta.sim.checks.replay import check_replay_of
from atalanta.sim.nodes import PORT, Shape, group_id, journal_config, machines_of, node_maker
from atalanta.sim.replicas.faults import GroupFaults
from atalanta.sim.replicas.machine import ReplicaMachine
from atalanta.sim.replicas.members import SimMembers
from atalanta.sim.world.machine_clock import DRIFT_PPM
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

LENGTHS_NS: Final = (SECOND // 4, SECOND // 2, SECOND)  # of a lease
LOOK_NS: Final = SECOND // 2  # between two looks at a group that is at rest
FAR_SHARE: Final = 0.4  # of the groups of three
COORDINATED_SHARE: Final = 0.5  # of the groups
RETRY_NS: Final = SECOND // 50  # at least, between two tries of a client to reach a machine
STRICT_SHARE: Final = 0.2  # of the groups: min-in-sync is two


class ReplicaGroup:
    """Node `index` on several machines: a primary, which has the node's name, and its backups."""

    def __init__(self, world: World, network: Network, count: int, shape: Shape, index: int) -> None:
        self.world = world
        self.network = network
        self.index = index
        self.random = world.random(f"group {index}")
        coordinated = self.random.random() < COORDINATED_SHARE
        min_in_sync = 2 if self.random.random() < STRICT_SHARE else 1
        names = machines_of(index, shape)
        far = len(names) > 2 and world.random(f"far n{index}").random() < FAR_SHARE
        self.members = SimMembers(
            world, network, f"n{index}", names, group_id(index), journal_config(index, shape), min_in_sync,
            coordinated, names[-1] if far else "",
        )  # fmt: skip
        self.looks = 0  # comparisons of a follower with its node
        # At the last one: life of the active process, its last lsn, commits of the member's disk.
        self._looked: dict[str, tuple[int, int, int]] = {}
        terms = LeaseTerms(world.random(f"lease {index}").choice(LENGTHS_NS), DRIFT_PPM)
        self.machines = [
            ReplicaMachine(
                world, network, name, PORT, node_maker(index, count, shape, name), self.members,
                terms,
                number,
            )
            for number, name in enumerate(names)
        ]  # fmt: skip
        self.members.machines.extend(self.machines)
        for machine in self.machines:
            machine.join(self.machines)
        network.partners[names[0]] = names[1:]
        network.retries_ns[names[0]] = RETRY_NS
        self.primary = self.machines[0]
        self.backups = self.machines[1:]
        self.faults = GroupFaults(world, network, self.machines, self.members, index)

    def begin(self, until: float) -> None:
        """Begins the faults; they end after `until` seconds of virtual time."""
        self.faults.begin(until)

    def end(self) -> None:
        """Ends every fault and cancels the planned ones."""
        self.faults.end()

    # -- looks ----------------------------------------------------------------------------------
    def watch(self) -> None:
        """Begins the looks."""
        self.world.at(SECOND, self._look)

    def _look(self) -> None:
        self._compare_changed(self._looked)
        self.world.at(self.random.randint(1, 2 * LOOK_NS), self._look)

    def check(self) -> None:
        """Compares every member in sync with the node, when everything is at rest."""
        self._compare_changed({})

    def _compare_changed(self, looked: dict[str, tuple[int, int, int]]) -> None:
        """Compares each member in sync with the node, at a moment when everything is confirmed, and if either has
        written since it was `looked` at.

        A machine that took over now must have the same messages.
        """
        active = self.members.serving()
        if active.node is None or not self.members.quiet():
            return
        for machine in self.members.in_sync():
            state = (active.life, active.node.journal.last, machine.disk.commits)
            if machine is not active and not machine.disk.failed and looked.get(machine.member) != state:
                looked[machine.member] = state
                self.looks += 1
                check_replay_of(active, machine.name, machine.disk, machine.large)
