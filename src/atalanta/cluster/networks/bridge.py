"""One bridge of a network connector: its brokers, its connection, and when it dials again.

Follows SimpleDiscoveryAgent and DiscoveryNetworkConnector of ActiveMQ Classic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.networks.config import is_secure, tls_name
from atalanta.cluster.networks.link import LinkOwner, NetworkLink
from atalanta.wire.openwire.options import WireFormatOptions
from atalanta.wire.openwire.server.client_load import PROVIDER

if TYPE_CHECKING:
    from atalanta.cluster.networks.config import NetworkConnectorConfig, NetworkRetry, NetworkTarget
    from atalanta.kernel.ports import Links
    from atalanta.wire.openwire.commands.connections import ConnectionControl
    from atalanta.wire.openwire.server.node_clients import NodeClients
    from atalanta.wire.server import WireServer

NS_PER_MS: Final = 1_000_000
EXPONENT_MAX: Final = 60
INACTIVITY: Final = "wireFormat.maxInactivityDuration"


class NetworkBridge(LinkOwner):
    """A bridge to one of `targets`, which are alternatives in order of preference. `failures` in a row."""

    def __init__(
        self, host: WireServer, links: Links, node_clients: NodeClients, config: NetworkConnectorConfig,
        targets: list[NetworkTarget], number: int,
    ) -> None:  # fmt: skip
        super().__init__(host, node_clients, config)
        self.links = links
        self.timers = host.broker.timers
        self.targets = targets
        self.prefix = f"networks.{number}."
        self.link: NetworkLink | None = None
        self.stopped: bool = False
        self.home: bool = False  # the address is this broker's
        self.failures: int = 0
        self.turn: int = 0  # of the targets
        self.told: str = ""  # the reason of the last failure, until it is connected
        self.sent_before: int = 0  # by former links
        self.received_before: int = 0

    # -- figures --------------------------------------------------------------------------------
    def connected(self) -> bool:
        return self.link is not None and self.link.connected_at > 0

    def remote_name(self) -> str:
        """Returns the name of the broker that it is connected to, "" if it is not."""
        return "" if self.link is None else self.link.remote_name()

    def sent(self) -> int:
        """Returns how many messages were sent, repeats too."""
        link = self.link
        return self.sent_before + (0 if link is None or link.outgoing is None else link.outgoing.forwarded)

    def received(self) -> int:
        """Returns how many messages have come over the connection, with `duplex`."""
        link = self.link
        return self.received_before + (0 if link is None or link.incoming is None else link.incoming.received)

    def place(self) -> str:
        target = self.targets[self.turn % len(self.targets)]
        return f"{target.scheme}://{target.host}:{target.port}"

    # -- connection -----------------------------------------------------------------------------
    def stop(self) -> None:
        """Dials no more; an open connection stays."""
        self.stopped = True

    def end(self, why: str) -> None:
        """Ends the bridge: what the other broker has not confirmed is in its queues again."""
        self.stopped = True
        self.timers.cancel(self.prefix + "retry")
        if self.link is not None:
            self.link.leave(why)

    def resume(self) -> None:
        """Dials again, after `stop`."""
        if self.stopped and not self.home:
            self.stopped = False
            self.dial()

    def dial(self) -> None:
        if self.stopped or self.link is not None:
            return
        target = self.targets[self.turn % len(self.targets)]
        key = self.prefix + "dial"
        if is_secure(target.scheme):
            self.links.dial_secure(key, target.host, target.port, tls_name(self.config, target))
        else:
            self.links.dial(key, target.host, target.port)

    def on_dialed(self, now: int, conn: int) -> NetworkLink | None:
        if self.stopped or self.link is not None:
            return None
        params = dict(self.targets[self.turn % len(self.targets)].params)
        inactivity = params.get(INACTIVITY, "")
        options = WireFormatOptions(provider_name=PROVIDER)
        if inactivity.isascii() and inactivity.isdigit():
            options = WireFormatOptions(provider_name=PROVIDER, inactivity_ms=int(inactivity))
        self.link = NetworkLink(self, conn, now, options)
        return self.link

    def on_dial_failed(self, now: int, why: str) -> None:
        if self._is_news(why):
            self.tell("network_bridge_connect_failed", why)
        self._dial_later(now)

    def on_connected(self, now: int, link: NetworkLink) -> None:
        self.told = ""
        self.tell("network_bridge_connected", f"broker {link.remote_name()}")
        peers = self.node_clients.peers
        peers.introduce(now, self.prefix, link.remote_name(), None if link.remote is None else link.remote.broker_url)

    def heard(self, command: ConnectionControl) -> None:
        self.node_clients.peers.hear(self.prefix, command)

    def on_lost(self, now: int, link: NetworkLink, why: str) -> None:
        self.sent_before = self.sent()
        self.received_before = self.received()
        self.link = None
        self.node_clients.peers.tell(now, self.prefix, None)
        if self.stopped:
            return
        up_ns = now - link.connected_at if link.connected_at else 0
        if up_ns >= self._retry().min_connect_time_ms * NS_PER_MS:
            self.failures = 0
            self.turn = 0
            self.told = ""
        if self._is_news(why):
            if link.connected_at:
                self.tell("network_bridge_lost", why)
            else:
                self.tell("network_bridge_refused", why)
        self._dial_later(now)

    def _retry(self) -> NetworkRetry:
        return self.config.way.retry

    def _is_news(self, why: str) -> bool:
        """Records the reason of a failure; returns False for that of the attempt before, which is told once."""
        known = self.stopped or _without_numbers(why) == _without_numbers(self.told)
        self.told = why
        return not known

    def _dial_later(self, now: int) -> None:
        """Dials again after a failure: the next broker at once, the first one after a pause."""
        if self.stopped:
            return
        self.turn += 1
        if self.turn % len(self.targets):
            self.timers.set(self.prefix + "retry", now)
            return
        retry = self._retry()
        self.failures += 1
        if 0 < retry.max_reconnect_attempts < self.failures:
            self.stopped = True
            self.tell("network_bridge_gave_up", "maxReconnectAttempts are used up: restart the node, or raise them")
            return
        self.timers.set(self.prefix + "retry", now + self._pause_ms() * NS_PER_MS)

    def _pause_ms(self) -> int:
        retry = self._retry()
        pause_ms: float = retry.initial_reconnect_delay_ms
        if retry.exponential:
            pause_ms *= retry.multiplier ** min(self.failures - 1, EXPONENT_MAX)
        return int(min(pause_ms, retry.max_reconnect_delay_ms))

    def leads_home(self, now: int) -> None:
        """Gives up: the address is that of this broker."""
        self.stopped = True
        self.home = True
        self.tell("network_bridge_gave_up", "it leads to this broker: take its address out of the uri")
        if self.link is not None:
            self.link.fail("the bridge leads to this broker")

    def tell(self, event: str, why: str) -> None:
        self.host.broker.trace.event(event, {"bridge": self.config.name, "to": self.place(), "why": why})


def _without_numbers(why: str) -> str:
    """Returns a reason without what differs from one attempt to the next, as the port of this end."""
    return "".join(sign for sign in why if not sign.isdigit())
