"""The settings of CORE client connections and sessions. Times in ns, sizes in bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from atalanta.wire.core.packets.session import CreateSession, CreateSessionV2
from atalanta.wire.http_upgrade import UpgradeRequest

NO_WINDOW: Final = -1


@dataclass
class ConnectionSettings:
    """The settings of one connection. `ttl_ns`, `ping_period_ns`, `call_timeout_ns`: -1 is never.

    `resume`: sessions outlive a lost connection: they are created again on the next one, and unconfirmed messages are
    sent again. Without it everything fails when the connection is lost.
    `may_move`: the client may use any node of the cluster, so a node with too many clients may redirect it.
    """

    ttl_ns: int = 60_000_000_000
    ping_period_ns: int = 30_000_000_000
    call_timeout_ns: int = 30_000_000_000
    resume: bool = False
    may_move: bool = False
    subscribe_topology: bool = True
    upgrade: Callable[[], UpgradeRequest] | None = None  # the HTTP request before CORE
    cluster_connection: bool = False  # the flag in SUBSCRIBE_TOPOLOGY_V2


@dataclass
class SessionSettings:
    """The settings of one session, as CREATESESSION has them.

    `producer_window`: the most credits to request, -1 for no credits. `confirmation_window`: -1 switches
    PACKETS_CONFIRMED off. `large_message_max`: longer bodies are dropped. Without `resume` the session ends with its
    connection, even if the connection resumes. `notices`: a node of ours tells what became of each message.
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
    notices: bool = False
    xa: bool = False  # the session serves branches of XA transactions


def session_creation(
    settings: SessionSettings, channel: int, version: int, with_client_id: bool
) -> CreateSession:
    """Returns CREATESESSION_V2 for a session on `channel`; or CREATESESSION, which has no client id."""
    kind = CreateSessionV2 if with_client_id else CreateSession
    packet = kind(
        name=settings.name,
        session_channel=channel,
        version=version,
        user=settings.user,
        password=settings.password,
        min_large_message_size=settings.min_large_message_size,
        xa=settings.xa,
        auto_commit_sends=settings.auto_commit_sends,
        auto_commit_acks=settings.auto_commit_acks,
        confirmation_window=settings.confirmation_window,
        pre_acknowledge=settings.pre_acknowledge,
        default_address=settings.default_address,
    )
    if isinstance(packet, CreateSessionV2):
        packet.client_id = settings.client_id
    return packet
