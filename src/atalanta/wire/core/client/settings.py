"""What the client's engine must know. Times in ns, sizes in bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from atalanta.wire.core.packet_types import NEWEST_VERSION
from atalanta.wire.core.packets.session import CreateSessionV2
from atalanta.wire.http_upgrade import UpgradeRequest

NO_WINDOW: Final = -1


@dataclass
class ConnectionSettings:
    """Of one connection. `ttl_ns`, `ping_period_ns`: -1 is never.

    `resume`: sessions outlive a lost connection, are made again on the next one, and what was not
    confirmed is sent again. Without it everything fails at a loss (node-to-node links).
    `may_move`: any node of the cluster will do, so a node with too many clients may send it to another.
    """

    ttl_ns: int = 60_000_000_000
    ping_period_ns: int = 30_000_000_000
    call_timeout_ns: int = 30_000_000_000
    resume: bool = False
    may_move: bool = False
    subscribe_topology: bool = True
    upgrade: Callable[[], UpgradeRequest] | None = None  # how a transport begins that is behind HTTP
    cluster_connection: bool = False  # the flag in SUBSCRIBE_TOPOLOGY_V2


@dataclass
class SessionSettings:
    """Of one session, as CREATESESSION has them.

    `producer_window`: credits asked for at most, -1 for none at all. `confirmation_window`: -1
    switches PACKETS_CONFIRMED off. `large_message_max`: longer bodies are not kept. Without `resume` it ends with the
    connection, whatever holds for that one.
    """

    name: str
    user: str | None = None
    password: str | None = None
    auto_commit_sends: bool = True
    auto_commit_acks: bool = True
    pre_acknowledge: bool = False
    confirmation_window: int = NO_WINDOW
    min_large_message_size: int = 100 * 1024
    large_message_max: int = 256 << 20
    producer_window: int = 1 << 20
    client_id: str | None = None
    default_address: str | None = None
    resume: bool = True
    xa: bool = False  # works in branches of global transactions


def session_creation(settings: SessionSettings, channel: int) -> CreateSessionV2:
    """CREATESESSION_V2 for a session on `channel`."""
    return CreateSessionV2(
        name=settings.name,
        session_channel=channel,
        version=NEWEST_VERSION,
        user=settings.user,
        password=settings.password,
        min_large_message_size=settings.min_large_message_size,
        xa=settings.xa,
        auto_commit_sends=settings.auto_commit_sends,
        auto_commit_acks=settings.auto_commit_acks,
        confirmation_window=settings.confirmation_window,
        pre_acknowledge=settings.pre_acknowledge,
        default_address=settings.default_address,
        client_id=settings.client_id,
    )
