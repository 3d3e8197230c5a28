"""Bodies of large messages: files that exist as long as anything refers to them.

A body is held by its sender until the message is published, by every reference to a message or a copy of it, and by
every delivery in progress. When nothing holds the body any more, its file is deleted as soon as the records that ended
the last reference are durable. Messages of open transactions hold nothing: a timer searches the transactions for their
bodies. docs/internals/decisions/0006-large-messages.md describes which record is written when.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from google_crc32c import extend
from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

if TYPE_CHECKING:
    from atalanta.kernel.ports import LargeFiles, Trace

# Bytes on their way to the file of one sender, and of all senders, above which no more is read of a sender.
UNWRITTEN_BYTES_MAX: Final = 1 << 20
ALL_UNWRITTEN_BYTES_MAX: Final = 64 << 20
OPEN_TIMER: Final = "kernel.large"
OPEN_LOOK_NS: Final = 1_000_000_000  # how often open transactions are searched for bodies


@mypyc_attr(allow_interpreted_subclasses=True)
class LargeWriter:
    """The sender of a body."""

    def written(self, now: int) -> None:
        """Handles that some of the appended bytes are in the file."""
        raise NotImplementedError

    def synced(self, now: int) -> None:
        """Handles that the body survives a crash."""
        raise NotImplementedError

    def failed(self, now: int, why: str) -> None:
        """Handles a failed write of the file."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class LargeReader:
    """The reader of a part of a body."""

    def read(self, now: int, data: bytes) -> None:
        """Handles the requested bytes; fewer if the file is damaged."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class LargeStream(LargeReader):
    """A body on its way to a consumer, which gets no other message meanwhile."""

    def pump(self) -> None:
        """Continues after new credit, or after the connection takes data again."""
        raise NotImplementedError

    def abort(self) -> None:
        """Aborts the delivery of the rest."""
        raise NotImplementedError


def next_crc(crc: int, data: bytes) -> int:
    """Returns the crc32c of what `crc` stands for and then `data`; 0 stands for nothing."""
    found: int = extend(crc, data)
    return found


class LargeBody:
    """A body. `holders`: number of references to it; `unwritten`: bytes on their way to the file.

    `synced`: the whole body survives a crash.
    """

    def __init__(self, file: int, writer: LargeWriter | None) -> None:
        self.file = file
        self.writer = writer
        self.size: int = 0
        self.crc: int = 0  # crc32c of the content
        self.holders: int = 0
        self.unwritten: int = 0
        self.failed: str = ""
        self.synced: bool = False
        self.in_transaction: bool = False  # perhaps of an open transaction, the only holder
        self.released: bool = False  # waits for the end of the batch of inputs


class LargeBodies:
    """The bodies of a node by file number. `files` None: the node has no folder for large messages."""

    def __init__(self, trace: Trace, files: LargeFiles | None) -> None:
        self.trace = trace
        self.files = files
        self.bodies: dict[int, LargeBody] = {}
        self.unwritten: int = 0
        self.readers: dict[int, LargeReader] = {}
        self.syncs: dict[int, list[LargeWriter]] = {}  # which wait for the sync of a complete body, by file
        self.next_token: int = 1
        self.released: list[LargeBody] = []
        # Bodies without a holder: deleted when the lsn is durable.
        self.leaving: deque[tuple[int, LargeBody]] = deque()
        self.open: dict[int, LargeBody] = {}
        self.found: dict[int, int] = {}  # during recovery

    # -- writing --------------------------------------------------------------------------------
    def create(self, file: int, will_sync: bool, writer: LargeWriter) -> LargeBody:
        """Creates a body, held by its writer. BrokerError if the node has no folder for large messages."""
        if self.files is None:
            raise BrokerError(ILLEGAL_STATE, "this node has no folder for large messages")
        body = LargeBody(file, writer)
        body.holders = 1
        self.bodies[file] = body
        self.files.create(file, will_sync)
        return body

    def append(self, body: LargeBody, data: bytes) -> None:
        body.size += len(data)
        body.crc = next_crc(body.crc, data)
        if self.files is not None and data and not body.failed:
            body.unwritten += len(data)
            self.unwritten += len(data)
            self.files.append(body.file, data)

    def too_much(self, body: LargeBody) -> bool:
        """Returns true if the disk does not keep up with the sender."""
        return (
            body.unwritten > UNWRITTEN_BYTES_MAX
            or self.unwritten > ALL_UNWRITTEN_BYTES_MAX
            and body.unwritten > 0
        )

    def sync(self, body: LargeBody) -> None:
        if self.files is not None:
            self.files.sync(body.file)

    def sync_for(self, body: LargeBody, waiting: LargeWriter) -> None:
        """Syncs a complete body that has not failed; `waiting.synced` or `failed` follows in a later input."""
        others = self.syncs.get(body.file)
        if others is None:
            self.syncs[body.file] = [waiting]
            self.sync(body)
        else:
            others.append(waiting)

    def on_written(self, now: int, file: int, size: int) -> None:
        body = self.bodies.get(file)
        if body is None or body.failed:
            return
        body.unwritten -= size
        self.unwritten -= size
        if body.writer is not None:
            body.writer.written(now)

    def on_synced(self, now: int, file: int) -> None:
        body = self.bodies.get(file)
        if body is None or body.failed:
            return
        body.synced = True
        if body.writer is not None:
            body.writer.synced(now)
        for waiting in self.syncs.pop(file, []):
            waiting.synced(now)

    def on_failed(self, now: int, file: int, why: str) -> None:
        body = self.bodies.get(file)
        self.trace.event("large_message_write_failed", {"file": file, "why": why})
        if body is None or body.failed:
            return
        body.failed = why
        self.unwritten -= body.unwritten
        body.unwritten = 0
        if body.writer is not None:
            body.writer.failed(now, why)
        for waiting in self.syncs.pop(file, []):
            waiting.failed(now, why)

    # -- reading --------------------------------------------------------------------------------
    def read(self, body: LargeBody, offset: int, size: int, reader: LargeReader) -> int:
        """Starts a read; `reader.read` follows in a later input. Returns the token for `cancel`."""
        token = self.next_token
        self.next_token = token + 1
        self.readers[token] = reader
        if self.files is not None:
            self.files.read(body.file, offset, size, token)
        return token

    def cancel(self, token: int) -> None:
        self.readers.pop(token, None)

    def on_read(self, now: int, token: int, data: bytes) -> None:
        reader = self.readers.pop(token, None)
        if reader is not None:
            reader.read(now, data)

    # -- holding --------------------------------------------------------------------------------
    def hold(self, body: LargeBody, count: int) -> None:
        body.holders += count
        if body.in_transaction:
            body.in_transaction = False
            self.open.pop(body.file, None)
        if body.holders == 0 and not body.released:
            body.released = True  # no queue took the message
            self.released.append(body)

    def borrow(self, body: LargeBody) -> None:
        """Adds a reader as a holder, which releases the body; an open transaction, or one in doubt, keeps it."""
        body.holders += 1

    def release(self, body: LargeBody) -> None:
        """Removes a holder; a body without holders at the end of the batch of inputs is deleted."""
        body.holders -= 1
        if body.holders == 0 and not body.released:
            body.released = True
            self.released.append(body)

    def keep_open(self, body: LargeBody) -> None:
        """Keeps the body for a transaction in doubt, at recovery."""
        if body.holders == 0:
            body.in_transaction = True
            self.open[body.file] = body

    def settle(self, lsn: int, durable: int) -> bool:
        """Ends a batch of inputs; `lsn`: the last record. Returns true if transactions must be searched later."""
        released = self.released
        self.released = []
        waits = False
        for body in released:
            body.released = False
            if body.holders > 0:
                continue
            if body.in_transaction:
                waits = waits or not self.open
                self.open[body.file] = body
            else:
                self.leaving.append((lsn, body))
        self.on_durable(durable)
        return waits

    def on_durable(self, lsn: int) -> None:
        leaving = self.leaving
        while leaving and leaving[0][0] <= lsn:
            _, body = leaving.popleft()
            if body.holders == 0:
                self._delete(body)

    def forget_unused(self, used: dict[int, bool], lsn: int) -> None:
        """Deletes, when `lsn` is durable, open bodies not in `used`: the files of messages in open transactions."""
        for body in list(self.open.values()):
            if body.file not in used:
                body.in_transaction = False
                del self.open[body.file]
                self.leaving.append((lsn, body))

    def _delete(self, body: LargeBody) -> None:
        self.unwritten -= body.unwritten
        body.unwritten = 0
        body.writer = None
        self.bodies.pop(body.file, None)
        if self.files is not None:
            self.files.delete(body.file)

    # -- recovery -------------------------------------------------------------------------------
    def begin_recovery(self) -> None:
        if self.files is not None:
            self.found = self.files.files()

    def restored(self, file: int, size: int, crc: int) -> LargeBody | None:
        """Returns the body that a record names; None if its file is missing or too short."""
        body = self.bodies.get(file)
        if body is None:
            if self.found.get(file, -1) < size:
                return None
            body = LargeBody(file, None)
            body.size = size
            body.crc = crc
            body.synced = True
            self.bodies[file] = body
        return body

    def damaged(self, file: int, size: int, message_id: int, queues: str, found: int = -1) -> None:
        """Reports, once per message, a damaged file: the message cannot be delivered, and is left out.

        `found`: the bytes that were read; -1: what the recovery has found.
        """
        if found < 0:
            found = max(self.found.get(file, 0), 0)
        self.trace.event(
            "large_message_damaged",
            {
                "message": message_id,
                "queues": queues,
                "file": file,
                "bytes": size,
                "bytes_found": found,
            },
        )
        if self.files is not None:
            self.files.damaged(file)

    def end_recovery(self) -> None:
        """Deletes files that no record names: their senders got no reply, or their messages are finished."""
        orphans = 0
        for file in sorted(self.found):
            body = self.bodies.get(file)
            if body is not None and (body.holders > 0 or body.in_transaction):
                continue
            self.bodies.pop(file, None)
            orphans += 1
            if self.files is not None:
                self.files.delete(file)
        self.found = {}
        if orphans:
            self.trace.event("large_message_orphans_deleted", {"files": orphans})
