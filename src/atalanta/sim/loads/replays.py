"""Replays: readers of the log view whose queues retain what was acknowledged, and that ask for it again."""

from __future__ import annotations

from typing import Final

from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.clients.replaying_reader import MACHINES_SLACK_NS, SLACK_NS, ReplayingReader
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import address_of

CHRONICLE: Final = "chronicle"
SHARE: Final = 0.4  # of the simulations without scale-down, which ends what is retained


class Replays(SenderLoad):
    """The load: `chronicle` at every node, with a sender and a reader there."""

    def configure(self, index: int, config: NodeConfig) -> None:
        config.broker.addresses.append(address_of(CHRONICLE))

    def populate(self, hosts: list[Host], seconds: float) -> None:
        for index, host in enumerate(hosts):
            total = max(3, int(2 * seconds))
            self.senders.append(
                Sender(
                    self.world, self.network, f"hp{index}", host.name, self.ledger, CHRONICLE, total, 3.0
                )
            )
            slack_ns = SLACK_NS if host.clock is None else MACHINES_SLACK_NS
            self.takers.append(
                ReplayingReader(
                    self.world, self.network, f"hr{index}", host.name, self.ledger, CHRONICLE, slack_ns
                )
            )

    def check(self) -> None:
        for key in self.ledger.confirmed:
            if key.startswith("hp") and (CHRONICLE, key) not in self.ledger.read:
                raise Violation(f"confirmed message lost: {key} is not in {CHRONICLE}", key)
