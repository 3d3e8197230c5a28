"""Discovery of ActiveMQ Classic by UDP multicast (MulticastDiscoveryAgent): brokers publish URLs of their acceptors.

A datagram is a text, `<group>.ActiveMQ-4.alive.%localhost%<url>`, or `dead` at the end of a broker. Each broker sends
it twice a second, and at once when it hears a new one. A broker that was silent for ten periods is dead. Any host can
send such datagrams. So nothing is published or listened to unless the configuration asks for it, and a URL that was
heard is only handed on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from atalanta.cluster.part import Part
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.server.peer_brokers import uri_of
from atalanta.wire.uri import UriError, parse_authority, parse_params

if TYPE_CHECKING:
    from collections.abc import Iterable

    from atalanta.kernel.ports import Links, Timers
    from atalanta.wire.endpoint import AcceptorConfig

SCHEME: Final = "multicast://"
DEFAULT: Final = "default"
ADDRESS: Final = "239.255.2.3"
PORT: Final = 6155
PERIOD_MS: Final = 500
MISSES_MAX: Final = 10
DATAGRAM_BYTES_MAX: Final = 8192
BROKERS_MAX: Final = 1_000
TYPE: Final = ".ActiveMQ-4."
ALIVE: Final = "alive."
DEAD: Final = "dead."
BROKER: Final = "%localhost%"
ADDRESS_TEXT: Final = re.compile(r"[\d.]+|.*:.*")
URL: Final = re.compile(r"[a-z+]{2,20}://[!-~]{1,1000}")
# Options of Classic's agent for those who dial what they hear; a publisher needs none of them.
OF_LISTENERS: Final = (
    "initialReconnectDelay", "maxReconnectDelay", "backOffMultiplier", "useExponentialBackOff", "maxReconnectAttempts",
    "loopBackMode",
)  # fmt: skip
KEY: Final = "agents."


@dataclass(frozen=True)
class MulticastGroup:
    """A group of brokers, at a UDP group. `interface` is the local address, "" the system's choice."""

    name: str = DEFAULT
    address: str = ADDRESS
    port: int = PORT
    interface: str = ""
    period_ms: int = PERIOD_MS


def parse_group(uri: str) -> MulticastGroup:
    """Reads `multicast://default` or `multicast://address:port?group=name`. UriError.

    A word in place of the address is the name of a group at Classic's own address.
    """
    if not uri.startswith(SCHEME):
        raise UriError(f"'{uri}' is not {SCHEME}{DEFAULT}: brokers are discovered by UDP multicast only")
    place, _, query = uri[len(SCHEME) :].partition("?")
    host, port = parse_authority(place or DEFAULT)
    params = parse_params(query)
    named = ADDRESS_TEXT.fullmatch(host) is None
    name = params.pop("group", host if named else DEFAULT)
    interface = params.pop("interface", "")
    period = params.pop("keepAliveInterval", str(PERIOD_MS))
    if not period.isdecimal() or not 0 < int(period) <= 60_000:
        raise UriError(f"keepAliveInterval: '{period}' is not 1 to 60000 ms")
    for key in params:
        if key not in OF_LISTENERS:
            raise UriError(f"'{key}' of {uri} has no meaning here: write group, interface=ADDRESS or keepAliveInterval")
    return MulticastGroup(name, ADDRESS if named else host, PORT if port is None else port, interface, int(period))


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
        prefix = f"{self.group.name}{TYPE}"
        text = data[: DATAGRAM_BYTES_MAX + 1].decode(errors="replace")
        if len(data) > DATAGRAM_BYTES_MAX or not text.startswith(prefix):
            return
        state, _, rest = text[len(prefix) :].partition("%")
        url = rest.partition("%")[2]  # behind the broker's name
        if state not in (ALIVE, DEAD) or not URL.fullmatch(url) or url in self.own:
            return
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
            self.send(f"{self.group.name}{TYPE}{state}{BROKER}{url}".encode())


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
