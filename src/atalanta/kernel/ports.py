"""The ports through which a node reaches sockets, files and clocks; a shell implements them.

`runtime/` implements them with sockets, files and clocks, `sim/` with a simulated world, `store/` the journal.
Calls never block, unless a docstring says so, and never call back into the node: each result arrives later as an
input of its own (`node.on_*`). Times are integer nanoseconds since the epoch. The base classes are plain classes
and not Protocols, so that compiled callers reach compiled ports by a direct call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from librt.strings import BytesWriter
from mypy_extensions import mypyc_attr

from atalanta.kernel.command import CurrentCommand
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.kernel.event_record import EventRecord
    from atalanta.kernel.security.directory import DirectoryConfig
    from atalanta.kernel.security.password import StoredPassword
    from atalanta.kernel.security.user_operation import UserOperation
    from atalanta.kernel.settings.configuration_request import ConfigurationRequest
    from atalanta.kernel.settings.settings_change import SettingsChange


class PageError(Exception):
    """A page file cannot be read back."""


def _missing(port: object, method: str) -> NotImplementedError:
    return NotImplementedError(f"{type(port).__name__} does not implement {method}")


@mypyc_attr(allow_interpreted_subclasses=True)
class Wire:
    """The open connections, by the numbers that the shell gave them."""

    def write(self, conn: int, data: bytes) -> None:
        """Queues bytes for the peer; the shell batches them per event-loop iteration.

        A closed or closing connection drops the bytes. `node.on_closed` reports each close.
        """
        raise _missing(self, "Wire.write")

    def pause(self, conn: int) -> None:
        """Stops reading from the peer until `resume`. A shell may leave that out, and deliver the bytes that arrive."""

    def resume(self, conn: int) -> None:
        """Continues to read from the peer."""

    def freed(self) -> None:
        """Records that much memory of input was freed: a shell may give it back to the system."""

    def close(self, conn: int, why: str) -> None:
        """Closes the connection after all earlier writes; `node.on_closed` follows, once per connection."""
        raise _missing(self, "Wire.close")

    def logged_in(self, conn: int) -> None:
        """Records that the peer has logged in: a shell never closes its connection to make room for others."""

    def exempt(self, conn: int) -> None:
        """Records that the connection is one between members of a group: its output leaves also while that of others
        is held (`node.may_send`)."""

    def local_address(self, conn: int) -> str:
        """Returns "host:port" of this end of the connection, "" if the shell does not know it."""
        return ""


@mypyc_attr(allow_interpreted_subclasses=True)
class Timers:
    """The node's timers, at most one pending timer per key."""

    def set(self, key: str, at_ns: int) -> None:
        """Sets the timer: calls `node.on_timer(now, key)` at `at_ns` or later.

        An earlier setting of the key is replaced. A time in the past means as soon as possible, never from within this
        call.
        """
        raise _missing(self, "Timers.set")

    def cancel(self, key: str) -> None:
        """Cancels the timer; does nothing if the timer is not set."""
        raise _missing(self, "Timers.cancel")


@mypyc_attr(allow_interpreted_subclasses=True)
class Links:
    """Connections that the node opens, ports that it listens on, multicast groups, DNS and shared folders."""

    def dial(self, key: str, host: str, port: int) -> None:
        """Opens a connection; `key` is the caller's own name of the attempt.

        Either `node.on_dialed(now, conn, key)` or `node.on_dial_failed(now, key, why)` follows.
        """
        raise _missing(self, "Links.dial")

    def dial_within(self, key: str, host: str, port: int, timeout_ms: int) -> None:
        """Opens a connection like `dial`, with a time limit for the attempt; a shell may leave the limit out."""
        self.dial(key, host, port)

    def dial_secure(
        self, key: str, host: str, port: int, connector: str, timeout_ms: int = -1
    ) -> None:
        """Opens a connection like `dial`, over TLS as configured by the node's connector of that name."""
        raise _missing(self, "Links.dial_secure")

    def join(self, group: str, address: str, port: int, interface: str, local_port: int) -> None:
        """Joins a UDP multicast group to receive its datagrams, which arrive by `node.on_datagram`.

        `address` and `port` are the group's. `interface` is the local address to use ("" = the system's choice),
        `local_port` the port to send from (-1 = any).
        """
        raise _missing(self, "Links.join")

    def join_to_send(
        self, group: str, address: str, port: int, interface: str, local_port: int
    ) -> None:
        """Joins a UDP multicast group like `join`, but only to send: no datagram is received."""
        self.join(group, address, port, interface, local_port)

    def multicast(self, group: str, data: bytes) -> None:
        """Sends one datagram to a joined group. The datagram may get lost, and the sender may receive it too."""
        raise _missing(self, "Links.multicast")

    def resolve(self, key: str, name: str, port: int) -> None:
        """Resolves `name` by DNS: its addresses, each with `port`, or its SRV records if `port` is 0.

        `node.on_resolved(now, key, places, why)` follows: (host, port) of each, sorted; `why` is "" on success.
        """
        raise _missing(self, "Links.resolve")

    def listen(self, key: str, host: str, port: int, port_range: int) -> None:
        """Accepts connections at the first free port from `port` to `port + port_range`; host "" is every address.

        Connections arrive by `node.on_accept(now, conn, key)`. A shell that cannot listen reports that, and tries
        again.
        """
        raise _missing(self, "Links.listen")

    def listening(self, key: str, towards: str) -> str:
        """Returns "host:port" at which those in the network of `towards` (an address) reach the listener of `listen`;
        "" while there is none."""
        return ""

    def unlisten(self, key: str) -> None:
        """Stops accepting connections; does nothing if the node does not listen under the key."""
        raise _missing(self, "Links.unlisten")

    def post(self, key: str, folder: str, name: str, data: bytes) -> None:
        """Writes a file of a shared folder, whole or not at all, then reads all files there with the same name ending.

        `node.on_posted(now, key, files, why)` follows: content by name, sorted; `why` is "" on success.
        Without `data` no file is written.
        """
        raise _missing(self, "Links.post")

    def unpost(self, folder: str, name: str) -> None:
        """Removes the file, if it exists, before the process ends."""
        raise _missing(self, "Links.unpost")

    def leave(self, group: str) -> None:
        """Leaves the group: no more datagrams are received. Does nothing if the group was not joined."""
        raise _missing(self, "Links.leave")


@mypyc_attr(allow_interpreted_subclasses=True)
class Ids:
    """Identifiers and secrets; the simulator draws them from its seed."""

    def uuid(self) -> bytes:
        """Returns 16 bytes in the form of a version-1 UUID, unique across all nodes."""
        raise _missing(self, "Ids.uuid")

    def secret(self, size: int) -> bytes:
        """Returns `size` random bytes that cannot be guessed."""
        raise _missing(self, "Ids.secret")


@mypyc_attr(allow_interpreted_subclasses=True)
class Passwords:
    """The slow part of a login: compares a password with a stored hash, outside the node's own thread."""

    def verify(self, token: int, stored: StoredPassword, password: str) -> None:
        """Starts a comparison; `node.on_verified(now, token, ok)` follows once, never from within this call."""
        raise _missing(self, "Passwords.verify")


@mypyc_attr(allow_interpreted_subclasses=True)
class Directories:
    """The directories (LDAP) that know users, asked outside the node's own thread."""

    def look_up(self, token: int, directory: DirectoryConfig, user: str, password: str | None) -> None:
        """Asks whether the password is the user's, and for his roles; `password` None: for his roles only.

        `node.on_looked_up(now, token, answer)` follows once, never from within this call.
        """
        raise _missing(self, "Directories.look_up")


@mypyc_attr(allow_interpreted_subclasses=True)
class Trace:
    """Counters and events. Code on the message path checks `on` before it builds the fields of an event."""

    on: bool = False
    """True if events of single messages are recorded."""

    def count(self, name: str, n: int = 1) -> None:
        """Adds `n` to the counter `name`."""
        raise _missing(self, "Trace.count")

    def counts(self) -> dict[str, int]:
        """Returns the counters by name."""
        return {}

    def event(self, name: str, fields: dict[str, object]) -> None:
        """Records an event. Event names are stable, because operators search for them."""
        raise _missing(self, "Trace.event")

    def record(self) -> EventRecord | None:
        """Returns the newest events; None if none are kept."""
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class Process:
    """The process that runs the node. This base class has no configuration files and no acceptors."""

    def reload(self, why: str, done: Callable[[int, str], None]) -> None:
        """Reads the configuration files again. BrokerError if there are none.

        `done` is called when they are applied, with the time (ns) and "", or with the reason why they are not.
        """
        raise BrokerError(ILLEGAL_STATE, "this node has no configuration files to reload")

    def change_settings(self, token: int, change: SettingsChange) -> None:
        """Changes the stored settings durably, see `node.on_settings_changed`. BrokerError if none are kept."""
        raise BrokerError(ILLEGAL_STATE, "this node keeps no settings beside its configuration")

    def operate_users(self, token: int, operation: UserOperation) -> None:
        """Lists or changes the users in the files of the configuration. BrokerError if there are none.

        `node.on_users(now, token, answer)` follows once, never from within this call. The change is durable then.
        """
        raise BrokerError(ILLEGAL_STATE, "this node has no files of users")

    def operate_configuration(self, token: int, request: ConfigurationRequest) -> None:
        """Reads or changes the configuration files. BrokerError if there are none.

        `node.on_configuration(now, token, answer)` follows once, never from within this call. What counts now of a
        change was applied before.
        """
        raise BrokerError(ILLEGAL_STATE, "this node has no configuration files that could be changed")

    def start_acceptor(self, name: str) -> None:
        """Opens the acceptor: clients can connect. BrokerError with the reason if it cannot be opened."""
        raise BrokerError(ILLEGAL_STATE, "this node opens no acceptors")

    def stop_acceptor(self, name: str) -> None:
        """Closes the acceptor; open connections stay. BrokerError if it is the last one for CORE."""
        raise BrokerError(ILLEGAL_STATE, "this node closes no acceptors")

    def accept_no_more(self) -> None:
        """Closes the acceptors: new connections are refused."""
        return None

    def stop_later(self, delay_ns: int, why: str) -> None:
        """Stops the node after the delay."""
        return None

    def fail_over(self) -> None:
        """Stops the node soon, so that its backup serves. BrokerError if it has none."""
        raise BrokerError(ILLEGAL_STATE, "this broker has no backup to fail over to")


@mypyc_attr(allow_interpreted_subclasses=True)
class JournalPort:
    """The journal as the kernel uses it: records in one order, each durable some time after `append`."""

    durable: int = 0
    """The highest durable lsn. The value only grows; the node reports it to the kernel by `on_durable(now, lsn)`."""
    last: int = 0
    """The lsn of the last appended record, 0 before the first."""

    def append(self, kind: int, payload: bytes) -> int:
        """Appends a record of `kind` (0..255); returns its lsn (1, 2, 3 …).

        A caller whose reply depends on the record waits until `durable` reaches the lsn.
        JournalFailed if the journal has failed: no later record becomes durable.
        """
        raise _missing(self, "JournalPort.append")

    def append_idle(self, kind: int, payload: bytes) -> int:
        """Appends a record that no reply depends on: it is committed with the next one, or alone a little later."""
        return self.append(kind, payload)

    def hurry(self) -> None:
        """Requests that the next flush commits the appended records, because a reply depends on them."""
        return None

    def begin(self, kind: int) -> BytesWriter:
        """Begins a record without a copy: the caller writes the payload into the returned writer, then calls `end`.

        No other record may be appended before `end`. A record without `end` leaves no trace.
        """
        raise _missing(self, "JournalPort.begin")

    def end(self) -> int:
        """Completes the begun record and returns its lsn. ValueError if the record is larger than allowed."""
        raise _missing(self, "JournalPort.end")

    def forget(self, lsn: int) -> None:
        """Marks a record of the journal's plain kind as obsolete, once per record.

        A file that holds only obsolete records is deleted without being read again.
        """
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class Pages:
    """Page files: each is written once and whole, read block by block, and deleted. Implemented by `store/`."""

    def write(self, number: int, blocks: list[bytes]) -> int:
        """Writes a new file, durable before any journal record appended later; returns its size in bytes."""
        raise _missing(self, "Pages.write")

    def read(self, number: int, block: int) -> bytes:
        """Returns one block as it was written, also while the file is still being written.

        PageError: the file is damaged or missing. OSError: it cannot be read now.
        """
        raise _missing(self, "Pages.read")

    def settled(self, number: int) -> None:
        """Records that the file is durable: the copy that served reads until now can be dropped."""
        raise _missing(self, "Pages.settled")

    def delete(self, number: int) -> None:
        """Deletes the file, if it exists. No durable record may refer to it."""
        raise _missing(self, "Pages.delete")

    def keep(self, number: int) -> None:
        """Renames a damaged file, if it exists, so that no start deletes it and an operator can examine it."""
        raise _missing(self, "Pages.keep")

    def numbers(self) -> list[int]:
        """Returns the numbers of all page files, sorted; for recovery."""
        raise _missing(self, "Pages.numbers")


@mypyc_attr(allow_interpreted_subclasses=True)
class Disk:
    """The files of one journal folder; used by `store/` only.

    `names`, `size`, `read` and `repair` work at once and may block shortly. The others are jobs: they return at once
    and run one after the other, in order. So a commit is durable only together with all jobs before it.
    `on_disk_failed( now, why)` reports a failed job, once, and no job after it runs. After a crash the finished jobs
    are complete, the running one may have written any subset of its pages, and the jobs after it have written nothing.
    """

    def names(self) -> list[str]:
        """Returns the names of all files, sorted, as the finished jobs left them."""
        raise _missing(self, "Disk.names")

    def size(self, name: str) -> int:
        """Returns the length of a file in bytes; OSError if the file does not exist."""
        raise _missing(self, "Disk.size")

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Returns up to `size` bytes that finished jobs wrote; fewer only at the end of the file."""
        raise _missing(self, "Disk.read")

    def repair(self, name: str, offset: int, data: bytes) -> None:
        """Overwrites and syncs before it returns; for recovery only, before the first job. OSError."""
        raise _missing(self, "Disk.repair")

    def create(self, name: str, size: int, head: bytes) -> None:
        """Job: creates a file of `size` bytes, `head` and then zeros, synced along with its folder.

        A file of that name is replaced. After a crash during the job the file may have any length.
        """
        raise _missing(self, "Disk.create")

    def create_spare(self, name: str, size: int, head: bytes) -> None:
        """Job: like `create`, for a file that is not needed yet.

        If the disk has no room, `node.on_room(now, False, name)` follows, the file does not exist, and later jobs run.
        """
        self.create(name, size, head)

    def commit(self, name: str, offset: int, data: bytes, token: int, more: bytes = b"") -> None:
        """Job: overwrites a part of a file with `data` and `more`, and syncs; then `node.on_committed(now, token)`.

        The bytes after that part, up to the next multiple of 4096, may become zeros: a file is committed front to back.
        """
        raise _missing(self, "Disk.commit")

    def delete(self, name: str) -> None:
        """Job: removes the file, if it exists, and syncs the folder: files are removed in the requested order."""
        raise _missing(self, "Disk.delete")

    def recycles(self) -> bool:
        """Returns whether the journal may use its files again (`reuse`) instead of deleting them."""
        return True

    def set_aside(self, name: str, spare_name: str) -> None:
        """Job: renames the file to `spare_name`, like `delete` but kept for `reuse`.

        Nothing happens if an earlier job has deleted it.
        """
        raise _missing(self, "Disk.set_aside")

    def reuse(self, spare_name: str, name: str, head: bytes) -> None:
        """Job: replaces the beginning of a spare file by `head`, syncs, and then renames the file to `name`.

        The bytes after the head stay. A file of the new name is replaced. After a crash during the job the spare may
        have either head, but under the new name only the new one.
        """
        raise _missing(self, "Disk.reuse")


@mypyc_attr(allow_interpreted_subclasses=True)
class LargeFiles:
    """The bodies of large messages, one file each, by a number that is never used twice.

    `files` works at once. All others are jobs: they return at once and run one after the other, in order.
    Bytes of a file are safe only after the answer to its `sync`. A crash may keep any part of the bytes appended since,
    or none, and may keep a deleted file. If writing or syncing a file fails, `node.on_large_failed(now, file, why)`
    follows, once per file. The node continues, but writes no more to that file.
    """

    def files(self) -> dict[int, int]:
        """Returns number -> bytes of every file, as the finished jobs left them; for recovery, may block shortly."""
        raise _missing(self, "LargeFiles.files")

    def create(self, file: int, will_sync: bool) -> None:
        """Job: creates an empty file. `will_sync`: `sync` will follow, so that the port can prepare for it."""
        raise _missing(self, "LargeFiles.create")

    def append(self, file: int, data: bytes) -> None:
        """Job: appends bytes to the file; then `node.on_large_written(now, file, len(data))`."""
        raise _missing(self, "LargeFiles.append")

    def sync(self, file: int) -> None:
        """Job: makes the file and its name durable; then `node.on_large_synced(now, file)`."""
        raise _missing(self, "LargeFiles.sync")

    def rename(self, file: int, number: int) -> None:
        """Job: makes the file durable, and only then gives it this number; then `node.on_large_synced(now, number)`.

        A file of that number is replaced. After a crash during the job either file is there, the new one complete.
        """
        raise _missing(self, "LargeFiles.rename")

    def read(self, file: int, offset: int, size: int, token: int) -> None:
        """Job: reads; then `node.on_large_read(now, token, data)`. Fewer than `size` bytes: no more can be read."""
        raise _missing(self, "LargeFiles.read")

    def damaged(self, file: int) -> None:
        """Records that the content of a file is not what was written."""

    def delete(self, file: int) -> None:
        """Job: removes the file, if it exists."""
        raise _missing(self, "LargeFiles.delete")


class BrokerPorts:
    """The ports of one broker.

    `pages` None: no queue is paged. `large` None: large messages are refused. `close_connection(connection, why)`
    closes a client's connection after the batch of inputs. `command`: tests give one that raises exceptions.
    """

    def __init__(
        self,
        journal: JournalPort,
        timers: Timers,
        ids: Ids,
        trace: Trace,
        pages: Pages | None = None,
        large: LargeFiles | None = None,
        close_connection: Callable[[int, str], None] | None = None,
        command: CurrentCommand | None = None,
    ) -> None:
        self.journal = journal
        self.timers = timers
        self.ids = ids
        self.trace = trace
        self.pages = pages
        self.large = large
        self.close_connection = close_connection
        self.command = CurrentCommand() if command is None else command
