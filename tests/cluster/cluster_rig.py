"""Clusters in the virtual world, scripted step by step: nodes, clients, a tap on the wire, and a raw peer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from atalanta.cluster.config import (
    BroadcastGroupConfig,
    ClusterConnectionConfig,
    ClusterSettings,
    DiscoveryGroupConfig,
)
from atalanta.cluster.connection.cluster_connection import ClusterConnection
from atalanta.cluster.connection_routers.config import RouterConfig, RoutersConfig
from atalanta.cluster.core_bridges.config import CoreBridgeSettings
from atalanta.cluster.grouping.config import GroupingHandlerConfig
from atalanta.cluster.native_config import OwnSettings
from atalanta.cluster.networks.settings import NetworkSettings
from atalanta.kernel.command import CurrentCommand
from atalanta.kernel.queue.queue import Queue
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.security.security import PERMISSIONS
from atalanta.kernel.settings.broker_config import AddressConfig, QueueConfig
from atalanta.management.request.call import Call, find_operation
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.node.config import Ports
from atalanta.node.node import Node
from atalanta.sim.host import Host
from atalanta.sim.nodes import (
    CLUSTER_PASSWORD,
    CLUSTER_USER,
    PASSWORD,
    PORT,
    USER,
    Shape,
    node_config,
    queue,
)
from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import CLUSTER_CHANNEL, HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterConnect, ClusterConnectReply
from atalanta.wire.core.packets.connection import ExceptionResponse, NullResponse, Ping
from atalanta.wire.core.packets.consumer import (
    ConsumerClose,
    CreateConsumer,
    FlowToken,
    IndividualAcknowledge,
)
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.session import CreateSession, CreateSessionResponse, SessionStart
from atalanta.wire.core.packets.topology import SubscribeTopologyV2
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig
from tests.cluster.raw_client import RawClient

ROUTED_PORT = 7000
OPENWIRE_PORT = 61_617

Kind = TypeVar("Kind", bound="Client")


class TappedNetwork(Network):
    """Keeps what every machine sent to every other, as bytes of the connection."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.sent: list[tuple[str, str, int, bytearray]] = []
        self._by_connection: dict[int, bytearray] = {}

    def send(self, conn: int, data: bytes) -> None:
        stream = self.streams.get(conn)
        if stream is not None and not stream.held:
            kept = self._by_connection.get(conn)
            if kept is None:
                kept = bytearray()
                self._by_connection[conn] = kept
                self.sent.append((stream.source.name, stream.target.name, conn, kept))
            kept += data
        super().send(conn, data)


class Rig:
    """Nodes are n0, n1 …; every node has the queues of `queues(index)`; time passes only in `run` and `until`."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.network = TappedNetwork(self.world)
        self.network.latency_ns = (200_000, 400_000)
        self.hosts: list[Host] = []
        self.clients = 0

    # -- management -----------------------------------------------------------------------------
    def get(self, host: Host, resource: str, attribute: str) -> Any:
        """The value of an attribute, as a request of the host's management would answer it."""
        call = Call(self.world.now, Message.create("", b""), None, CurrentCommand())
        return node_of(host).management.select(call, resource).attributes[attribute](call)

    def ask(self, host: Host, resource: str, operation: str, *given: object) -> Any:
        """The answer of an operation. Raises BrokerError."""
        call = Call(self.world.now, Message.create("", b""), None, CurrentCommand())
        values = list(given)
        control = node_of(host).management.select(call, resource)
        found = find_operation(control.operations, operation, values)
        assert found is not None, f"no {operation} takes these"
        answer = found(call, values)
        host.flush_later()
        return answer

    # -- nodes ----------------------------------------------------------------------------------
    def node(
        self,
        peers: list[int] | None = None,
        mode: str = "ON_DEMAND",
        delay_ms: int = -1,
        queues: list[QueueConfig] | None = None,
        discovery: bool = False,
        node_id: str = "",
        change: Callable[[ClusterConnectionConfig], None] | None = None,
        password: str = CLUSTER_PASSWORD,
        memory_bytes: int = 100 << 20,
        grouping: GroupingHandlerConfig | None = None,
        whole: Callable[[ClusterSettings], None] | None = None,
        doors: dict[str, int] | None = None,
        own: OwnSettings | None = None,
        bridges: CoreBridgeSettings | None = None,
        router: RouterConfig | None = None,
        backup_of: int = -1,
        openwire: Callable[[AcceptorConfig], None] | None = None,
        networks: NetworkSettings | None = None,
    ) -> Host:
        """A new node, not started; `peers` are its static connectors: None for all nodes before it, [] for itself.

        `change` is told its cluster connection, `whole` all its cluster settings; `doors` are further
        acceptors, port by the name of the cluster connection they serve; `own` is its atalanta.toml.
        `router` decides for those who come through the door at ROUTED_PORT.
        `backup_of` is the node whose node id and journal it has; `openwire` is told the acceptor at OPENWIRE_PORT.
        """
        index = len(self.hosts)
        if peers is None:
            peers = list(range(index))
        shape = Shape()
        shape.mode = mode
        shape.redistribution_delay_ms = delay_ms
        shape.memory_bytes = memory_bytes

        def make(ports: Ports) -> Node:
            settings = cluster(index, shape, peers, discovery, password)
            if change is not None:
                change(settings.cluster_connections[0])
            if whole is not None:
                whole(settings)
            config = node_config(index, shape, settings, addresses(queues or both()))
            config.security.add_rule("#", {name: ("all",) for name in PERMISSIONS})
            config.acceptors += acceptors(index, doors or {}, openwire)
            if router is not None:
                acceptor = AcceptorConfig("routed", f"n{index}", ROUTED_PORT)
                acceptor.router = router.name
                config.acceptors.append(acceptor)
                config.routers = RoutersConfig([router], settings)
            config.grouping = grouping
            if node_id:
                config.node_id = node_id
            if backup_of >= 0:
                config.node_id = f"node-{backup_of}"
                config.journal.journal_id = bytes([backup_of]) * 16
            config.own = own or config.own
            config.bridges = bridges or config.bridges
            config.networks = networks or config.networks
            return Node(config, ports)

        host = Host(self.world, self.network, f"n{index}", f"n{index}", PORT, make)
        for name, port in (doors or {}).items():
            host.listeners[port] = name
        if router is not None:
            host.listeners[ROUTED_PORT] = "routed"
        if openwire is not None:
            host.listeners[OPENWIRE_PORT] = "openwire"
        self.hosts.append(host)
        return host

    def cluster(self, count: int, **options: Any) -> list[Host]:
        """`count` started nodes that know each other."""
        hosts = [self.node(**options) for _ in range(count)]
        self.form(*hosts)
        return hosts

    def form(self, *hosts: Host) -> None:
        """Start them, all there are unless some are named, and wait until they know each other."""
        for host in hosts or self.hosts:
            host.start()
        self.formed()

    def formed(self, seconds: float = 20) -> None:
        """Wait until every node that is up has every other as a peer with all its bindings."""
        up = [host for host in self.hosts if host.up]
        self.until(lambda: all(linked(host) >= len(up) - 1 for host in up), seconds)

    # -- clients --------------------------------------------------------------------------------
    def client(self, host: Host) -> Client:
        return self.connected(host, Client)

    def connected(self, host: Host, kind: type[Kind], name: str = "") -> Kind:
        """A client of that kind that is ready; without a name it gets one with a number."""
        if not name:
            self.clients += 1
            name = f"client{self.clients}"
        client = kind(self.world, self.network, name, host.name)
        client.start()
        self.until(lambda: client.ready)
        return client

    def consuming(
        self,
        host: Host,
        name: str = "orders",
        selector: str | None = None,
        known_at: Host | None = None,
    ) -> Client:
        """A client that consumes there; the node `known_at` has heard of it."""
        client = self.client(host)
        client.consume(name, selector)
        if known_at is not None:
            self.until(lambda: remote_consumers(known_at, host, name) == 1)
        return client

    def sender(
        self, host: Host, address: str, bodies: Sequence[bytes], kind: int = -1, **properties: Any
    ) -> Client:
        """A client that has sent these, and need not have its answers yet."""
        client = self.client(host)
        for body in bodies:
            client.publish(address, body, kind, **properties)
        return client

    def stored(
        self, host: Host, address: str, bodies: Sequence[bytes], kind: int = -1, **properties: Any
    ) -> Client:
        """A client that has sent these, and has its answers."""
        client = self.sender(host, address, bodies, kind, **properties)
        self.until(lambda: len(client.answers) == len(bodies))
        return client

    def filled(self, host: Host, bodies: Sequence[bytes], name: str = "orders") -> Client:
        """A client that has sent these to the anycast queue of that name, where nothing else was, and is."""
        client = self.sender(host, name, bodies, ANYCAST)
        self.until(lambda: count(host, name) == len(bodies))
        return client

    # -- time -----------------------------------------------------------------------------------
    def run(self, seconds: float) -> None:
        self.world.run_until(self.world.now + int(seconds * SECOND))

    def until(self, condition: Callable[[], object], seconds: float = 20) -> None:
        """Run until `condition` holds; fails when it does not within virtual `seconds`."""
        limit = self.world.now + int(seconds * SECOND)
        while not condition():
            assert self.world.now < limit, f"not within {seconds} s; events:\n" + "\n".join(
                self.events()[-30:]
            )
            self.world.run_until(self.world.now + SECOND // 100)

    # -- looking --------------------------------------------------------------------------------
    def events(self, text: str = "") -> list[str]:
        return [str(line) for line in self.world.history if text in line.text]

    def packets(self, source: Machine, target: Machine) -> list[tuple[int, Packet]]:
        """(channel, packet) of everything `source` sent to `target`, connection by connection."""
        found: list[tuple[int, Packet]] = []
        for sender, receiver, _, data in self.network.sent:
            if (sender, receiver) == (source.name, target.name):
                framer = Framer(bytes(data[: len(HANDSHAKE)]) == HANDSHAKE)
                for frame in framer.feed(bytes(data)):
                    found.append((frame.channel, codec.decode_frame(frame)))
        return found


class Client(RawClient):
    """Sends and consumes as told; keeps everything it got."""

    def __init__(self, world: World, network: Network, name: str, target: str) -> None:
        super().__init__(world, network, name, target)
        self.bodies: list[bytes] = []
        self.messages: list[ReceiveMessage] = []
        self.answers: list[int] = []
        self.errors: list[ExceptionResponse] = []
        self.number = 0

    def on_ready(self) -> None:
        self.send(SessionStart())

    def on_lost(self) -> None:
        return None

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, ReceiveMessage):
            self.messages.append(packet)
            self.bodies.append(bytes(packet.message.body))
            self.send(IndividualAcknowledge(packet.consumer_id, packet.message.id, False))
        elif isinstance(packet, NullResponse):
            self.answers.append(packet.correlation)
        elif isinstance(packet, ExceptionResponse):
            self.errors.append(packet)

    def publish(self, address: str, body: bytes, kind: int = -1, **properties: Any) -> None:
        """Durable; the answer comes under the number of the message (1, 2, 3 …)."""
        self.number += 1
        message = Message.create(address, body, 4, True, self.world.now // 1_000_000, 4)
        if kind >= 0:
            properties["_AMQ_ROUTING_TYPE"] = Byte(kind)
        for name, value in properties.items():
            message.properties.put(name, value)
        message.properties_changed()
        self.send(
            SendMessage(message, requires_response=True, correlation=self.number, sender_id=1)
        )

    def consume(self, name: str, selector: str | None = None, number: int = 0) -> None:
        self.send(CreateConsumer(consumer_id=number, queue=name, filter=selector))
        self.send(FlowToken(number, -1))

    def create(self, name: str, address: str = "", kind: int = ANYCAST, **options: Any) -> None:
        """A queue, on the address of its name unless another is given."""
        self.send(CreateQueueV2(address=address or name, queue=name, routing_type=kind, **options))

    def close(self, number: int = 0) -> None:
        self.send(ConsumerClose(number))


class RawPeer(Machine):
    """A machine that sends the bytes it is told to and decodes what comes; it can listen, too."""

    def __init__(self, rig: Rig, name: str) -> None:
        self.rig = rig
        self.name = name
        self.up = True
        self.conns: list[int] = []
        self.framers: dict[int, Framer] = {}
        self.packets: list[tuple[int, int, Packet]] = []
        self.closed: list[str] = []

    def dial(self, host: Host) -> int:
        """Connect and greet; the connection's number."""
        self.rig.network.dial(self, "raw", host.name, PORT)
        before = len(self.conns)
        self.rig.until(lambda: len(self.conns) > before)
        self.write(HANDSHAKE)
        return self.conns[-1]

    def log_in(self, host: Host) -> None:
        """Connect, subscribe to the topology, and log in."""
        self.dial(host)
        self.send(Ping(60_000), 0)
        self.send(SubscribeTopologyV2(False, 136), 0)
        self.send(CreateSession("s", 10, 136, USER, PASSWORD), 1)
        self.rig.until(lambda: self.got(CreateSessionResponse))

    def log_in_as_member(self, host: Host) -> None:
        """Connect with the password of the cluster."""
        self.dial(host)
        self.send(Ping(60_000), 0)
        self.send(ClusterConnect(CLUSTER_USER, CLUSTER_PASSWORD), CLUSTER_CHANNEL)
        self.rig.until(lambda: self.got(ClusterConnectReply))

    def write(self, data: bytes, conn: int = 0) -> None:
        self.rig.network.send(conn or self.conns[-1], data)

    def send(self, packet: Packet, channel: int, conn: int = 0) -> None:
        self.write(codec.encode(packet, channel), conn)

    def listen(self) -> None:
        self.rig.network.listen(self, self.name, PORT)

    def got(self, kind: type[Packet]) -> list[Packet]:
        return [packet for _, _, packet in self.packets if isinstance(packet, kind)]

    def on_accepted(self, conn: int, port: int) -> None:
        self.conns.append(conn)
        self.framers[conn] = Framer(True)

    def on_dialed(self, conn: int, key: str) -> None:
        self.conns.append(conn)
        self.framers[conn] = Framer(False)

    def on_dial_failed(self, key: str, why: str) -> None:
        raise AssertionError(why)

    def on_bytes(self, conn: int, data: bytes) -> None:
        for frame in self.framers[conn].feed(data):
            self.packets.append((conn, frame.channel, codec.decode_frame(frame)))

    def on_closed(self, conn: int, why: str) -> None:
        self.closed.append(why)

    def on_datagram(self, group: str, data: bytes) -> None:
        return None


# -- configurations -------------------------------------------------------------------------------
def both() -> list[QueueConfig]:
    """An anycast queue `orders`, and a subscription `archive` on the multicast address `prices`."""
    return [queue("orders", "orders", ANYCAST), queue("archive", "prices", MULTICAST)]


def acceptors(
    index: int, doors: dict[str, int], openwire: Callable[[AcceptorConfig], None] | None
) -> list[AcceptorConfig]:
    """Acceptors for cluster connections, port by the name of each, and one for OpenWire."""
    made = []
    for name, port in doors.items():
        acceptor = AcceptorConfig(name, f"n{index}", port)
        acceptor.cluster_connection = name
        made.append(acceptor)
    if openwire is not None:
        made.append(AcceptorConfig("openwire", f"n{index}", OPENWIRE_PORT, protocols=("OPENWIRE",)))
        openwire(made[-1])
    return made


def addresses(queues: list[QueueConfig]) -> list[AddressConfig]:
    made: dict[str, AddressConfig] = {}
    for each in queues:
        made.setdefault(each.address, AddressConfig(each.address)).add(each)
    return list(made.values())


def cluster(
    index: int, shape: Shape, peers: list[int], discovery: bool, password: str
) -> ClusterSettings:
    settings = ClusterSettings()
    settings.cluster_user = CLUSTER_USER
    settings.cluster_password = password
    for number in [*peers, index]:
        settings.connectors[f"n{number}"] = ConnectorConfig(f"n{number}", f"n{number}", PORT)
    connection = ClusterConnectionConfig()
    connection.name = "test"
    connection.connector = f"n{index}"
    connection.connection_ttl_ms = 6_000
    connection.message_load_balancing = shape.mode
    if discovery:
        connection.discovery_group = "group"
        settings.discovery_groups["group"] = DiscoveryGroupConfig(
            "group", group_address="231.7.7.7", group_port=9876
        )
        settings.broadcast_groups.append(
            BroadcastGroupConfig(
                "group", group_address="231.7.7.7", group_port=9876, connectors=[f"n{index}"]
            )
        )
    else:
        connection.static = True
        connection.static_connectors = [f"n{number}" for number in peers or [index]]
    settings.cluster_connections.append(connection)
    return settings


# -- looking into a node --------------------------------------------------------------------------
def node_of(host: Host) -> Node:
    assert host.node is not None, f"{host.name} is down"
    return host.node


def cluster_of(host: Host) -> ClusterConnection:
    found = node_of(host).cluster
    assert found is not None
    return found


def queue_of(host: Host, name: str) -> Queue:
    return node_of(host).broker.queues[name]


def count(host: Host, name: str) -> int:
    return queue_of(host, name).message_count


def linked(host: Host) -> int:
    """Peers whose whole state has been heard."""
    records = cluster_of(host).peers.values()
    return sum(1 for record in records if record.bridge is not None and record.bindings.complete)


def remote_consumers(host: Host, owner: Host, name: str) -> int:
    """Returns how many consumers of the queue at `owner` this host knows of."""
    record = cluster_of(host).peers.get(node_of(owner).broker.node_id)
    found = None
    if record is not None:
        found = record.bindings.bindings.get(name + node_of(owner).broker.node_id)
    return 0 if found is None or not found.connected else found.consumer_count


def waiting(host: Host, owner: str) -> int:
    """Messages in the store-and-forward queue for the node id `owner`."""
    return count(host, f"$.artemis.internal.sf.test.{owner}")
