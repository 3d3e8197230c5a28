"""The instants at which simulated nodes act: nothing comes or expires before its time.

Machines have clocks that are ahead of the world's or behind it, and of another rate, as they were drawn. Beyond that,
no message that a client has scheduled is delivered early, and none expires early: a takeover adds nothing.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel import Observer
from atalanta.kernel.queue import Reference
from atalanta.message import Message
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.host import Host
from atalanta.sim.world.machine_clock import MILLION, MachineClock
from atalanta.sim.world.world import EPOCH, World

MS: Final = 1_000_000


class Instants:
    """The check of one simulation. `clocks` are those of the machines that have one of their own."""

    def __init__(self, world: World, ledger: Ledger) -> None:
        self.world = world
        self.ledger = ledger
        self.clocks: list[MachineClock] = []

    def watch(self, hosts: list[Host]) -> None:
        """Watches the nodes on these machines, which have not started."""
        for host in hosts:
            if host.clock is not None:
                self.clocks.append(host.clock)
            else:
                host.settings_of_clock = self.world.random(f"clock/{host.name}")
            host.on_started.append(self._started)

    def ahead_ns(self) -> int:
        """Returns how far a node's clock may be ahead of the world's now."""
        passed_ns = self.world.now - EPOCH
        skew_ns = max((clock.skew_ns for clock in self.clocks), default=0)
        rate_ppm = max((clock.rate_ppm for clock in self.clocks), default=MILLION)
        return max(0, skew_ns) + passed_ns * max(0, rate_ppm - MILLION) // MILLION

    def check_due(self, key: str, message: Message) -> None:
        """Raises Violation if a client has got a message before the instant that it was scheduled for."""
        early_ms = message.scheduled_ms - (self.world.now + self.ahead_ns()) // MS
        if early_ms > 0:
            raise Violation(f"{key} came {early_ms} ms before its time", key)

    def _started(self, host: Host) -> None:
        node = host.node
        if node is None:
            return
        if host.clock is not None:
            host.lives.check_begin(
                host.life, host.now(), host.clock.wall(), self.world.now, host.clock.unheard_ns
            )
        node.broker.observers.append(ExpiryCheck(self, host))


class ExpiryCheck(Observer):
    """The observer of one node: it records the messages of clients that expire."""

    def __init__(self, instants: Instants, host: Host) -> None:
        self.instants = instants
        self.host = host

    def on_expired(self, now: int, reference: Reference) -> None:
        message = reference.message
        key = message.properties.get("key")
        if not isinstance(key, str):
            return
        instants = self.instants
        early_ms = message.expiration - (instants.world.now + instants.ahead_ns()) // MS
        if early_ms > 0:
            raise Violation(f"{key} expired at {self.host.name} {early_ms} ms before its time", key)
        instants.ledger.expire(key)
