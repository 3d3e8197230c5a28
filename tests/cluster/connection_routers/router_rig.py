"""Nodes with connection routers, and clients that connect to them."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.cluster.connection_routers.config import (
    CLIENT_ID,
    CONSISTENT_HASH,
    PoolConfig,
    RouterConfig,
)
from atalanta.sim.host import Host
from atalanta.sim.nodes import PASSWORD, USER
from atalanta.sim.world.network import Machine
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import DisconnectV3, ExceptionResponse
from atalanta.wire.core.packets.session import CreateSessionResponse, CreateSessionV2
from tests.cluster.cluster_rig import ROUTED_PORT, Rig


class Visitor(Machine):
    """Logs in through the routed door of a node; `to` is where it was sent, "" if it stays."""

    port = ROUTED_PORT
    default_address: str | None = None  # of its session

    def __init__(self, rig: Rig, host: Host, client_id: str | None = None, version: int = 136) -> None:
        rig.clients += 1
        self.rig = rig
        self.name = f"visitor{rig.clients}"
        self.up = True
        self.client_id = client_id
        self.version = version
        self.conn = 0
        self.framer = Framer(False)
        self.packets: list[Packet] = []
        self.closed = False
        rig.network.dial(self, "visit", host.name, self.port)

    def on_dialed(self, conn: int, key: str) -> None:
        self.conn = conn
        self.rig.network.send(conn, HANDSHAKE)
        self.log_in(10)

    def log_in(self, channel: int, password: str = PASSWORD) -> None:
        request = CreateSessionV2(
            name=f"{self.name}.{channel}",
            session_channel=channel,
            version=self.version,
            user=USER,
            password=password,
            client_id=self.client_id,
            default_address=self.default_address,
        )
        self.rig.network.send(self.conn, codec.encode(request, 1))

    def on_dial_failed(self, key: str, why: str) -> None:
        raise AssertionError(why)

    def on_bytes(self, conn: int, data: bytes) -> None:
        self.packets += [codec.decode_frame(frame) for frame in self.framer.feed(data)]

    def on_closed(self, conn: int, why: str) -> None:
        self.closed = True

    def on_accepted(self, conn: int, port: int) -> None:
        raise AssertionError("visitors do not listen")

    def on_datagram(self, group: str, data: bytes) -> None:
        return None

    @property
    def stays(self) -> bool:
        return any(isinstance(each, CreateSessionResponse) for each in self.packets)

    @property
    def error(self) -> int | None:
        codes = [each.code for each in self.packets if isinstance(each, ExceptionResponse)]
        return codes[0] if codes else None

    @property
    def to(self) -> str:
        targets = [each.target for each in self.packets if isinstance(each, DisconnectV3)]
        return "" if not targets or targets[0] is None else targets[0].host


def visit(rig: Rig, host: Host, client_id: str | None = None, seconds: float = 0.1) -> Visitor:
    """After that time it has its answer, unless it has to wait."""
    visitor = Visitor(rig, host, client_id)
    rig.run(seconds)
    return visitor


def place(visitor: Visitor, host: Host) -> str:
    assert visitor.stays != bool(visitor.to)
    return host.name if visitor.stays else visitor.to


def routed(
    policy: str | None = CONSISTENT_HASH, change: Callable[[RouterConfig, PoolConfig], None] | None = None
) -> RouterConfig:
    config = RouterConfig("router", CLIENT_ID)
    config.policy = policy
    config.pool = PoolConfig(local_target_enabled=True, cluster_connection="test")
    if change is not None:
        change(config, config.pool)
    return config


def nodes(rig: Rig, router: Callable[[], RouterConfig], count: int = 3) -> list[Host]:
    """All with the same router; every target is known to be ready."""
    hosts = [rig.node(router=router()) for _ in range(count)]
    rig.form(*hosts)
    rig.run(2)
    return hosts
