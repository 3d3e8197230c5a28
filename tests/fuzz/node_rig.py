"""A whole node on a virtual disk for inputs that are conversations: six kinds of peers, and what must hold."""

from __future__ import annotations

import random
from collections.abc import Callable

from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings, DiscoveryGroupConfig
from atalanta.kernel.command import CurrentCommand
from atalanta.kernel.ports import Links
from atalanta.kernel.security.security import PERMISSIONS, Security
from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.sim.world.disk import SimDisk
from atalanta.sim.world.large_files import LargeInputs, SimLargeFiles
from atalanta.sim.world.planted_commands import PlantedCommands
from atalanta.store.config import JournalConfig
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.cluster import ClusterConnect
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.session import CreateSessionV2, SessionStart
from atalanta.wire.core.server.protocol import CoreProtocol
from atalanta.wire.endpoint import AcceptorConfig, ConnectorConfig
from tests.kernel.broker_rig import START, CountingIds, RecordingTimers, RecordingTrace
from tests.wire.core.server.server_rig import RecordingWire, queue_request, text_message

DOOR = "door"
GROUP = "group"


class DialLinks(Links):
    """Every wish to dial is kept."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def dial(self, key: str, host: str, port: int) -> None:
        self.keys.append(key)

    def dial_secure(
        self, key: str, host: str, port: int, connector: str, timeout_ms: int = -1
    ) -> None:
        self.keys.append(key)

    def join(self, group: str, address: str, port: int, interface: str, local_port: int) -> None:
        return None

    def multicast(self, group: str, data: bytes) -> None:
        return None

    def leave(self, group: str) -> None:
        return None


class RigLarge(LargeInputs):
    def __init__(self, rig: NodeRig) -> None:
        self.rig = rig

    def large_written(self, file: int, size: int) -> None:
        self.rig.node.on_large_written(self.rig.now, file, size)

    def large_synced(self, file: int) -> None:
        self.rig.node.on_large_synced(self.rig.now, file)

    def large_failed(self, file: int, why: str) -> None:
        self.rig.node.on_large_failed(self.rig.now, file, why)

    def large_read(self, token: int, data: bytes) -> None:
        self.rig.node.on_large_read(self.rig.now, token, data)


class SessionCount(ClientObserver):
    """Counts the sessions that were created."""

    def __init__(self) -> None:
        self.created = 0

    def on_session_created(self, now: int, session: Session) -> None:
        self.created += 1


class NodeRig:
    """`settle` ends the turn and lets the disk do what it was asked."""

    def __init__(self, command: CurrentCommand | None = None) -> None:
        self.now = START
        self.conns = 0
        self.calls: list[Callable[[], None]] = []
        self.disk = SimDisk(lambda _, call: self.calls.append(call), random.Random(1))
        self.large = SimLargeFiles(
            lambda _, call: self.calls.append(call), random.Random(2)
        )
        self.wire = RecordingWire()
        self.timers = RecordingTimers()
        self.links = DialLinks()
        ports = Ports(
            self.wire, self.disk, self.timers, self.links, CountingIds(), RecordingTrace()
        )
        ports.large = self.large
        if command is not None:
            ports.command = command
        self.node = Node(node_config(), ports)
        node = self.node
        self.sessions = SessionCount()
        node.broker.add_observer(self.sessions)
        self.large.attach(RigLarge(self))
        self.disk.attach(
            lambda token: node.on_committed(self.now, token),
            lambda why: node.on_disk_failed(self.now, why),
        )
        node.recover(self.now)
        node.start(self.now)
        self.settle()

    def settle(self) -> None:
        for _ in range(10_000):
            self.node.flush(self.now)
            if not self.calls:
                return
            self.calls.pop(0)()
        raise AssertionError("the disk does not come to rest")

    def pass_time(self, ns: int) -> None:
        """Timers that are due ring once."""
        self.now += ns
        for key, at in list(self.timers.due.items()):
            if at <= self.now and self.timers.due.get(key) == at:
                del self.timers.due[key]
                self.node.on_timer(self.now, key)
        self.settle()

    # -- peers ----------------------------------------------------------------------------------
    def accept(self) -> int:
        self.conns += 1
        self.node.on_accept(self.now, self.conns, DOOR, "1.2.3.4:5")
        return self.conns

    def send(self, conn: int, packet: Packet, channel: int = 10) -> None:
        self.node.on_data(self.now, conn, codec.encode(packet, channel, 136))

    def receive(self, conn: int, data: bytes) -> None:
        """What a peer sends; its commands may fail by a mistake that is planted."""
        command = self.node.command
        if isinstance(command, PlantedCommands):
            command.receive(True)
        self.node.on_data(self.now, conn, data)
        if isinstance(command, PlantedCommands):
            command.receive(False)

    def login(self, user: str, password: str, xa: bool = False, window: int = -1, version: int = 136) -> int:
        conn = self.accept()
        self.node.on_data(self.now, conn, HANDSHAKE)
        name = f"session-{conn}"
        login = CreateSessionV2(
            name=name,
            session_channel=10,
            version=version,
            user=user,
            password=password,
            xa=xa,
            auto_commit_acks=not xa,
            confirmation_window=window,
        )
        self.send(conn, login, 1)
        self.send(conn, SessionStart())
        return conn

    def consuming(self, conn: int) -> None:
        """A queue with messages, some of them given to a consumer."""
        self.send(conn, queue_request("a"))
        for number in range(3):
            self.send(
                conn,
                SendMessage(
                    text_message("a", "text", number > 0),
                    requires_response=True,
                    correlation=-7,
                    sender_id=0,
                ),
            )
        self.send(conn, CreateConsumer(consumer_id=0, queue="a", priority=4))
        self.send(conn, FlowToken(0, 300))
        self.settle()

    def cluster_peer(self) -> int:
        conn = self.login("cluster", "secret")
        self.send(conn, ClusterConnect("cluster", "secret"), 3)
        return conn

    def dialled(self) -> int:
        """A connection of the node's own; 0 if it does not want one now."""
        while self.links.keys:
            key = self.links.keys.pop()
            self.conns += 1
            self.node.on_dialed(self.now, self.conns, key)
            if self.conns in self.node.connections:
                return self.conns
        return 0

    def gone(self, conn: int) -> None:
        self.node.on_closed(self.now, conn, "reset by peer")
        self.settle()
        self.wire.written.clear()

    # -- what must hold -------------------------------------------------------------------------
    def check(self) -> None:
        assert self.node.failed is None, self.node.failed
        self.node.validate()
        kept = sorted(self.node.broker.large.bodies)
        assert sorted(self.large.contents) == kept, f"files {sorted(self.large.contents)}, known {kept}"

    def notified(self) -> bool:
        """Whether some queue is told of refused logins: that is a message more."""
        broker = self.node.broker
        address = broker.addresses.get(broker.config.management_notification_address)
        return address is not None and bool(list(address.queues()))

    def state(self) -> tuple[object, ...]:
        """Returns the state that nobody can change without a login."""
        node = self.node
        broker = node.broker
        (protocol,) = (each for each in node.host.protocols if isinstance(each, CoreProtocol))
        return (
            sorted(broker.addresses), sorted(broker.queues), sorted(broker.store.messages), node.journal.last,
            broker.memory.used_bytes, sorted(protocol.shared.metadata), sorted(self.disk.files),
            sorted(self.large.contents),
            [queue.message_count for queue in broker.queues.values()],
        )  # fmt: skip


def node_config() -> NodeConfig:
    security = Security(True, "cluster", "secret")
    security.add_user("admin", "admin", ["admin"])
    security.add_user("guest", "guest", ["guest"])
    security.add_rule("#", {permission: ["admin"] for permission in PERMISSIONS})
    settings = AddressSettingsRepository()
    changes: dict[str, bool | int | float | str | None] = {
        "max_delivery_attempts": 3, "dead_letter_address": "c", "expiry_address": "b", "redelivery_delay_ms": 0,
        "address_full_policy": "PAGE", "max_size_bytes": 20_000, "page_size_bytes": 4_096,
        "auto_delete_queues": True, "redistribution_delay_ms": 0,
    }  # fmt: skip
    settings.add("#", changes)
    cluster = ClusterSettings()
    cluster.cluster_user = "cluster"
    cluster.cluster_password = "secret"
    for name in ("here", "there"):
        cluster.connectors[name] = ConnectorConfig(name, name, 61616)
    connection = ClusterConnectionConfig()
    connection.name = "link"
    connection.connector = "here"
    connection.discovery_group = GROUP
    cluster.discovery_groups[GROUP] = DiscoveryGroupConfig(
        GROUP, group_address="231.7.7.7", group_port=9876
    )
    cluster.cluster_connections.append(connection)
    return NodeConfig(
        "node-a", BrokerConfig(), settings, security, JournalConfig(bytes(16), 1 << 16),
        [AcceptorConfig(DOOR, "0.0.0.0", 1)], cluster,
    )  # fmt: skip


