"""A node in this process, with ports that keep everything in memory: what is timed is our code alone."""

from __future__ import annotations

from atalanta.kernel.ports import Disk, Ids, Links, Timers, Trace, Wire
from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import Node
from atalanta.store.config import JournalConfig
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.session import CreateSessionV2, SessionStart

VERSION = 136
CHANNEL = 10
NOW = 1_700_000_000_000_000_000


class MemoryWire(Wire):
    """Keeps what is written until it is taken."""

    def __init__(self) -> None:
        self.written: dict[int, list[bytes]] = {}

    def write(self, conn: int, data: bytes) -> None:
        self.written.setdefault(conn, []).append(data)

    def close(self, conn: int, why: str) -> None:
        raise AssertionError(f"connection {conn} was closed: {why}")

    def take(self, conn: int) -> bytes:
        """All that was written to the connection since the last call."""
        return b"".join(self.written.pop(conn, []))


class InstantDisk(Disk):
    """Forgets what is written to it; a commit is finished as soon as somebody asks."""

    def __init__(self) -> None:
        self.tokens: list[int] = []

    def names(self) -> list[str]:
        return []

    def create(self, name: str, size: int, head: bytes) -> None:
        return None

    def commit(self, name: str, offset: int, data: bytes, token: int, more: bytes = b"") -> None:
        self.tokens.append(token)

    def delete(self, name: str) -> None:
        return None

    def set_aside(self, name: str, spare_name: str) -> None:
        return None

    def reuse(self, spare_name: str, name: str, head: bytes) -> None:
        return None


class NoTimers(Timers):
    def set(self, key: str, at_ns: int) -> None:
        return None

    def cancel(self, key: str) -> None:
        return None


class Counted(Ids):
    def __init__(self) -> None:
        self.last = 0

    def uuid(self) -> bytes:
        self.last += 1
        return self.last.to_bytes(16, "big")

    def secret(self, size: int) -> bytes:
        return bytes(size)


class Silent(Trace):
    def count(self, name: str, n: int = 1) -> None:
        return None

    def event(self, name: str, fields: dict[str, object]) -> None:
        return None


class ProfiledNode:
    """One node with one queue and as many CORE connections as are asked for."""

    def __init__(self, queue: str) -> None:
        self.wire = MemoryWire()
        self.disk = InstantDisk()
        # Nothing is compacted: the disk keeps nothing that could be read again.
        journal = JournalConfig(bytes(16), compact_min_segments=1 << 30)
        config = NodeConfig(
            "profile", BrokerConfig(), AddressSettingsRepository(), Security(False), journal
        )
        ports = Ports(self.wire, self.disk, NoTimers(), Links(), Counted(), Silent())
        self.node = Node(config, ports)
        self.node.recover(NOW)
        self.node.start(NOW)
        self.node.broker.queue_registry.create(NOW, QueueSpec(queue, queue, ANYCAST))
        self.settle()

    def connect(self, conn: int) -> None:
        """A connection with a started session on CHANNEL."""
        self.node.on_accept(NOW, conn, "profile", "127.0.0.1:1")
        self.node.on_data(NOW, conn, HANDSHAKE)
        name = f"session-{conn}"
        session = CreateSessionV2(
            name=name, session_channel=CHANNEL, version=VERSION, user="", password=""
        )
        self.send(conn, session, 1)
        self.send(conn, SessionStart())
        self.settle()

    def send(self, conn: int, packet: Packet, channel: int = CHANNEL) -> None:
        """A packet of the client."""
        self.node.on_data(NOW, conn, codec.encode(packet, channel, VERSION))

    def commit(self) -> None:
        """What the journal gave to the disk is there now."""
        while self.disk.tokens:
            self.node.on_committed(NOW, self.disk.tokens.pop(0))

    def settle(self) -> None:
        """Turns until nothing is left to do."""
        self.node.flush(NOW)
        while self.disk.tokens:
            self.commit()
            self.node.flush(NOW)
