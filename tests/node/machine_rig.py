"""The world around one node, kept in memory."""

from __future__ import annotations

import random
from collections.abc import Callable

from atalanta.kernel.ports import Links
from atalanta.kernel.security.security import PERMISSIONS, Security
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.sim.world.disk import SimDisk
from atalanta.store.config import JournalConfig
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.session import CreateSessionV2
from atalanta.wire.endpoint import AcceptorConfig
from tests.kernel.broker_rig import START, CountingIds, RecordingTimers, RecordingTrace
from tests.wire.core.server.server_rig import RecordingWire


class Machine:
    """A node and its disk; the disk works when `work` is called, as long as there is something to do."""

    def __init__(self, journal: JournalConfig | None = None) -> None:
        self.journal = journal or JournalConfig(bytes(16))
        self.now = START
        self.calls: list[Callable[[], None]] = []
        self.disk = SimDisk(lambda _, call: self.calls.append(call), random.Random(1))
        self.start()

    def start(self) -> None:
        security = Security()
        security.add_user("u", "p", ["all"])
        security.add_rule("#", {name: ["all"] for name in PERMISSIONS})
        self.wire = RecordingWire()
        self.trace = RecordingTrace()
        ports = Ports(self.wire, self.disk, RecordingTimers(), Links(), CountingIds(), self.trace)
        acceptor = AcceptorConfig("door", "0.0.0.0", 1, handshake_timeout_s=5)
        config = NodeConfig(
            "node-a", BrokerConfig(), AddressSettingsRepository(), security,
            self.journal, [acceptor],
        )  # fmt: skip
        self.node = Node(config, ports)
        node = self.node
        self.disk.attach(
            lambda token: node.on_committed(self.now, token),
            lambda why: node.on_disk_failed(self.now, why),
        )
        self.node.recover(self.now)
        self.node.start(self.now)
        self.work()

    def work(self) -> None:
        for _ in range(1_000):
            self.node.flush(self.now)
            if not self.calls:
                return
            self.calls.pop(0)()
        raise AssertionError("the disk does not come to rest")

    def login(self, conn: int) -> None:
        self.node.on_accept(self.now, conn, "door", "somewhere")
        self.node.on_data(self.now, conn, HANDSHAKE)
        self.send(
            conn,
            CreateSessionV2(name="s", session_channel=10, version=136, user="u", password="p"),
            1,
        )
        self.received(conn)

    def send(self, conn: int, packet: Packet, channel: int = 10) -> None:
        self.node.on_data(self.now, conn, codec.encode(packet, channel, 136))

    def received(self, conn: int) -> list[Packet]:
        self.node.flush(self.now)
        data = b"".join(self.wire.written.pop(conn, []))
        return [codec.decode_frame(frame, 136) for frame in Framer(False).feed(data)]

    def confirmed(self, conn: int) -> list[int]:
        return [
            packet.correlation
            for packet in self.received(conn)
            if isinstance(packet, NullResponse) and packet.correlation != -1
        ]
