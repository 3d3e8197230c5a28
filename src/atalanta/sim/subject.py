"""A subject: an optional part of a simulation with node settings, clients and checks of its own.

Each subject has its own random generator, so that simulations without it stay the same.
"""

from __future__ import annotations

from collections.abc import Callable

from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Ledger
from atalanta.sim.checks.scale_down import ScaleDownRecord
from atalanta.sim.clients.client import SimClient
from atalanta.sim.host import Host
from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.world import World


class Subject:
    """The base class. It is created before the nodes; `populate` is called once they exist and have not started.

    `roams`: its senders and consumers may follow the messages of a scaled-down node.
    """

    roams: bool = False

    def __init__(self, world: World, network: Network, ledger: Ledger) -> None:
        self.world = world
        self.network = network
        self.ledger = ledger
        self.hosts: list[Host] = []
        self.departed = ScaleDownRecord()  # of this simulation, once it exists
        self.leave: Callable[[str], None] = stay  # scales the node of that name down, if the simulation has scale-downs
        self.senders: list[SimClient] = []
        self.staying: list[str] = []  # nodes that are not scaled down
        self.takers: list[SimClient] = []  # consumers that faults restart
        self.machines: list[Machine] = []  # senders of other protocols, which the subject itself starts

    def configure(self, index: int, config: NodeConfig) -> None:
        """Adds to the configuration that node `index` reads at each start."""

    def populate(self, hosts: list[Host], seconds: float) -> None:
        """Creates the clients. The load lasts `seconds` of virtual time."""
        raise NotImplementedError

    def repair(self) -> None:
        """Starts the end of the load after the faults: senders finish, and every consumer is connected."""
        for client in [*self.senders, *self.takers]:
            if not client.up:
                client.start()

    def left(self) -> list[str]:
        """Returns the work that is not complete yet."""
        return []

    def key_left(self) -> str:
        """Returns the key of a message that has not arrived, "" without one."""
        return ""

    def resume(self) -> bool:
        """Returns True if the subject starts further work, now that the simulation is idle."""
        return False

    def check(self) -> None:
        """Checks the guarantees at the very end. Raises Violation."""


def stay(name: str) -> None:
    """Does nothing, for simulations without scale-down."""


Load = Callable[[World, Network, Ledger], Subject]
