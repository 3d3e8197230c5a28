"""Permissions of an FQQN: a guest may use the queue `lobby` of an address, and not its queue `vault`, at any time."""

from __future__ import annotations

from typing import Final

from atalanta.kernel import SECURITY
from atalanta.kernel.queue import ANYCAST
from atalanta.message import Message
from atalanta.node import NodeConfig
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.clients.client import SimClient, then
from atalanta.sim.host import Host
from atalanta.sim.nodes import PASSWORD, PERMISSIONS, address_of, queue
from atalanta.sim.subject import Subject
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import Reply, SessionSettings

HOUSE: Final = "house"
LOBBY: Final = "lobby"
VAULT: Final = "vault"
GUEST: Final = "guest"
SHARE: Final = 0.25
TRIES: Final = 12  # of one guest
CONSUME: Final = "consumes"
BROWSE: Final = "browses"
SEND: Final = "sends to"


class QueuePermissions(Subject):
    """The load: the address with two queues at every node, and a guest there."""

    def configure(self, index: int, config: NodeConfig) -> None:
        queues = [queue(name, HOUSE, ANYCAST) for name in (LOBBY, VAULT)]
        config.broker.addresses.append(address_of(HOUSE, *queues))
        config.security.add_user(GUEST, PASSWORD, ("guests",))
        config.security.add_rule(HOUSE, {name: ("guests",) for name in PERMISSIONS})
        config.security.add_rule(f"{HOUSE}::{VAULT}", {name: ("all",) for name in PERMISSIONS})

    def populate(self, hosts: list[Host], seconds: float) -> None:
        for host in hosts:
            self.takers.append(GuestClient(self.world, self.network, f"guest-{host.name}", host.name))


class GuestClient(SimClient):
    """Tries to use either queue. The vault always refuses it, the lobby never because of a permission."""

    def __init__(self, world: World, network: Network, name: str, target: str) -> None:
        super().__init__(world, network, name, target)
        self.random = world.random(f"guest/{name}")
        self.tries = 0

    def login(self) -> SessionSettings:
        settings = super().login()
        settings.user = GUEST
        return settings

    def on_session(self) -> None:
        self._wait()

    def on_resumed(self) -> None:
        self._wait()

    def _wait(self) -> None:
        if self.tries < TRIES:
            self.later(self.random.randint(1, SECOND), self._try)

    def _try(self) -> None:
        self.tries += 1
        name = self.random.choice((LOBBY, VAULT))
        action = self.random.choice((CONSUME, BROWSE, SEND))
        if action == SEND and name == VAULT:
            message = Message.create(f"{HOUSE}::{VAULT}", b"", 4, True, 0, 4)
            producer = self.session.producer(message.address)
            reply = Reply()
            producer.send_message(message, True).reply = reply
        else:
            _, reply = self.session.consumer(name, browse_only=action == BROWSE)
        then(reply, lambda done: self._tried(action, name, done))

    def _tried(self, action: str, name: str, reply: Reply) -> None:
        if name == VAULT and reply.error is None:
            raise Violation(f"{self.name} {action} {name} without a permission")
        if name == LOBBY and reply.error is not None and reply.error.code == SECURITY:
            raise Violation(f"{self.name} has the permission: {reply.error.text}")
        for consumer in list(self.session.consumers.values()):
            self.session.close_consumer(consumer)
        self._wait()
