"""What one follower is sent, over one connection: page files, large bodies, then parts of the journal, and so on.

The order keeps a follower from being behind its records: a page file, or a large body that has ended, goes before any
further part of the journal. Each `pump` sends a bounded number of bytes, and none while the connection is blocked: the
rest is read from the disk when it is its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.replication.active.file_changes import FileChanges, OutgoingFiles
from atalanta.cluster.replication.member_codec import (
    LARGE_PART_SIZE,
    FromActive,
    JournalBlock,
    LargeData,
    LargeEnd,
    PageFile,
    StoredFiles,
)
from atalanta.ha.replication.active import Active
from atalanta.ha.replication.block_stream import BlockItem, JumpItem
from atalanta.ha.replication.journal_reader import JournalReader
from atalanta.ha.replication.messages import Answer, Block
from atalanta.kernel.ports import LargeFiles, PageError, Trace
from atalanta.store.block import first_lsn
from atalanta.store.errors import JournalDamaged
from atalanta.store.journal import Journal
from atalanta.store.pages import PageFiles

if TYPE_CHECKING:
    from atalanta.cluster.replication.active.protocol import MemberConnection

# Bytes that a follower is sent in one batch of inputs.
TURN_BYTES: Final = 1 << 20
# Bytes of the journal that are read at a time.
STEP_BYTES: Final = 1 << 18
# A follower that has the end of the stream within this time can be required: it is near the end.
NEAR_NS: Final = 1_000_000_000


class Sources:
    """The sources from which the streams of an active node read."""

    def __init__(
        self,
        journal: Journal,
        changes: FileChanges,
        pages: PageFiles | None,
        large: LargeFiles | None,
        trace: Trace,
    ) -> None:
        self.journal = journal
        self.changes = changes
        self.pages = pages
        self.large = large
        self.trace = trace


class FollowerStream:
    """The stream to one follower, from its welcome to the end of its connection.

    `read_token` is the token of its reads of large bodies. `failed` says why the stream cannot go on, "" before.
    `favoured`: its member is announced as the backup, and is to get the service.
    """

    def __init__(
        self, member: str, connection: MemberConnection, active: Active, sources: Sources
    ) -> None:
        self.member = member
        self.connection = connection
        self.read_token: int = -connection.conn  # those of the broker are above 0
        self.blocked: bool = False
        self.favoured: bool = False
        self.failed: str = ""
        self.unfinished: bool = False
        # A file was sent, and no block behind it: no answer says yet that the file is on the follower's disk.
        self._needs_block: bool = False
        # The last lsn that was sent when nothing was left to send, and when that was; -1 without one.
        self._end: int = -1
        self._end_ns: int = 0
        self._sources = sources
        self._active = active
        self._journal = sources.journal
        self._files: OutgoingFiles | None = None
        self._reader: JournalReader | None = None
        self._reading: int = -1  # the large body that is being read
        self._jumped: bool = False

    def close(self) -> None:
        """Ends the stream; what is being read is dropped."""
        if self._files is not None:
            self._sources.changes.end(self._files)
        self._reading = -1

    # --- the follower's messages ----------------------------------------------------------------------

    def on_files(self, files: StoredFiles) -> None:
        """Begins with the files that the follower lacks, and names all: the others can be deleted."""
        changes = self._sources.changes
        if self._files is not None:
            changes.end(self._files)
        self._files = changes.begin(files)
        self.connection.send(changes.kept())

    @property
    def begun(self) -> bool:
        """Returns whether the follower has named its files: its answers count from then on."""
        return self._files is not None

    def on_answer(self, answer: Answer) -> None:
        """Begins the journal behind what the follower has, with its first answer after its files."""
        if self._reader is not None or self._files is None or answer.epoch != self._active.epoch:
            return
        try:
            self._reader = JournalReader(self._journal, answer.last)
        except (ValueError, OSError, JournalDamaged) as error:
            self.failed = f"the journal cannot be sent from record {answer.last} on: {error}"

    def wants_block(self) -> bool:
        """Returns whether any further block would leave at once, and tell that the files before it have arrived."""
        if not self._needs_block or self.blocked or self._reader is None or self._files is None:
            return False
        return not self._files.holds_journal()

    def has_caught_up(self, now: int, durable: int) -> bool:
        """Returns whether everything was sent a short time ago, or is there still, and the follower has that. Each end
        counts once."""
        if self._end < 0:
            return False
        # With a long lease an idle node asks for the lease, which comes first, seldom.
        recent = now <= self._end_ns + NEAR_NS or self._end >= self._active.last
        if not recent or durable >= self._end:
            self._end = -1
            return recent
        return False

    # --- sending ----------------------------------------------------------------------------------------

    def send(self, message: FromActive) -> None:
        """Sends a message that needs no data of the journal."""
        self.connection.send(message)

    def pump(self, now: int) -> None:
        """Sends as much as one batch of inputs may. `unfinished`: there is more, and the connection takes it."""
        self.unfinished = False
        files = self._files
        if files is None or self.failed:
            return
        try:
            left = TURN_BYTES
            while left > 0 and not self.blocked:
                size = self._send_next(files)
                if size == 0:
                    self._note_end(now)
                    return
                left -= size
            self.unfinished = not self.blocked
        except (OSError, JournalDamaged, ValueError) as error:  # ValueError: a file or block above the largest frame
            self.failed = str(error)

    def _note_end(self, now: int) -> None:
        """Records that nothing is left to send, and that an answer to the last block will say that it has arrived."""
        if self._needs_block:
            return
        if self._reader is not None and self._end < 0 and self._files is not None:
            if not self._files.holds_journal():
                self._end = self._reader.last
                self._end_ns = now

    def _send_next(self, files: OutgoingFiles) -> int:
        """Sends something. Returns its bytes; 0: nothing is left, or a read must end first."""
        if files.overflowed:
            self.failed = "it is behind too many deletions of files: it begins again"
            return 0
        size = 0
        while files.deletions:
            self.connection.send(files.deletions.popleft())
            size += 32
            if size > STEP_BYTES:
                return size
        if files.pages:
            return size + self._send_page(files)
        if self._reading < 0:
            self._read_body(files)
        if not files.ended:
            size += self._send_journal()
        return size

    def _send_page(self, files: OutgoingFiles) -> int:
        """Sends the first page file, unless the follower has it."""
        number = next(iter(files.pages))
        del files.pages[number]
        claim = files.claims.pop(number, None)
        pages = self._sources.pages
        assert pages is not None
        try:
            if claim is not None and claim == pages.stamp(number):
                return 64
            data = pages.content(number)
        except PageError as error:
            # The node itself has no more of it.
            self._sources.trace.event("replica_file_unreadable", {"member": self.member, "why": str(error)})
            return 64
        self.connection.send(PageFile(number, data))
        self._needs_block = True
        return len(data)

    # --- large bodies -------------------------------------------------------------------------------------

    def _read_body(self, files: OutgoingFiles) -> None:
        """Reads the next part of a large body; `on_large_read` follows."""
        file = files.next_body()
        large = self._sources.large
        if file >= 0 and large is not None:
            self._reading = file
            large.read(file, files.bodies[file], LARGE_PART_SIZE, self.read_token)

    def on_large_read(self, data: bytes) -> None:
        """Sends the part of a large body that was read."""
        file = self._reading
        self._reading = -1
        files = self._files
        if file < 0 or files is None:
            return
        body = self._sources.changes.body(file)
        sent = files.bodies.get(file, -1)
        if body is None or sent < 0:
            return  # it was deleted meanwhile
        data = data[: body.written - sent]
        if not data and sent < body.written:
            files.forget_body(file)
            why = f"large message file {file} ends at {sent} of {body.written} bytes"
            self._sources.trace.event("replica_file_unreadable", {"member": self.member, "why": why})
            return
        self.connection.send(LargeData(file, sent, data))
        sent += len(data)
        files.sent(file, body, sent)
        if body.ended and sent >= body.written:
            self.connection.send(LargeEnd(file, sent))
            self._needs_block = True
            files.forget_body(file)

    # --- the journal ----------------------------------------------------------------------------------------

    def _send_journal(self) -> int:
        reader = self._reader
        if reader is None:
            return 0
        size = 0
        for item in reader.take(STEP_BYTES):
            if isinstance(item, BlockItem):
                if self._jumped:
                    self._jumped = False
                    self._active.jump(self.member, first_lsn(item.data))
                block = self._active.block(self.member, item.last).message
                assert isinstance(block, Block)
                self.connection.send(JournalBlock(block, item))
                self._needs_block = False
                size += len(item.data)
            else:
                self._jumped = self._jumped or isinstance(item, JumpItem)
                self.connection.send(item)
                size += 128
        return size
