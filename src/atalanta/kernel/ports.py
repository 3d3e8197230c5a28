"""The narrow ports through which a node touches the world; a shell implements them.

`runtime/` implements them with sockets, files and clocks, `sim/` with a virtual world, `store/` the
journal. Calls never block (but where a docstring says so), and never call back into the node:
whatever they lead to arrives later as an input of its own (`node.on_*`). Times are integer
nanoseconds since the epoch. The base classes are plain classes and not Protocols, so that compiled
callers reach compiled ports by a direct call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from librt.strings import BytesWriter
from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.kernel.security.password import StoredPassword


class PageError(Exception):
    """A page file cannot be read back."""


def _missing(port: object, method: str) -> NotImplementedError:
    return NotImplementedError(f"{type(port).__name__} does not implement {method}")


@mypyc_attr(allow_interpreted_subclasses=True)
class Wire:
    """Open connections, by the number the shell gave them."""

    def write(self, conn: int, data: bytes) -> None:
        """Queue bytes for the peer; the shell batches them per loop turn.

        A connection that is gone or closing drops them: `node.on_closed` tells, or was asked for.
        """
        raise _missing(self, "Wire.write")

    def pause(self, conn: int) -> None:
        """Read no more of the peer until `resume`; a shell may leave that out, and deliver what comes."""

    def resume(self, conn: int) -> None:
        """Read on."""

    def close(self, conn: int, why: str) -> None:
        """Close after all that was written before; `node.on_closed` follows, once a connection."""
        raise _missing(self, "Wire.close")


@mypyc_attr(allow_interpreted_subclasses=True)
class Timers:
    """One pending timer a key."""

    def set(self, key: str, at_ns: int) -> None:
        """Call `node.on_timer(now, key)` at `at_ns` or later.

        An earlier setting of the key is replaced. A time that has passed means as soon as possible,
        never from within this call.
        """
        raise _missing(self, "Timers.set")

    def cancel(self, key: str) -> None:
        """Forget the timer; nothing happens when it is not set."""
        raise _missing(self, "Timers.cancel")


@mypyc_attr(allow_interpreted_subclasses=True)
class Links:
    """Connections the node opens by itself, and multicast groups."""

    def dial(self, key: str, host: str, port: int) -> None:
        """Open a connection; `key` is the caller's own name of the attempt.

        Either `node.on_dialed(now, conn, key)` or `node.on_dial_failed(now, key, why)` follows.
        """
        raise _missing(self, "Links.dial")

    def dial_within(self, key: str, host: str, port: int, timeout_ms: int) -> None:
        """As `dial`, with a limit of its own on the attempt; a shell may leave that out."""
        self.dial(key, host, port)

    def dial_secure(
        self, key: str, host: str, port: int, connector: str, timeout_ms: int = -1
    ) -> None:
        """As `dial`, over TLS as the node's own connector of that name describes it."""
        raise _missing(self, "Links.dial_secure")

    def join(self, group: str, address: str, port: int, interface: str, local_port: int) -> None:
        """Receive a UDP multicast group; its datagrams arrive by `node.on_datagram`.

        `address` and `port` are the group's; `interface` is the local address to use ("" = the
        system's choice), `local_port` the port to send from (-1 = any).
        """
        raise _missing(self, "Links.join")

    def join_to_send(
        self, group: str, address: str, port: int, interface: str, local_port: int
    ) -> None:
        """As `join`, but nothing is received."""
        self.join(group, address, port, interface, local_port)

    def multicast(self, group: str, data: bytes) -> None:
        """Send one datagram to a joined group; it may get lost, and may come back to the sender."""
        raise _missing(self, "Links.multicast")

    def resolve(self, key: str, name: str, port: int) -> None:
        """Ask the DNS: the addresses of `name`, each with `port`; or with port 0 its SRV records.

        `node.on_resolved(now, key, places, why)` follows: (host, port) of each, sorted; `why` is "" if that worked.
        """
        raise _missing(self, "Links.resolve")

    def listen(self, key: str, host: str, port: int, port_range: int) -> None:
        """Accept connections at the first free port from `port` to `port + port_range`; "" is every address.

        They arrive by `node.on_accept(now, conn, key)`. A shell tells when it cannot, and tries again.
        """
        raise _missing(self, "Links.listen")

    def unlisten(self, key: str) -> None:
        """Accept no more; nothing happens when it was not listened."""
        raise _missing(self, "Links.unlisten")

    def post(self, key: str, folder: str, name: str, data: bytes) -> None:
        """Write a file of a shared folder, whole or not at all, then read all files there that end alike.

        `node.on_posted(now, key, files, why)` follows: content by name, sorted; `why` is "" if all that worked.
        Without `data` nothing is written.
        """
        raise _missing(self, "Links.post")

    def unpost(self, folder: str, name: str) -> None:
        """Remove the file, if it is there, before the process ends."""
        raise _missing(self, "Links.unpost")

    def leave(self, group: str) -> None:
        """Receive no more datagrams of the group; nothing happens when it was not joined."""
        raise _missing(self, "Links.leave")


@mypyc_attr(allow_interpreted_subclasses=True)
class Ids:
    """Identifiers and secrets; the simulator draws them from its seed."""

    def uuid(self) -> bytes:
        """16 bytes, shaped like a version-1 UUID, never given twice on any node."""
        raise _missing(self, "Ids.uuid")

    def secret(self, size: int) -> bytes:
        """`size` bytes nobody can guess."""
        raise _missing(self, "Ids.secret")


@mypyc_attr(allow_interpreted_subclasses=True)
class Passwords:
    """The slow part of a login: a password against a stored hash, off the node's own thread."""

    def verify(self, token: int, stored: StoredPassword, password: str) -> None:
        """`node.on_verified(now, token, ok)` follows, once a token, never from within this call."""
        raise _missing(self, "Passwords.verify")


@mypyc_attr(allow_interpreted_subclasses=True)
class Trace:
    """Counters and stories. On the message path ask `on` before an event's fields are built."""

    on: bool = False
    """Whether somebody reads events of single messages."""

    def count(self, name: str, n: int = 1) -> None:
        """Add `n` to the counter `name`."""
        raise _missing(self, "Trace.count")

    def event(self, name: str, fields: dict[str, object]) -> None:
        """Something worth a line. Names are stable: people search for them."""
        raise _missing(self, "Trace.event")


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal:
    """The kernel's view of the journal: records in one order, durable some time after `append`."""

    durable: int = 0
    """Highest durable lsn. It only grows; the node tells the kernel by `on_durable(now, lsn)`."""
    last: int = 0
    """Lsn of the last appended record, 0 before the first."""

    def append(self, kind: int, payload: bytes) -> int:
        """Add a record of `kind` (0..255) behind all others; returns its lsn (1, 2, 3 …).

        The lsn must be parked (a reply that depends on it waits for `durable`) or discarded on
        purpose. JournalFailed when the journal has failed: nothing will ever be durable again.
        """
        raise _missing(self, "Journal.append")

    def append_idle(self, kind: int, payload: bytes) -> int:
        """As `append`, but nobody waits for the record: it goes with the next one, or alone a little later."""
        return self.append(kind, payload)

    def hurry(self) -> None:
        """Somebody waits for what was appended: the next flush commits it."""
        return None

    def begin(self, kind: int) -> BytesWriter:
        """As `append`, without a copy: write the payload into what is returned, then call `end`.

        Nothing else may be appended before. What was begun and not ended leaves no trace.
        """
        raise _missing(self, "Journal.begin")

    def end(self) -> int:
        """The record that was begun is complete: its lsn. ValueError if it is larger than a record may be."""
        raise _missing(self, "Journal.end")

    def forget(self, lsn: int) -> None:
        """The record, of the kind the journal knows as plain, is of no use any more: said once for each.

        A file with nothing else in it can go without another look.
        """
        return None


@mypyc_attr(allow_interpreted_subclasses=True)
class Pages:
    """Page files: written once, whole; read block by block; deleted. Implemented by `store/`."""

    def write(self, number: int, blocks: list[bytes]) -> int:
        """A new file, durable before any journal record that is appended from now on; its size in bytes."""
        raise _missing(self, "Pages.write")

    def read(self, number: int, block: int) -> bytes:
        """One block as it was written, at once also while the file is on its way. PageError."""
        raise _missing(self, "Pages.read")

    def settled(self, number: int) -> None:
        """The file is durable: what was kept to read it meanwhile can go."""
        raise _missing(self, "Pages.settled")

    def delete(self, number: int) -> None:
        """The file goes; it must be there, and nothing durable may speak of it."""
        raise _missing(self, "Pages.delete")

    def numbers(self) -> list[int]:
        """All page files there are, sorted; for recovery."""
        raise _missing(self, "Pages.numbers")


@mypyc_attr(allow_interpreted_subclasses=True)
class Disk:
    """The files of one journal folder; used by `store/` only.

    `names`, `size`, `read` and `repair` work at once and may block shortly. The others are jobs: they
    return at once and are done in order, one after the other, so a commit is durable only together
    with all jobs before it. A job that fails is reported by
    `node.on_disk_failed(now, why)`, once, and no job after it is done. After a crash the finished
    jobs stand, the one in work may have left any subset of its pages, those behind it left nothing.
    """

    def names(self) -> list[str]:
        """Names of all files, sorted, as the finished jobs left them."""
        raise _missing(self, "Disk.names")

    def size(self, name: str) -> int:
        """Length of a file in bytes; OSError when it is not there."""
        raise _missing(self, "Disk.size")

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Up to `size` bytes (fewer only at the end of the file) of what finished jobs wrote."""
        raise _missing(self, "Disk.read")

    def repair(self, name: str, offset: int, data: bytes) -> None:
        """Overwrite and sync before returning; for recovery only, before the first job. OSError."""
        raise _missing(self, "Disk.repair")

    def create(self, name: str, size: int, head: bytes) -> None:
        """Job: a new file of `size` bytes, `head` and then zeros, synced along with its folder.

        A file of that name is replaced. A crash in the middle may leave it with any length.
        """
        raise _missing(self, "Disk.create")

    def commit(self, name: str, offset: int, data: bytes, token: int, more: bytes = b"") -> None:
        """Job: overwrite a part of a file with `data` and `more`, and sync; then `node.on_committed(now, token)`.

        What lies behind them up to the next multiple of 4096 may become zeros: a file is committed front to back.
        """
        raise _missing(self, "Disk.commit")

    def delete(self, name: str) -> None:
        """Job: remove the file and sync the folder, so that files vanish in the order asked for."""
        raise _missing(self, "Disk.delete")

    def set_aside(self, name: str, spare_name: str) -> None:
        """Job: as `delete`, but the file stays, under another name, for `reuse`."""
        raise _missing(self, "Disk.set_aside")

    def reuse(self, spare_name: str, name: str, head: bytes) -> None:
        """Job: `head` replaces the beginning of a file that was set aside; when that is synced it gets its new name.

        Behind the head is what was there before. A crash in the middle may leave it with either head, but under
        the new name only with the new one.
        """
        raise _missing(self, "Disk.reuse")


@mypyc_attr(allow_interpreted_subclasses=True)
class LargeFiles:
    """The bodies of large messages, one file each, by a number that is never used twice.

    `files` works at once. All others are jobs: they return at once and are done in order, one after the other.
    Nothing of a file is safe before its `sync` was answered; a crash may leave any part of what was appended
    since, also nothing, and may leave a deleted file there. When writing or syncing a file fails,
    `node.on_large_failed(now, file, why)` follows, once a file, and nothing more is written to it: the node goes on.
    """

    def files(self) -> dict[int, int]:
        """Number -> bytes of every file, as the finished jobs left them; for recovery, may block shortly."""
        raise _missing(self, "LargeFiles.files")

    def create(self, file: int, will_sync: bool) -> None:
        """Job: a new, empty file. `will_sync`: `sync` is going to follow, so that it may be prepared."""
        raise _missing(self, "LargeFiles.create")

    def append(self, file: int, data: bytes) -> None:
        """Job: write behind what is there; then `node.on_large_written(now, file, len(data))`."""
        raise _missing(self, "LargeFiles.append")

    def sync(self, file: int) -> None:
        """Job: the file, and its name, survive a crash; then `node.on_large_synced(now, file)`."""
        raise _missing(self, "LargeFiles.sync")

    def read(self, file: int, offset: int, size: int, token: int) -> None:
        """Job: `node.on_large_read(now, token, data)`; fewer than `size` bytes: more cannot be read."""
        raise _missing(self, "LargeFiles.read")

    def delete(self, file: int) -> None:
        """Job: remove the file, if it is there."""
        raise _missing(self, "LargeFiles.delete")


class BrokerPorts:
    """The ports of one broker.

    `pages` None: nothing is paged; `large` None: large messages are refused. `close_connection(connection, why)` ends a
    client's connection after the batch of inputs.
    """

    def __init__(
        self,
        journal: Journal,
        timers: Timers,
        ids: Ids,
        trace: Trace,
        pages: Pages | None = None,
        large: LargeFiles | None = None,
        close_connection: Callable[[int, str], None] | None = None,
    ) -> None:
        self.journal = journal
        self.timers = timers
        self.ids = ids
        self.trace = trace
        self.pages = pages
        self.large = large
        self.close_connection = close_connection
