"""What a shell may tell a node: the inputs, as a type that `atalanta.node.node.Node` fulfils."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from atalanta.node.config import NodeConfig


class NodeInputs(Protocol):
    """All times are integer nanoseconds since the epoch and never decrease from call to call."""

    failed: str | None  # set when the node cannot go on; the shell then ends it

    def recover(self, now: int) -> None:
        """Reads the data folder, before anything else; errors name the damaged place."""

    def start(self, now: int) -> None:
        """Recovery is over; timers and links may be armed."""

    def on_accept(
        self,
        now: int,
        conn: int,
        acceptor: str,
        remote: str = "",
        server_name: str | None = None,
        certificate: str = "",
    ) -> None:
        """`remote` connected to the acceptor of that name; `conn` was never used before. `server_name`: of its TLS;
        `certificate`: the subject of the one it showed."""

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        """The next bytes of a connection, in any chunks; none come after `Wire.close`."""

    def on_closed(self, now: int, conn: int, why: str) -> None:
        """The connection is gone; exactly once a connection, also after `Wire.close`."""

    def on_blocked(self, now: int, conn: int) -> None:
        """The peer does not take what was written: nothing that can wait should be written."""

    def on_unblocked(self, now: int, conn: int) -> None:
        """The peer has taken what had piled up."""

    def on_dialed(self, now: int, conn: int, key: str) -> None:
        """`Links.dial` of that key succeeded: `conn` is open."""

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        """`Links.dial` of that key did not succeed; nothing is tried again by itself."""

    def on_timer(self, now: int, key: str) -> None:
        """The time of `Timers.set` has come; the timer is forgotten before this call."""

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        """One datagram of a multicast group that was joined."""

    def on_resolved(self, now: int, key: str, places: list[tuple[str, int]], why: str) -> None:
        """`Links.resolve` of that key has its answer."""

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        """`Links.post` of that key has its answer."""

    def on_committed(self, now: int, token: int) -> None:
        """The disk's group commit of that token is durable."""

    def on_disk_failed(self, now: int, why: str) -> None:
        """Writing or syncing failed; the disk takes no further commits."""

    def on_verified(self, now: int, token: int, ok: bool) -> None:
        """`Passwords.verify` of that token has its result."""

    def on_large_written(self, now: int, file: int, size: int) -> None:
        """`LargeFiles.append` of so many bytes is done."""

    def on_large_synced(self, now: int, file: int) -> None:
        """`LargeFiles.sync` is done."""

    def on_large_failed(self, now: int, file: int, why: str) -> None:
        """The file takes nothing more; once a file."""

    def on_large_read(self, now: int, token: int, data: bytes) -> None:
        """`LargeFiles.read` of that token has its result; fewer bytes than asked for: there are no more."""

    def on_disk_usage(self, now: int, used_fraction: float, free_bytes: int) -> None:
        """How full the disk is: 0.0 to 1.0 used, and bytes that may still be written."""

    def on_reload(self, now: int, config: NodeConfig) -> None:
        """The configuration was read again, and is good."""

    def flush(self, now: int) -> None:
        """Once after each batch of inputs of a loop turn."""

    def flush_answers(self, now: int) -> None:
        """Hands over what is written already; `flush` follows."""

    def leave(self, now: int) -> None:
        """Give everything to another member of the cluster, before `stop`."""

    def stop(self, now: int) -> None:
        """Say goodbye to every peer; the shell closes the connections afterwards."""
