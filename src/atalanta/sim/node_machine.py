"""One of the machines of a simulated node that has several: one serves, the others wait for their turn.

What lets a machine serve is its own: an epoch of the shared folder (pairs/machine.py), or one of the register of a
group (replicas/machine.py). The clock, pauses, held output and restarts are the same, and here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from atalanta.ha import LastInstant, LeaseTerms
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.host import Host, MakeNode
from atalanta.sim.world.machine_clock import MachineClock
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

LIVES_MAX: Final = 1_000_000  # of one machine: a node has no life twice


class NodeMachine(Host):
    """A machine. `node` is None while it does not serve; `up` tells whether its process runs.

    Its clock has a rate of its own. A paused machine processes nothing, but writes in progress end.
    """

    paired = True
    restart_ns: tuple[int, int] = (
        SECOND // 100,
        SECOND,
    )  # until a process that has ended runs again

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        port: int,
        make_node: MakeNode,
        terms: LeaseTerms,
        number: int,
        draw: random.Random,
    ) -> None:
        """`number`: that of the machine among those of its node. The first one is the primary."""
        super().__init__(world, network, name, name, port, make_node)
        self.terms = terms
        self.primary = number == 0
        self.life = number * LIVES_MAX
        self.draw = draw
        self.clock: MachineClock = MachineClock(world, draw)
        self.machines: Sequence[NodeMachine] = [self]  # of the node
        self.paused = False
        self.takeovers = 0
        self.losses = 0  # nodes that have learned that their epoch was over
        self.succeeded_at = 0  # since then another machine serves; 0: none has since this one did
        self._pauses = 0
        self._at_resume: list[Callable[[], None]] = []

    def join(self, machines: Sequence[NodeMachine]) -> None:
        """Makes this one of the machines of a node, which has one record of stops, of freed groups and of lives."""
        self.machines = machines
        first = machines[0]
        self.stops, self.freed, self.lives = first.stops, first.freed, first.lives

    def now(self) -> int:
        return self.clock.node.now()

    def wait_ns(self, at_ns: int) -> int:
        return self.clock.wait_ns(at_ns)

    def standby(self) -> bool:
        """Returns True if another machine serves."""
        return self.node is None and any(
            each.node is not None and each.current() for each in self.machines
        )

    # -- service --------------------------------------------------------------------------------
    def begin_service(self, last: LastInstant) -> None:
        """Begins the clock of a new node, whose predecessor's was at `last`. Connections to the others are left."""
        self.outbox = []
        self.takeovers += 1
        self.succeeded_at = 0
        for other in self.machines:
            if other is not self:
                other.succeeded_at = other.succeeded_at or self.world.now
                self.network.outdate(other)
        self.clock.begin(last)

    def holds_output(self) -> bool:
        """Returns True if a node runs: what it writes waits for the end of its turn, and for its lease."""
        return self.node is not None

    def may_deliver(self) -> bool:
        """Returns True if the lease of the node lasts, by the clock of this machine."""
        return self.may_send()

    def send_out(self) -> None:
        if self.outbox and self.may_send():
            self._check_alone()
            super().send_out()

    def _check_alone(self) -> None:
        """Raises Violation if another machine may deliver, too. A clock that stood still excuses it."""
        for other in self.machines:
            if other is not self and not self.clock.stood_still and not other.clock.stood_still:
                if other.may_deliver():
                    raise Violation(f"{self.name} and {other.name} both may deliver")

    # -- the end --------------------------------------------------------------------------------
    def forget(self) -> None:
        """Forgets what the process had in memory."""
        self.outbox = []
        self._at_resume = []
        self._flush_due = False
        self.resume()

    def _again_later(self) -> None:
        """Lets the process, which has ended, run again soon."""
        life = self.life

        def again() -> None:
            if self.life == life and not self.up:
                self.start()

        self.world.at(self.draw.randint(*self.restart_ns), again)

    # -- pauses ---------------------------------------------------------------------------------
    def pause(self, length_ns: int, clock_stands: bool) -> None:
        """Stops the process for a time. `clock_stands`: the clocks of its machine do, too, as in a virtual machine."""
        if self.paused or not self.up:
            return
        self.world.note(
            f"{self.name} is paused for {length_ns} ns{', with its clock' if clock_stands else ''}"
        )
        self.paused = True
        if clock_stands:
            self.clock.stand()
        self.network.stall(self.name)
        self._pauses += 1
        number = self._pauses
        self.world.at(length_ns, lambda: self.resume() if self._pauses == number else None)

    def resume(self) -> None:
        """Lets the process handle everything that has come meanwhile."""
        if not self.paused:
            return
        self.paused = False
        self.clock.go_on()
        self.network.read_again(self.name)
        waiting, self._at_resume = self._at_resume, []
        for call in waiting:
            call()

    def holds_back(self, call: Callable[[], None]) -> bool:
        if self.paused:
            self._at_resume.append(call)
        return self.paused


MachineOfNode = TypeVar("MachineOfNode", bound=NodeMachine)


def serving(machines: Sequence[MachineOfNode]) -> MachineOfNode:
    """Returns the machine whose node is active, or the primary."""
    return next((each for each in machines if each.node is not None and each.current()), machines[0])
