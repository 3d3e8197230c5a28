"""Bodies of large messages: files that live as long as anything refers to them.

A body is held by its sender until the message is published, by every reference to a message or a copy of it, and by
every delivery in progress. When nothing holds it any more, its file goes as soon as the records that ended the last
reference are durable. Messages of open transactions hold nothing: their bodies are looked for in the transactions from
time to time. docs/internals/decisions/0006-large-messages.md says what is written when.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

if TYPE_CHECKING:
    from atalanta.kernel.ports import LargeFiles, Trace

# Chunks that a sender may have on their way to its file, and all senders together, before no more is read of it.
UNWRITTEN_BYTES_MAX: Final = 1 << 20
ALL_UNWRITTEN_BYTES_MAX: Final = 64 << 20
OPEN_TIMER: Final = "kernel.large"
OPEN_LOOK_NS: Final = 1_000_000_000  # how often bodies are looked for in open transactions


@mypyc_attr(allow_interpreted_subclasses=True)
class LargeWriter:
    """Who brings a body."""

    def written(self, now: int) -> None:
        """Some of what was appended is in the file."""
        raise NotImplementedError

    def synced(self, now: int) -> None:
        """The body survives a crash."""
        raise NotImplementedError

    def failed(self, now: int, why: str) -> None:
        """The file cannot be written."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class LargeReader:
    """Who gets a part of a body."""

    def read(self, now: int, data: bytes) -> None:
        """What was asked for; fewer bytes when the file is damaged."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class LargeStream(LargeReader):
    """A body on its way to a consumer, which gets nothing else meanwhile."""

    def pump(self) -> None:
        """There may be credit, or room on the connection, again."""
        raise NotImplementedError

    def abort(self) -> None:
        """The rest is not wanted any more."""
        raise NotImplementedError


class LargeBody:
    """`holders` counts what refers to it; `unwritten` are bytes on their way to the file."""

    def __init__(self, file: int, writer: LargeWriter | None) -> None:
        self.file = file
        self.writer = writer
        self.size: int = 0
        self.holders: int = 0
        self.unwritten: int = 0
        self.failed: str = ""
        self.in_transaction: bool = False  # of an open one, perhaps: nothing else holds it
        self.released: bool = False  # waits for the end of the turn


class LargeBodies:
    """All bodies of a node by file number. `files` None: the node has no folder for them."""

    def __init__(self, trace: Trace, files: LargeFiles | None) -> None:
        self.trace = trace
        self.files = files
        self.bodies: dict[int, LargeBody] = {}
        self.unwritten: int = 0
        self.readers: dict[int, LargeReader] = {}
        self.next_token: int = 1
        self.released: list[LargeBody] = []
        # Nothing holds them: they go when the lsn is durable.
        self.leaving: deque[tuple[int, LargeBody]] = deque()
        self.open: dict[int, LargeBody] = {}
        self.found: dict[int, int] = {}  # during recovery

    # -- writing --------------------------------------------------------------------------------
    def create(self, file: int, will_sync: bool, writer: LargeWriter) -> LargeBody:
        """A new body, held by its writer. BrokerError when the node has no place for files."""
        if self.files is None:
            raise BrokerError(ILLEGAL_STATE, "this node has no folder for large messages")
        body = LargeBody(file, writer)
        body.holders = 1
        self.bodies[file] = body
        self.files.create(file, will_sync)
        return body

    def append(self, body: LargeBody, data: bytes) -> None:
        body.size += len(data)
        if self.files is not None and data and not body.failed:
            body.unwritten += len(data)
            self.unwritten += len(data)
            self.files.append(body.file, data)

    def too_much(self, body: LargeBody) -> bool:
        """The disk does not keep up with the sender."""
        return (
            body.unwritten > UNWRITTEN_BYTES_MAX
            or self.unwritten > ALL_UNWRITTEN_BYTES_MAX
            and body.unwritten > 0
        )

    def sync(self, body: LargeBody) -> None:
        if self.files is not None:
            self.files.sync(body.file)

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
        if body is not None and body.writer is not None and not body.failed:
            body.writer.synced(now)

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

    # -- reading --------------------------------------------------------------------------------
    def read(self, body: LargeBody, offset: int, size: int, reader: LargeReader) -> int:
        """`reader.read` follows, from an input of its own; returns the token that `cancel` takes."""
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
            body.released = True  # no queue took it
            self.released.append(body)

    def borrow(self, body: LargeBody) -> None:
        """A reader that releases it again; an open transaction, or one in doubt, goes on having it."""
        body.holders += 1

    def release(self, body: LargeBody) -> None:
        """One holder less; what nobody holds at the end of the turn goes."""
        body.holders -= 1
        if body.holders == 0 and not body.released:
            body.released = True
            self.released.append(body)

    def keep_open(self, body: LargeBody) -> None:
        """At a restart: a transaction in doubt has it."""
        if body.holders == 0:
            body.in_transaction = True
            self.open[body.file] = body

    def settle(self, lsn: int, durable: int) -> bool:
        """End of a turn: `lsn` is that of the last record. True if transactions must be looked at later."""
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
        """`used`: files of messages in open transactions; the other open ones have lost theirs."""
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

    def restored(self, file: int, size: int) -> LargeBody | None:
        """The body that a record names; None when its file is not (wholly) there."""
        body = self.bodies.get(file)
        if body is None:
            if self.found.get(file, -1) < size:
                return None
            body = LargeBody(file, None)
            body.size = size
            self.bodies[file] = body
        return body

    def damaged(self, file: int, size: int, message_id: int, queues: str) -> None:
        """Told, once a message: it cannot be delivered, and is left out."""
        self.trace.event(
            "large_message_damaged",
            {
                "message": message_id,
                "queues": queues,
                "file": file,
                "bytes": size,
                "bytes_found": max(self.found.get(file, 0), 0),
            },
        )

    def end_recovery(self) -> None:
        """Files that no record names go: their senders never got an answer, or their messages are finished."""
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
