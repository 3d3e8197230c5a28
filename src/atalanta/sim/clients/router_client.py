"""Clients that connect to the acceptor of a connection router, and obey its redirects."""

from __future__ import annotations

from typing import Protocol

from atalanta.sim.checks.ledger import Ledger
from atalanta.sim.clients.client import SimClient
from atalanta.sim.clients.jobs import SimConsumer
from atalanta.sim.clients.senders import Sender
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.wire.core import TransportConfiguration
from atalanta.wire.core.client import SessionSettings
from atalanta.wire.core.packets import REASON_REDIRECT

RETRY_NS = 50_000_000


class RouterWatcher(Protocol):
    """An observer of the nodes that serve the clients."""

    def arrived(self, key: str, node: str) -> None: ...


class RoutedKey:
    """The settings of the clients of one key: `nodes` are names of nodes with a router."""

    def __init__(self, watching: RouterWatcher, key: str, nodes: list[str], port: int) -> None:
        self.watching = watching
        self.key = key
        self.nodes = nodes
        self.port = port


class RoutedClient(SimClient):
    """Connects through a router each time; a redirect is obeyed once, with the next connection.

    Sessions end with their connections: the next node does not know the earlier ones.
    """

    resume = False
    routing: RoutedKey

    def through(self, routing: RoutedKey) -> None:
        self.routing = routing
        self.sent_to: tuple[str, int] | None = None
        self.draw = self.world.random(f"routed/{self.name}")
        self.retry_ns = max(self.retry_ns, RETRY_NS)
        self.redirected = 0

    def _dial(self) -> None:
        if self.sent_to is not None:
            self.target, self.port = self.sent_to
            self.sent_to = None
        else:
            self.target = self.draw.choice(self.routing.nodes)
            self.port = self.routing.port
        super()._dial()

    def kill(self) -> None:
        self.sent_to = None
        super().kill()

    def login(self) -> SessionSettings:
        settings = super().login()
        settings.user = f"{self.routing.key}.user"
        settings.client_id = f"{self.routing.key}.{self.name}"
        return settings

    def on_disconnect_notice(self, reason: int, target: TransportConfiguration | None) -> None:
        if reason == REASON_REDIRECT and target is not None:
            self.sent_to = (target.host, target.port)
            self.redirected += 1


class RoutedSender(RoutedClient, Sender):
    """Sends messages through a router.

    Messages without an answer may be at the former node. At the next node they are sent under new numbers, and the
    old ones stay unconfirmed.
    """

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        routing: RoutedKey,
        ledger: Ledger,
        address: str,
        total: int,
        per_second: float,
    ) -> None:
        Sender.__init__(
            self, world, network, name, routing.nodes[0], ledger, address, total, per_second
        )
        self.through(routing)
        self.served_by = ""

    def on_session(self) -> None:
        if self.served_by != self.target:
            self.total += len(self.open)
            self.open.clear()
        self.served_by = self.target
        self.routing.watching.arrived(self.routing.key, self.target)
        super().on_session()


class RoutedConsumer(RoutedClient, SimConsumer):
    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        routing: RoutedKey,
        ledger: Ledger,
        queue: str,
    ) -> None:
        SimConsumer.__init__(self, world, network, name, routing.nodes[0], ledger, queue)
        self.through(routing)

    def on_session(self) -> None:
        self.routing.watching.arrived(self.routing.key, self.target)
        super().on_session()
