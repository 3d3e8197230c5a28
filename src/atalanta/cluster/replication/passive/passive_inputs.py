"""The inputs that a passive member of a group does not need."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.security.user_operation import UserAnswer
    from atalanta.kernel.settings.broker_config import StoredSettings
    from atalanta.wire.core.transport import TransportConfiguration


class PassiveInputs:
    """A node without clients, acceptors, users and management: it ignores their inputs (runtime/inputs.py).

    Nothing of it is held back: it has no clients. It reads its configuration again when it becomes active.
    """

    failed: str | None = None

    def on_accept(
        self,
        now: int,
        conn: int,
        acceptor: str,
        remote: str = "",
        server_name: str | None = None,
        certificate: str = "",
    ) -> None:
        """Ignores a connection: the acceptors of a passive member do not listen."""

    def on_blocked(self, now: int, conn: int) -> None:
        """Ignores that the active node reads slowly: answers are small."""

    def on_unblocked(self, now: int, conn: int) -> None:
        """Ignores that the active node has read the backlog."""

    def on_hung_up(self, now: int, conn: int) -> None:
        """Ignores the end of the active node while the disk is slow: what it has sent is read first."""

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        """Ignores a datagram: no group was joined."""

    def on_resolved(self, now: int, key: str, addresses: list[tuple[str, int]], why: str) -> None:
        """Ignores an answer of the DNS: nothing was asked."""

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        """Ignores the files of a shared folder: none was read."""

    def on_backups(self, now: int, backups: dict[str, TransportConfiguration]) -> None:
        """Ignores the backup of a node: this one serves nobody."""

    def on_verified(self, now: int, token: int, ok: bool) -> None:
        """Ignores a login: there is none."""

    def on_users(self, now: int, token: int, answer: UserAnswer) -> None:
        """Ignores the answer about users: nothing was asked."""

    def on_large_read(self, now: int, token: int, data: bytes) -> None:
        """Ignores data of a large body: none is read."""

    def on_disk_usage(self, now: int, used_fraction: float, free_bytes: int) -> None:
        """Ignores the disk usage: the limits are those of the active node."""

    def on_reload(self, now: int, config: object) -> None:
        """Ignores a configuration: it is read when the member becomes active."""

    def on_settings_changed(
        self, now: int, token: int, stored: StoredSettings | None, why: str
    ) -> None:
        """Ignores a change of settings: it comes from the active node."""

    def may_send(self, now: int) -> bool:
        """Tells that output may leave: it goes to the active node."""
        return True

    def flush(self, now: int) -> None:
        """Does nothing: output is written at once."""

    def flush_answers(self, now: int) -> None:
        """Does nothing: output is written at once."""

    def leave(self, now: int) -> None:
        """Does nothing: a passive member has no messages of its own."""
