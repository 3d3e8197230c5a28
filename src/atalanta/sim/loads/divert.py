"""A divert at every node: a diverted message is delivered once at its target, and at its address if not exclusive.

In half of the simulations the copies pass a second divert, at a name that is no address.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.routing import ANYCAST as TO_ANYCAST
from atalanta.kernel.routing import STRIP, DivertConfig
from atalanta.message import Message
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.jobs import SimWatcher
from atalanta.sim.clients.senders import Sender
from atalanta.sim.host import Host
from atalanta.sim.loads.sender_load import SenderLoad
from atalanta.sim.nodes import address_of
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World

MAIL: Final = "mail"
COPIES: Final = "copies"
RELAY: Final = "relay"
SHARE: Final = 0.25
CHAINED: Final = 0.5  # of the simulations


class Diverts(SenderLoad):
    """The load: every second message matches, at any node. A forwarded message is not diverted again."""

    roams = True

    def __init__(self, world: World, network: Network, ledger: Ledger, everywhere: bool) -> None:
        super().__init__(world, network, ledger)
        self.random = world.random("diverts")
        self.everywhere = everywhere
        self.exclusive = self.random.random() < 0.5
        self.chained = world.random("diverts/chain").random() < CHAINED

    def configure(self, index: int, config: NodeConfig) -> None:
        for name in (MAIL, COPIES):
            config.broker.addresses.append(address_of(name))
        copying = DivertConfig(
            "copying", MAIL, COPIES, TO_ANYCAST, self.exclusive, filter_text="even = TRUE"
        )
        config.broker.diverts.append(copying)
        if self.chained:
            copying.forwarding_address = RELAY
            copying.routing_type = STRIP
            config.broker.diverts.append(
                DivertConfig("relaying", RELAY, COPIES, TO_ANYCAST, self.exclusive)
            )

    def populate(self, hosts: list[Host], seconds: float) -> None:
        self.hosts = hosts
        per_second = self.random.choice((1.0, 3.0))
        total = max(4, int(seconds * per_second))
        for number, host in enumerate(self.random.sample(hosts, 2)):
            self.senders.append(
                MailSender(
                    self.world, self.network, f"dp{number}", host.name, self.ledger, MAIL, total,
                    per_second,
                )
            )  # fmt: skip
        for name in (MAIL, COPIES):
            for host in hosts if self.everywhere else [self.random.choice(hosts)]:
                self.takers.append(
                    SimWatcher(
                        self.world, self.network, f"d-{name}-{host.name}", host.name, self.ledger,
                        name, self.kept if name == MAIL else self.diverted,
                    )
                )  # fmt: skip

    def kept(self, message: Message) -> None:
        if self.exclusive and even(message):
            key = str(message.properties.get("key"))
            raise Violation(f"{key} was delivered from {MAIL} though it is diverted", key)

    def diverted(self, message: Message) -> None:
        if not even(message):
            key = str(message.properties.get("key"))
            raise Violation(f"{key} was delivered from {COPIES} though the divert's filter does not match", key)

    def check(self) -> None:
        for key in self.ledger.confirmed:
            sender, _, number = key.partition("/")
            if not sender.startswith("dp"):
                continue
            taken = int(number) % 2 == 0
            for name, owed in ((MAIL, not (taken and self.exclusive)), (COPIES, taken)):
                if owed and (name, key) not in self.ledger.acknowledging:
                    raise Violation(f"confirmed message lost: {key} was never delivered from {name}", key)


class MailSender(Sender):
    """A sender that marks each message for the divert or not."""

    def message(self, key: str, number: int) -> Message:
        message = super().message(key, number)
        message.properties.put("even", number % 2 == 0)
        return message


def even(message: Message) -> bool:
    return message.properties.get("even") is True
