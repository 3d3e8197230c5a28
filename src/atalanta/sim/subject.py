"""What only a share of the worlds has beside the load that all have: settings of nodes, clients, and checks of its own.

Each subject draws from a generator of its own, so that worlds without it stay what they were.
"""

from __future__ import annotations

from collections.abc import Callable

from atalanta.node.config import NodeConfig
from atalanta.sim.checks.departed import Departed
from atalanta.sim.checks.ledger import Ledger
from atalanta.sim.clients.client import SimClient
from atalanta.sim.host import Host
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World


class Subject:
    """Made before the nodes are; `populate` comes once they are there, not yet started.

    `roams`: its senders and consumers may follow a node that leaves.
    """

    roams: bool = False

    def __init__(self, world: World, network: Network, ledger: Ledger) -> None:
        self.world = world
        self.network = network
        self.ledger = ledger
        self.hosts: list[Host] = []
        self.departed = Departed()  # of this world, once it is there
        self.leave: Callable[[str], None] = stay  # has the node of that name leave now, if nodes leave here
        self.senders: list[SimClient] = []
        self.staying: list[str] = []  # nodes that do not leave in such worlds
        self.takers: list[SimClient] = []  # faults restart them now and then

    def configure(self, index: int, config: NodeConfig) -> None:
        """Add to the configuration that node `index` reads at each start."""

    def populate(self, hosts: list[Host], seconds: float) -> None:
        """Make the clients; the load lasts for so many virtual seconds."""
        raise NotImplementedError

    def mend(self) -> None:
        """The world has healed: senders come to an end, and all takers are there."""
        for client in [*self.senders, *self.takers]:
            if not client.up:
                client.start()

    def left(self) -> list[str]:
        """What is not done yet."""
        return []

    def resume(self) -> bool:
        """Everything is at rest: True if now the subject has begun with something more."""
        return False

    def check(self) -> None:
        """At the very end. Violation for a promise that was broken."""


def stay(name: str) -> None:
    """Nobody leaves."""
