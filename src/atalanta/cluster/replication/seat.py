"""The seat of an active node in its group: what the shell gives a node that has just taken over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from atalanta.cluster.replication.member_codec import Guard
from atalanta.ha.register_port import RegisterPort
from atalanta.ha.replication import Follower


def _nothing() -> bytes:
    return b""


@dataclass(eq=False, repr=False)
class ReplicationSeat:
    """The things that an active node needs of its group.

    `follower` is set by `take`: a node is prepared before its member takes over. `key` is that of the members'
    handshake. A follower that makes no progress for `drop_after_ns` is removed from the in-sync set; `asynchronous`
    members are never in it. `settings` returns the content of the stored management settings, b"" without any. `guard`: the process of
    the active node has one, which knows the epoch already.
    """

    register: RegisterPort
    group: str
    key: bytes
    drop_after_ns: int
    min_in_sync: int = 1
    asynchronous: tuple[str, ...] = ()
    settings: Callable[[], bytes] = _nothing
    guard: Guard | None = None
    follower: Follower = field(init=False)

    def take(self, follower: Follower, guard: Guard | None) -> None:
        """Takes the follower, which has returned `Activate`, and the guard of the process in this epoch."""
        self.follower = follower
        self.guard = guard
