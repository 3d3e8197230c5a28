"""Clients of each protocol that subscribe to addresses that overlap, and send to one that all of them match."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from atalanta.kernel.queue.spec import MULTICAST
from atalanta.sim.host import Host
from atalanta.sim.nodes import PASSWORD, PORT, USER
from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.world import World
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from tests.cluster.cluster_rig import Client, node_of
from tests.cluster.networks.network_rig import NetworkClient, NetworkRig

CORE: Final = "CORE"
OPENWIRE: Final = "OpenWire"
STOMP: Final = "STOMP"
PROTOCOLS: Final = (CORE, OPENWIRE, STOMP)
NEWS: Final = "news.eu"
PATTERNS: Final = ("news.eu", "news.#", "news.*")


class StompUser(Machine):
    """A STOMP client that has logged in as soon as it can; `bodies` are the messages that it got."""

    def __init__(self, world: World, network: Network, name: str, target: str) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.target = target
        self.conn = 0
        self.data = b""
        self.ready = False
        self.bodies: list[bytes] = []
        self.receipts = 0

    def start(self) -> None:
        self.network.dial(self, "dial", self.target, PORT)

    def on_dialed(self, conn: int, key: str) -> None:
        self.conn = conn
        login = {"accept-version": "1.2", "host": "/", "login": USER, "passcode": PASSWORD, "client-id": self.name}
        self.frame("CONNECT", login)

    def on_closed(self, conn: int, why: str) -> None:
        self.conn = 0

    def on_bytes(self, conn: int, data: bytes) -> None:
        self.data += data
        while b"\0" in self.data:
            found, _, self.data = self.data.partition(b"\0")
            head, _, body = found.lstrip(b"\n").partition(b"\n\n")
            self.ready = self.ready or head.startswith(b"CONNECTED")
            self.receipts += head.startswith(b"RECEIPT")
            if head.startswith(b"MESSAGE"):
                self.bodies.append(body)
            assert not head.startswith(b"ERROR"), head + body

    def frame(self, command: str, headers: dict[str, str], body: bytes = b"") -> None:
        lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
        self.network.send(self.conn, f"{command}\n{lines}\n".encode() + body + b"\0")

    def subscribe(self, topic: str, name: str) -> None:
        headers = {"id": name, "destination": topic, "durable-subscription-name": name}
        self.frame("SUBSCRIBE", {**headers, "receipt": name})

    def publish(self, topic: str, body: bytes) -> None:
        self.frame("SEND", {"destination": topic, "persistent": "true", "receipt": "sent"}, body)


class OverlappingRig(NetworkRig):
    """Subscribers and senders of a protocol. Each subscriber has one durable subscription of its own."""

    def subscriber(self, host: Host, protocol: str, pattern: str) -> Subscriber:
        return Subscriber(self, host, protocol, pattern)

    def subscribers(self, host: Host, protocol: str, patterns: tuple[str, ...] = PATTERNS) -> list[Subscriber]:
        return [self.subscriber(host, protocol, pattern) for pattern in patterns]

    def stomp(self, host: Host, name: str = "") -> StompUser:
        self.clients += 1
        client = StompUser(self.world, self.network, name or f"stomp{self.clients}", host.name)
        client.start()
        self.until(lambda: client.ready)
        return client

    def send(self, host: Host, protocol: str, *texts: str, address: str = NEWS) -> None:
        """Sends durable messages, and waits for the answers."""
        if protocol == OPENWIRE:
            user = self.user(host)
            for text in texts:
                user.send(text, ActiveMQTopic(address))
            self.until(user.all_confirmed)
        elif protocol == STOMP:
            stomp = self.stomp(host)
            for text in texts:
                stomp.publish(f"/topic/{address}", text.encode())
            self.until(lambda: stomp.receipts == len(texts))
        else:
            self.stored(host, address, [text.encode() for text in texts], MULTICAST)

    def bound(self, host: Host, count: int) -> None:
        """Waits until the host knows so many queues of the patterns, here and at other members."""
        self.until(lambda: bindings(host) == count)

    def arrived(self, subscribers: list[Subscriber], *texts: str) -> None:
        """Waits until each has got all of them; nobody gets one twice."""
        self.until(lambda: all(set(each.texts()) >= set(texts) for each in subscribers))
        self.run(2)
        got = {f"{each.pattern} at {each.host.name}": sorted(each.texts()) for each in subscribers}
        assert got == {name: sorted(texts) for name in got}


class Subscriber:
    """A durable subscription, named by its pattern and node, with a consumer of one protocol."""

    def __init__(self, rig: OverlappingRig, host: Host, protocol: str, pattern: str) -> None:
        self.rig = rig
        self.host = host
        self.protocol = protocol
        self.pattern = pattern
        self.name = f"s{rig.clients}"
        self.texts: Callable[[], list[str]] = list  # what the present consumer has got
        self.connect(host)

    def connect(self, host: Host) -> None:
        """Connects, there or again, and takes up the subscription."""
        self.host = host
        rig = self.rig
        if self.protocol == OPENWIRE:
            user = rig.user(host, self.name)
            user.consume(ActiveMQTopic(self.pattern.replace("#", ">")), subscription_name=self.name)
            self.texts = partial(texts_of, user)
        elif self.protocol == STOMP:
            stomp = rig.stomp(host, self.name)
            stomp.subscribe(f"/topic/{self.pattern}", self.name)
            self.texts = partial(bodies_of, stomp)
        else:
            client = rig.client(host)
            if self.name not in node_of(host).broker.queues:
                client.create(self.name, self.pattern, MULTICAST, durable=True)
                rig.until(lambda: self.name in node_of(host).broker.queues)
            client.consume(self.name)
            self.texts = partial(bodies_of, client)
        rig.run(0.5)


def texts_of(user: NetworkClient) -> list[str]:
    return [str(text) for text in user.texts]


def bodies_of(client: Client | StompUser) -> list[str]:
    return [body.decode() for body in client.bodies]


def bindings(host: Host) -> int:
    """How many queues, here and elsewhere, the host knows at the addresses of the patterns."""
    found = 0
    for pattern in PATTERNS:
        address = node_of(host).broker.addresses.get(pattern)
        found += 0 if address is None else len(address.groups)
    return found
