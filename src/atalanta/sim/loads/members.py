"""Consumers of one queue at all members: each message comes to one of them, whatever its node balances."""

from __future__ import annotations

from typing import Final

from atalanta.node import NodeConfig
from atalanta.sim.clients.cluster_client import ClusterClient
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import address_of

TASKS: Final = "tasks"
SHARE: Final = 0.1
# The generator that draws the subject: with this name no seed that was listed before has it, so they stay the same.
DRAW: Final = "members 416"
PER_SECOND: Final = 6.0
WINDOWS: Final = (-1, 0, 0, 300, 4_000)


class MembersLoad(SenderLoad):
    """The load: a sender at every node, and two programs, each with its own connection at a node of its own."""

    def configure(self, index: int, config: NodeConfig) -> None:
        config.broker.addresses.append(address_of(TASKS))

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        for host in hosts:
            self.senders.append(
                Sender(
                    self.world, self.network, f"ms-{host.name}", host.name, self.ledger, TASKS,
                    int(seconds * PER_SECOND), PER_SECOND,
                )
            )  # fmt: skip
        window = self.world.random("members window").choice(WINDOWS)
        for number in range(2):
            place = hosts[number % len(hosts)].name
            self.takers.append(
                ClusterClient(self.world, self.network, f"mc{number}", place, self.ledger, TASKS, window)
            )

    def left(self) -> list[str]:
        found = super().left()
        for host in self.hosts:
            queue = None if host.node is None else host.node.broker.queues.get(TASKS)
            if queue is not None and queue.message_count:
                found.append(f"{queue.message_count} messages wait in {TASKS} of {host.name}")
        return found

    def check(self) -> None:
        self.ledger.check_acknowledged("ms-", TASKS)
