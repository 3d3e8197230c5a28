"""The seat of an active node in its group: what the shell gives a node that has just taken over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from atalanta.cluster.replication.member_codec import Guard
from atalanta.ha.register_port import RegisterPort
from atalanta.ha.replication import Follower


def _nothing() -> bytes:
    return b""


@dataclass(eq=False, repr=False)
class ReplicationSeat:
    """The things that an active node needs of its group.

    `follower` has just taken over: it has returned `Activate`. `key` is that of the members' handshake. A follower
    that makes no progress for `drop_after_ns` is removed from the in-sync set. `settings` returns the content of the
    stored management settings, b"" without any. `guard`: the process of the active node has one, which knows the epoch
    already.
    """

    follower: Follower
    register: RegisterPort
    group: str
    key: bytes
    drop_after_ns: int
    min_in_sync: int = 1
    settings: Callable[[], bytes] = _nothing
    guard: Guard | None = None
