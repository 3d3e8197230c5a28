"""The inputs of a node: what a shell calls. The ports (kernel/ports.py) are the other direction.

A shell makes each input by its name: `driver.post(NodeInputs.on_closed, number, why)` (runtime/driver.py); the
simulator calls the node itself. A new input is a method here, its override, and the call that makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.ha.register import Register
    from atalanta.kernel.security.directory import DirectoryAnswer
    from atalanta.kernel.security.user_operation import UserAnswer
    from atalanta.kernel.settings.broker_config import StoredSettings
    from atalanta.kernel.settings.configuration_request import ConfigurationAnswer
    from atalanta.wire.core.transport import TransportConfiguration


class NodeInputs:
    """The node as the shell sees it: the active one (node/node.py), and a passive member of a group.

    An input that is not overridden has no effect: a passive member has no clients, users and management, and reads its
    configuration again when it becomes active. All times are integer nanoseconds since the epoch and never decrease
    between calls.
    """

    failed: str | None = None  # set when the node cannot continue; the shell then stops it

    def recover(self, now: int) -> None:
        """Reads the data folder, before any other input; errors name the damaged file and offset."""

    def start(self, now: int) -> None:
        """Starts the node after recovery: timers and connections may begin."""

    def on_accept(
        self,
        now: int,
        conn: int,
        acceptor: str,
        remote: str = "",
        server_name: str | None = None,
        certificate: str = "",
    ) -> None:
        """Reports a connection from `remote` to the named acceptor; `conn` was never used before.

        `server_name` is the TLS server name (SNI) that the client asked for, `certificate` the subject of its
        certificate.
        """

    def on_data(self, now: int, conn: int, data: bytes) -> None:
        """Delivers the next bytes of a connection, in chunks of any size; none after `Wire.close`."""

    def on_closed(self, now: int, conn: int, why: str) -> None:
        """Reports the end of a connection, exactly once per connection, also after `Wire.close`."""

    def on_blocked(self, now: int, conn: int) -> None:
        """Reports that the peer does not read its data: output that can wait should not be written."""

    def on_unblocked(self, now: int, conn: int) -> None:
        """Reports that the peer has read the backlog."""

    def on_hung_up(self, now: int, conn: int) -> None:
        """Reports the end of a peer, or of what it sends, while its connection is paused; at most once for each pause.

        What it has sent before may still be read after `Wire.resume`; `on_closed` follows then.
        """

    def on_dialed(self, now: int, conn: int, key: str) -> None:
        """Reports that `Links.dial` of that key succeeded: `conn` is open."""

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        """Reports that `Links.dial` of that key failed; the shell does not retry."""

    def on_timer(self, now: int, key: str) -> None:
        """Reports that the time of `Timers.set` has come; the timer is removed before this call."""

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        """Delivers one datagram of a multicast group."""

    def on_resolved(self, now: int, key: str, addresses: list[tuple[str, int]], why: str) -> None:
        """Delivers the answer to `Links.resolve` of that key."""

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        """Delivers the answer to `Links.post` of that key."""

    def on_backups(self, now: int, backups: dict[str, TransportConfiguration]) -> None:
        """Reports the backup of this node: its connector for each cluster connection, by the connection's name."""

    def on_committed(self, now: int, token: int) -> None:
        """Reports that the group commit with that token is durable."""

    def on_disk_failed(self, now: int, why: str) -> None:
        """Reports that a write or sync failed; the disk takes no further commits."""

    def on_verified(self, now: int, token: int, ok: bool) -> None:
        """Delivers the result of `Passwords.verify` of that token."""

    def on_looked_up(self, now: int, token: int, answer: DirectoryAnswer) -> None:
        """Delivers the answer to `Directories.look_up` of that token."""

    def on_users(self, now: int, token: int, answer: UserAnswer) -> None:
        """Delivers the answer to `Process.operate_users` of that token."""

    def on_configuration(self, now: int, token: int, answer: ConfigurationAnswer) -> None:
        """Delivers the answer to `Process.operate_configuration` of that token."""

    def on_large_written(self, now: int, file: int, size: int) -> None:
        """Reports that a `LargeFiles.append` of that size is done."""

    def on_large_synced(self, now: int, file: int) -> None:
        """Reports that a `LargeFiles.sync` is done."""

    def on_large_failed(self, now: int, file: int, why: str) -> None:
        """Reports that the file failed and takes no further data; at most once per file."""

    def on_large_read(self, now: int, token: int, data: bytes) -> None:
        """Delivers the result of `LargeFiles.read` of that token; fewer bytes than requested mean the end of the
        file."""

    def on_disk_usage(self, now: int, used_fraction: float, free_bytes: int) -> None:
        """Reports the disk usage: the used fraction, 0.0 to 1.0, and the bytes that may still be written."""

    def on_room(self, now: int, room: bool, name: str = "") -> None:
        """Reports whether the disk has room for new files. Without room only its reserve is left, if any, and the spare
        file `name` does not exist ("": no file is missing)."""

    def on_reload(self, now: int, config: Any) -> None:
        """Applies a configuration (node/config.py: NodeConfig) that was read again and is valid."""

    def on_reload_done(self, now: int, done: Callable[[int, str], None], problem: str) -> None:
        """Reports the end of a reload, with its problem, "" without one, to the one who asked for it."""

    def on_settings_changed(
        self, now: int, token: int, stored: StoredSettings | None, why: str
    ) -> None:
        """Delivers the result of `Process.change_settings`: all stored settings, or None and the reason."""

    def on_register(self, now: int, version: int, register: Register | None) -> None:
        """Delivers the register of the group, as an answer of the RegisterPort."""

    def on_register_uncertain(self, now: int, why: str) -> None:
        """Reports that a request to the RegisterPort has no certain outcome."""

    def may_send(self, now: int) -> bool:
        """Returns whether output to clients may leave now. If not, it stays in its buffers; the shell asks again after
        each batch of inputs. Connections that are exempt (`Wire.exempt`) are not asked about."""
        return True

    def flush(self, now: int) -> None:
        """Writes the node's output; called once after each batch of inputs of an event-loop iteration."""

    def flush_answers(self, now: int) -> None:
        """Writes only the output that exists already; `flush` follows."""

    def leave(self, now: int) -> None:
        """Gives all messages to another member of the cluster, before `stop`."""

    def stop(self, now: int) -> None:
        """Disconnects every peer; the shell closes the connections afterwards."""
