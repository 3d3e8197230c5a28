"""Networks of brokers in the virtual world: nodes with network connectors, and OpenWire clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from atalanta.cluster.networks.bridge import NetworkBridge
from atalanta.cluster.networks.config import (
    NetworkConnectorConfig,
    NetworkDestination,
    NetworkTarget,
    NetworkWay,
)
from atalanta.cluster.networks.networks import Networks
from atalanta.cluster.networks.settings import NetworkSettings
from atalanta.kernel.security.security import PERMISSIONS
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.sim.host import Host
from atalanta.sim.nodes import PASSWORD, PORT, USER, Shape, node_config
from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.world import World
from atalanta.wire.openwire.bodies import text_content, text_of
from atalanta.wire.openwire.commands.connections import ConnectionInfo, RemoveInfo, WireFormatInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo, RemoveSubscriptionInfo
from atalanta.wire.openwire.commands.deliveries import MessageAck, MessageDispatch
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import (
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.encoding.structure import Command
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from tests.cluster.cluster_rig import Rig, node_of

OPTIONS = WireFormatOptions(inactivity_ms=0)
INDIVIDUAL = 4
ORDERS = ActiveMQQueue("orders")
NEWS = ActiveMQTopic("news")


def connector(*targets: int | str, name: str = "NC", port: int = PORT, **values: Any) -> NetworkConnectorConfig:
    """Bridges to these nodes, with one of our users and quick retries."""
    config = NetworkConnectorConfig(name=name, user_name=USER, password=PASSWORD)
    bridges = [[NetworkTarget("tcp", f"n{each}", port)] for each in targets]
    config.way = NetworkWay(bridges=bridges)
    config.way.retry.initial_reconnect_delay_ms = 200
    config.way.retry.max_reconnect_delay_ms = 1_000
    config.replay_delay_ms = 1_000
    for key, value in values.items():
        assert hasattr(config, key), key
        setattr(config, key, value)
    return config


def only(*names: str) -> list[NetworkDestination]:
    """Destinations as `queue://orders` or `topic://news`."""
    return [NetworkDestination(name.startswith("queue://"), name.partition("//")[2]) for name in names]


class NetworkRig(Rig):
    """n0, n1 … without a cluster; `connectors` by number of the node."""

    def start(self, *connectors: list[NetworkConnectorConfig], **options: Any) -> list[Host]:
        """A started node for each list, with its connectors; waits until all bridges are connected."""
        hosts = [self.single(each, **options) for each in connectors]
        for host in hosts:
            host.start()
        self.until(lambda: all(bridge.connected() for host in hosts for bridge in bridges_of(host)))
        return hosts

    def single(
        self, connectors: list[NetworkConnectorConfig], change: Callable[[NodeConfig], None] | None = None
    ) -> Host:
        index = len(self.hosts)

        def make(ports: Ports) -> Node:
            config = node_config(index, Shape(), None, [])
            config.security.add_rule("#", {name: ("all",) for name in PERMISSIONS})
            config.networks = NetworkSettings(list(connectors))
            if change is not None:
                change(config)
            return Node(config, ports)

        host = Host(self.world, self.network, f"n{index}", f"n{index}", PORT, make)
        self.hosts.append(host)
        return host

    def user(self, host: Host, name: str = "") -> NetworkClient:
        """An OpenWire client that has logged in."""
        self.clients += 1
        client = NetworkClient(self.world, self.network, name or f"user{self.clients}", host.name)
        client.start()
        self.until(lambda: client.ready)
        return client

    def consumer(self, host: Host, destination: ActiveMQDestination, **more: Any) -> NetworkClient:
        """A client that consumes, and acknowledges everything."""
        client = self.user(host, more.pop("client_name", ""))
        client.consume(destination, **more)
        return client

    def demand(self, host: Host, destination: ActiveMQDestination, count: int = 1) -> None:
        """Waits until so many consumers of bridges are there."""
        self.until(lambda: network_consumers(host, destination) == count)


def bridges_of(host: Host) -> list[NetworkBridge]:
    part = node_of(host).parts.get("networks")
    if part is None:
        return []
    assert isinstance(part, Networks)
    return list(part.by_number.values())


def network_consumers(host: Host, destination: ActiveMQDestination) -> int:
    """How many consumers of bridges the destination has."""
    found = 0
    for queue in node_of(host).broker.queues.values():
        if queue.spec.address == destination.physical_name:
            for consumer in queue.consumers:
                session = getattr(consumer, "session", None)
                found += session is not None and session.client.bridge
    return found


def depth(host: Host, name: str) -> int:
    """The messages in a queue, 0 without it."""
    queue = node_of(host).broker.queues.get(name)
    return 0 if queue is None else queue.message_count


class NetworkClient(Machine):
    """An OpenWire client. `texts` are the messages that it has got, `messages` whole; it acknowledges each of them.

    With `replies` it answers each request to its reply destination.
    """

    def __init__(self, world: World, network: Network, name: str, target: str) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.target = target
        self.id = f"ID:{name}"
        self.decoder = FrameDecoder(OPTIONS)
        self.decoder.open()
        self.conn = 0
        self.ready = False
        self.acknowledges = True
        self.replies = False
        self.last_command = 0
        self.last_message = 0
        self.last_consumer = 0
        self.texts: list[str | None] = []
        self.messages: list[ActiveMQTextMessage] = []
        self.held: list[MessageDispatch] = []
        self.confirmed: list[int] = []
        self.errors: list[str] = []
        self.sent: list[int] = []

    def start(self) -> None:
        self.network.dial(self, "dial", self.target, PORT)

    def kill(self) -> None:
        """As SIGKILL."""
        self.up = False
        self.conn = 0
        self.network.drop_machine(self)

    def on_dialed(self, conn: int, key: str) -> None:
        self.conn = conn
        self.network.send(conn, WireFormat(HANDSHAKE).encode(info_of(OPTIONS)))

    def on_dial_failed(self, key: str, why: str) -> None:
        self.start()

    def on_closed(self, conn: int, why: str) -> None:
        self.conn = 0
        self.ready = False

    def on_bytes(self, conn: int, data: bytes) -> None:
        self.decoder.feed(data)
        while (command := self.decoder.next()) is not None:
            if isinstance(command, WireFormatInfo):
                self.call(ConnectionInfo(ConnectionId(self.id), self.name, PASSWORD, USER))
                self.call(SessionInfo(SessionId(self.id, 1)))
                self.tell(ProducerInfo(ProducerId(self.id, 1, 1)))
            elif isinstance(command, ExceptionResponse):
                assert command.exception is not None
                self.errors.append(command.exception.message or "")
            elif isinstance(command, Response):
                self.confirmed.append(command.correlation_id)
                self.ready = len(self.confirmed) >= 2
            elif isinstance(command, MessageDispatch) and isinstance(command.message, ActiveMQTextMessage):
                self._take(command, command.message)

    def _take(self, dispatch: MessageDispatch, message: ActiveMQTextMessage) -> None:
        self.texts.append(text_of(message.content))
        self.messages.append(message)
        if not self.acknowledges:
            self.held.append(dispatch)
            return
        if self.replies and message.reply_to is not None:
            self.send(f"answer to {self.texts[-1]}", message.reply_to)
        last = message.message_id
        self.tell(MessageAck(dispatch.destination, None, dispatch.consumer_id, INDIVIDUAL, last, last, 1))

    def tell(self, command: Command, wanted: bool = False) -> int:
        self.last_command += 1
        command.command_id = self.last_command
        command.response_required = wanted
        if self.conn:
            self.network.send(self.conn, self.decoder.format.encode(command))
        return self.last_command

    def call(self, command: Command) -> int:
        return self.tell(command, True)

    def all_confirmed(self) -> bool:
        return all(number in self.confirmed for number in self.sent)

    def consume(self, destination: ActiveMQDestination, prefetch: int = 1000, **more: Any) -> ConsumerId:
        self.last_consumer += 1
        info = ConsumerInfo(
            ConsumerId(self.id, 1, self.last_consumer), destination=destination, prefetch_size=prefetch, **more
        )
        self.call(info)
        assert info.consumer_id is not None
        return info.consumer_id

    def close(self, consumer_id: ConsumerId) -> None:
        self.call(RemoveInfo(consumer_id, -1))

    def unsubscribe(self, name: str) -> None:
        self.call(RemoveSubscriptionInfo(ConnectionId(self.id), name, self.name))

    def send(self, text: str, destination: ActiveMQDestination, persistent: bool = True, **more: Any) -> None:
        self.last_message += 1
        producer_id = ProducerId(self.id, 1, 1)
        message_id = MessageId(None, producer_id, self.last_message)
        message = ActiveMQTextMessage(
            producer_id, destination, None, None, message_id, content=text_content(text), persistent=persistent,
            priority=4, **more,
        )  # fmt: skip
        self.sent.append(self.call(message))

    def temporary_queue(self, number: int = 1) -> ActiveMQTempQueue:
        made = ActiveMQTempQueue(f"{self.id}:{number}")
        self.call(DestinationInfo(ConnectionId(self.id), made, 0))
        return made
