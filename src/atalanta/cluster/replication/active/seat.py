"""The seat of an active node in its group: what the shell gives a node that has just taken over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from atalanta.cluster.replication.member_codec import Guard
from atalanta.ha.register_port import RegisterPort
from atalanta.ha.replication.follower import Follower

if TYPE_CHECKING:
    from atalanta.ha.replication.copy_replay import CopyReplay
    from atalanta.kernel.broker.recovery import Recovery


def _no_settings() -> bytes:
    return b""


@dataclass(eq=False, repr=False)
class ReplicationSeat:
    """The things that an active node needs of its group.

    `follower` is set by `take`: a node is prepared before its member takes over. `key` is that of the members'
    handshake. A follower that makes no progress for `drop_after_ns` is removed from the in-sync set. `settings` returns
    the content of the stored management settings, b"" without any. `guard`: the process of the active node has one,
    which knows the epoch already. `steady_ns` is a clock that nobody sets, by which leases are counted; without it the
    node's clock does. `damaged` names the files because of which this process has given its service away.
    `restores_register`: a register that does not exist has lost its only voter with the member of that disk, so an
    active node that is alone in sync writes it again.
    """

    register: RegisterPort
    group: str
    key: bytes
    drop_after_ns: int
    min_in_sync: int = 1
    settings: Callable[[], bytes] = _no_settings
    guard: Guard | None = None
    steady_ns: Callable[[], int] | None = None
    damaged: dict[str, bool] = field(default_factory=dict)
    restores_register: bool = False
    follower: Follower = field(init=False)
    replay: CopyReplay | None = None
    _recovery: Recovery | None = None

    def prepare(self, recovery: Recovery) -> Recovery:
        """Keeps and returns the recovery of the seat's node, which takes records while its member is passive."""
        self._recovery = recovery
        return recovery

    def take(self, follower: Follower, guard: Guard | None, replay: CopyReplay | None) -> None:
        """Takes the follower, which has returned `Activate`, and the guard of the process in this epoch.

        `replay`: that of the recovery that was prepared; without it the node reads its journal.
        """
        self.follower = follower
        self.guard = guard
        self.replay = replay

    def end_preparation(self) -> Recovery | None:
        """Returns the recovery that was prepared, None without one."""
        recovery, self._recovery = self._recovery, None
        return recovery
