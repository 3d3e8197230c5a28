"""The seat of a colocated primary: what the shell gives a node that hosts backups of other members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.cluster.connection.backup_call import BackupCall


@dataclass(frozen=True)
class HostingMember:
    """A member that hosts a backup of this node: its node id, and where the backup listens."""

    node_id: str
    host: str
    port: int


class BackupCalls:
    """The part that handles calls about hosted backups, and the answers to its own. DecodeError."""

    def answer(self, body: bytes) -> bytes:
        """Returns the answer to the call of another member."""
        raise NotImplementedError

    def on_answer(self, now: int, node_id: str, body: bytes) -> None:
        """Handles the answer of a member."""
        raise NotImplementedError


class ColocationSeat:
    """The backups that this process hosts, and the members that host its own. All calls return at once.

    `own` is what this node says of itself in its calls. `backup_group` is the group-name of the backups that it hosts.
    `interval_ns` is 0 for a node that wants no backup.
    """

    own: BackupCall
    backup_group: str
    interval_ns: int
    backups_max: int

    def hosted(self) -> list[str]:
        """Returns the node ids of the members whose backups run here."""
        raise NotImplementedError

    def host(self, call: BackupCall) -> tuple[str, int]:
        """Hosts a backup from now on, also after a restart. Returns where it listens. OSError or ValueError say why
        it cannot."""
        raise NotImplementedError

    def release(self, node_id: str) -> None:
        """Ends a backup for good. Raises OSError."""
        raise NotImplementedError

    def hosts(self) -> list[HostingMember]:
        """Returns the members that host backups of this node, the one in use first."""
        raise NotImplementedError

    def remember(self, hosts: list[HostingMember]) -> None:
        """Stores them, for the next start too. Raises OSError."""
        raise NotImplementedError
