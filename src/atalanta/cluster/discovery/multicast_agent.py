"""Discovery of ActiveMQ Classic by UDP multicast (MulticastDiscoveryAgent): brokers publish URLs of their acceptors.

A datagram is a text, `<group>.ActiveMQ-4.alive.%localhost%<url>`, or `dead` at the end of a broker. Each broker sends
it twice a second, and at once when it hears a new one. A broker that was silent for ten periods is dead. Any host can
send such datagrams. So nothing is published or listened to unless the configuration asks for it, and a URL that was
heard is only handed on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.cluster.part import Part
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.multicast_discovery import (
    ALIVE,
    DEAD,
    MulticastGroup,
    decode_datagram,
    encode_datagram,
    parse_group,
)
from atalanta.wire.openwire.server.peer_brokers import uri_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from atalanta.kernel.ports import Links, Timers
    from atalanta.wire.endpoint import AcceptorConfig

MISSES_MAX: Final = 10
BROKERS_MAX: Final = 1_000
KEY: Final = "agents."


class BrokerListener:
    """Listener for the brokers of a group: a network connector with `multicast:`."""

    def broker_found(self, now: int, url: str) -> None:
        """Handles a broker that is there now."""

    def broker_lost(self, now: int, url: str) -> None:
        """Handles a broker that has said good-bye, or was silent."""


class MulticastAgent:
    """The agent of one group: bytes in, bytes out by `send`. `heard`: the last time (ns) of each URL."""

    def __init__(self, group: MulticastGroup, send: Callable[[bytes], None]) -> None:
        self.group = group
        self.send = send
        self.period_ns: int = group.period_ms * 1_000_000
        self.own: list[str] = []
        self.listeners: list[BrokerListener] = []
        self.heard: dict[str, int] = {}

    def publish(self, url: str) -> None:
        """Adds a URL of this broker."""
        if url not in self.own:
            self.own.append(url)

    def listen(self, now: int, listener: BrokerListener) -> None:
        """Adds a listener. It gets the known brokers at once."""
        self.listeners.append(listener)
        for url in list(self.heard):
            listener.broker_found(now, url)

    def tick(self, now: int) -> None:
        """Publishes, and takes leave of those who were silent."""
        self._tell(ALIVE)
        for url, at in list(self.heard.items()):
            if now - at > MISSES_MAX * self.period_ns:
                self._lose(now, url)

    def end(self) -> None:
        """Tells the group that this broker ends."""
        self._tell(DEAD)

    def on_datagram(self, now: int, data: bytes) -> None:
        """Handles a datagram; what is none of this group is dropped."""
        found = decode_datagram(self.group.name, data)
        if found is None or found[1] in self.own:
            return
        state, url = found
        if state == DEAD:
            if url in self.heard:
                self._lose(now, url)
        elif url in self.heard:
            self.heard[url] = now
        elif len(self.heard) < BROKERS_MAX:
            self.heard[url] = now
            self._tell(ALIVE)  # a newcomer need not wait
            for listener in self.listeners:
                listener.broker_found(now, url)

    def _lose(self, now: int, url: str) -> None:
        del self.heard[url]
        for listener in self.listeners:
            listener.broker_lost(now, url)

    def _tell(self, state: str) -> None:
        for url in self.own:
            self.send(encode_datagram(self.group.name, state, url))


class MulticastAgents(Part):
    """The agents of a node, one for each group. Timers and groups at the Links port are "agents.<number>"."""

    def __init__(self, links: Links, timers: Timers) -> None:
        self.links = links
        self.timers = timers
        self.agents: list[MulticastAgent] = []
        self.stopped = False

    def publish(self, acceptors: Iterable[AcceptorConfig]) -> None:
        """Publishes the acceptors that have a discoveryUri."""
        for acceptor in acceptors:
            uri = acceptor.options(OpenWireAcceptor).discovery_uri
            if uri:
                agent = self.agent_of(parse_group(uri))
                agent.publish(uri_of(acceptor, acceptor.host))

    def agent_of(self, group: MulticastGroup) -> MulticastAgent:
        """Returns the agent of a group, before the start of the part."""
        for agent in self.agents:
            if agent.group == group:
                return agent
        key = f"{KEY}{len(self.agents)}"
        made = MulticastAgent(group, lambda data: self.links.multicast(key, data))
        self.agents.append(made)
        return made

    def start(self, now: int) -> None:
        for number, agent in enumerate(self.agents):
            group = agent.group
            self.links.join(f"{KEY}{number}", group.address, group.port, group.interface, -1)
            self.on_timer(now, f"{KEY}{number}")

    def stop(self, now: int) -> None:
        self.stopped = True
        for number, agent in enumerate(self.agents):
            agent.end()
            self.timers.cancel(f"{KEY}{number}")
            self.links.leave(f"{KEY}{number}")

    def on_timer(self, now: int, key: str) -> None:
        if not self.stopped:
            agent = self.agents[int(key[len(KEY) :])]
            agent.tick(now)
            self.timers.set(key, now + agent.period_ns)

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        if group.startswith(KEY) and not self.stopped:
            self.agents[int(group[len(KEY) :])].on_datagram(now, data)
