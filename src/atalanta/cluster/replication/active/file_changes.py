"""The files of an active node beside its journal: page files and large bodies, and which of them followers lack.

`ReplicatedPages` and `ReplicatedLargeFiles` stand before the node's own ports and report each change to `FileChanges`,
which knows all files. A follower's `OutgoingFiles` has the numbers of what it must still get, in bounded memory: the
content is read again from the disk.

A follower must never be behind the records that it has. So an `OutgoingFiles` says whether journal parts must wait:
for every page file that exists, and for every large body that has ended. A body that still grows is sent early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from atalanta.cluster.replication.member_codec import (
    LARGE_FILE,
    PAGE_FILE,
    FileDeletion,
    KeptFiles,
    StoredFiles,
)
from atalanta.kernel import ports
from atalanta.kernel.ports import PageError
from atalanta.store.pages import PageFiles, page_name

# Why, the name of the file, and the function that removes it.
OnDamaged: TypeAlias = Callable[[str, str, Callable[[], None]], None]
# Deletions that wait for a follower. One that is further behind begins a new stream, which names all files.
DELETIONS_MAX: Final = 100_000


class Body:
    """A large body at the active node: `written` bytes are in its file. `ended`: all are, and survive a crash."""

    def __init__(self, written: int, ended: bool, kept: bool) -> None:
        self.written = written
        self.ended = ended
        self.kept = kept  # it will survive a crash: of a durable message, or synced


class OutgoingFiles:
    """The files that one follower lacks, or may lack.

    `claims` are those that it has, with size and checksum: they are compared when it is their turn.
    """

    def __init__(self) -> None:
        self.pages: dict[int, bool] = {}
        self.claims: dict[int, tuple[int, int]] = {}
        self.bodies: dict[int, int] = {}  # bytes sent, of bodies that are not complete at the follower
        self.ended: dict[int, bool] = {}  # of these, the bodies that have ended
        self.grown: dict[int, bool] = {}  # of these, others with bytes to send
        self.deletions: deque[FileDeletion] = deque()
        self.overflowed: bool = False

    def holds_journal(self) -> bool:
        """Returns whether files must be sent before further parts of the journal."""
        return bool(self.pages) or bool(self.ended)

    def next_body(self) -> int:
        """Returns a body of which something is to be sent, those that hold the journal first; -1 without any."""
        for file in self.ended:
            return file
        for file in self.grown:
            return file
        return -1

    # --- changes at the active node -----------------------------------------------------------------

    def add_page(self, number: int) -> None:
        """Adds a page file."""
        self.pages[number] = True

    def add_body(self, file: int, body: Body) -> None:
        """Adds a large body, from its beginning."""
        self.bodies[file] = 0
        self.note(file, body)

    def note(self, file: int, body: Body) -> None:
        """Records that a body has grown, or ended."""
        sent = self.bodies.get(file, -1)
        if sent < 0:
            return
        if body.ended:
            self.grown.pop(file, None)
            self.ended[file] = True
        elif body.written > sent:
            self.grown[file] = True

    def sent(self, file: int, body: Body, size: int) -> None:
        """Records that the first `size` bytes of a body were sent."""
        self.bodies[file] = size
        if size >= body.written:
            self.grown.pop(file, None)

    def forget_body(self, file: int) -> None:
        """Removes a body: it is complete at the follower, or gone."""
        self.bodies.pop(file, None)
        self.ended.pop(file, None)
        self.grown.pop(file, None)

    def delete(self, deletion: FileDeletion) -> None:
        """Adds a deletion; the file need not be sent any more."""
        if deletion.kind == PAGE_FILE:
            self.pages.pop(deletion.number, None)
            self.claims.pop(deletion.number, None)
        else:
            self.forget_body(deletion.number)
        if len(self.deletions) >= DELETIONS_MAX:
            self.overflowed = True
        else:
            self.deletions.append(deletion)


class FileChanges:
    """The page files and large bodies of an active node, and the followers that are told about each change."""

    def __init__(self, journal: ports.JournalPort) -> None:
        self.journal = journal
        self.pages: dict[int, bool] = {}
        self.bodies: dict[int, Body] = {}
        self.outgoing: list[OutgoingFiles] = []

    def begin(self, stored: StoredFiles) -> OutgoingFiles:
        """Returns what a follower with these files lacks."""
        made = OutgoingFiles()
        made.pages = dict(self.pages)
        made.claims = {
            number: (size, checksum) for number, size, checksum in stored.pages if number in self.pages
        }
        bodies = dict(stored.large)
        for file, body in self.bodies.items():
            # A body that still grows begins again: what the follower has of it may not have survived a crash.
            if body.kept and not (body.ended and bodies.get(file, -1) == body.written):
                made.add_body(file, body)
        self.outgoing.append(made)
        return made

    def kept(self) -> KeptFiles:
        """Returns all files as a follower must keep them."""
        bodies = [file for file, body in self.bodies.items() if body.kept]
        return KeptFiles(self.journal.durable, tuple(self.pages), tuple(bodies))

    def body(self, file: int) -> Body | None:
        """Returns a large body, None if it is gone."""
        return self.bodies.get(file)

    def end(self, outgoing: OutgoingFiles) -> None:
        """Ends the reports to a follower."""
        self.outgoing = [each for each in self.outgoing if each is not outgoing]

    # --- page files -----------------------------------------------------------------------------------

    def found_pages(self, numbers: list[int]) -> None:
        """Records the page files that exist at the start."""
        self.pages = dict.fromkeys(numbers, True)

    def page_written(self, number: int) -> None:
        """Records a new page file; the record that names it follows."""
        self.pages[number] = True
        for each in self.outgoing:
            each.add_page(number)

    def page_deleted(self, number: int) -> None:
        """Records that a page file goes: the record that makes it unneeded is confirmed."""
        if self.pages.pop(number, False):
            self._delete(FileDeletion(PAGE_FILE, number, self.journal.durable))

    # --- large bodies -----------------------------------------------------------------------------------

    def found_bodies(self, sizes: dict[int, int]) -> None:
        """Records the large bodies that exist at the start; recovery deletes those that it does not need."""
        self.bodies = {file: Body(size, True, True) for file, size in sizes.items()}

    def body_created(self, file: int, kept: bool) -> None:
        """Records a new large body."""
        body = Body(0, False, kept)
        self.bodies[file] = body
        if kept:
            self._add(file, body)

    def body_written(self, file: int, size: int) -> None:
        """Records that `size` further bytes of a body are in its file."""
        body = self.bodies.get(file)
        if body is not None:
            body.written += size
            for each in self.outgoing:
                each.note(file, body)

    def body_syncs(self, file: int) -> None:
        """Records that a body will survive a crash, also that of a message that is not durable."""
        body = self.bodies.get(file)
        if body is not None and not body.kept:
            body.kept = True
            self._add(file, body)

    def body_synced(self, file: int) -> None:
        """Records the end of a body; the record that names it follows."""
        body = self.bodies.get(file)
        if body is not None:
            body.ended = True
            for each in self.outgoing:
                each.note(file, body)

    def body_deleted(self, file: int) -> None:
        """Records that a body goes: the record that makes it unneeded is confirmed, or it has none."""
        body = self.bodies.pop(file, None)
        if body is not None and body.kept:
            self._delete(FileDeletion(LARGE_FILE, file, self.journal.durable))

    def _add(self, file: int, body: Body) -> None:
        for each in self.outgoing:
            each.add_body(file, body)

    def _delete(self, deletion: FileDeletion) -> None:
        for each in self.outgoing:
            each.delete(deletion)


class ReplicatedPages(ports.Pages):
    """The Pages port of an active node: reports each change. `on_damaged` gets what a file that cannot be read is
    called, and the function that removes it here only."""

    def __init__(self, files: PageFiles, changes: FileChanges, on_damaged: OnDamaged) -> None:
        self.files = files
        self.changes = changes
        self.on_damaged = on_damaged

    def write(self, number: int, blocks: list[bytes]) -> int:
        """Implements Pages.write."""
        size = self.files.write(number, blocks)
        self.changes.page_written(number)
        return size

    def read(self, number: int, block: int) -> bytes:
        """Implements Pages.read."""
        try:
            return self.files.read(number, block)
        except PageError as error:
            self.on_damaged(str(error), page_name(number), lambda: self.files.keep(number))
            raise

    def settled(self, number: int) -> None:
        """Implements Pages.settled."""
        self.files.settled(number)

    def delete(self, number: int) -> None:
        """Implements Pages.delete."""
        self.files.delete(number)
        self.changes.page_deleted(number)

    def keep(self, number: int) -> None:
        """Implements Pages.keep."""
        self.files.keep(number)
        self.changes.page_deleted(number)

    def numbers(self) -> list[int]:
        """Implements Pages.numbers: recovery asks once, before its first deletion."""
        found = self.files.numbers()
        self.changes.found_pages(found)
        return found


class ReplicatedLargeFiles(ports.LargeFiles):
    """The LargeFiles port of an active node: reports each change. The node reports the answers. `on_damaged` as for
    page files."""

    def __init__(self, port: ports.LargeFiles, changes: FileChanges, on_damaged: OnDamaged) -> None:
        self.port = port
        self.changes = changes
        self.on_damaged = on_damaged

    def files(self) -> dict[int, int]:
        """Implements LargeFiles.files: recovery asks once, before its first deletion."""
        found = self.port.files()
        self.changes.found_bodies(found)
        return found

    def create(self, file: int, will_sync: bool) -> None:
        """Implements LargeFiles.create."""
        self.port.create(file, will_sync)
        self.changes.body_created(file, will_sync)

    def append(self, file: int, data: bytes) -> None:
        """Implements LargeFiles.append."""
        self.port.append(file, data)

    def sync(self, file: int) -> None:
        """Implements LargeFiles.sync."""
        self.port.sync(file)
        self.changes.body_syncs(file)

    def read(self, file: int, offset: int, size: int, token: int) -> None:
        """Implements LargeFiles.read."""
        self.port.read(file, offset, size, token)

    def damaged(self, file: int) -> None:
        """Implements LargeFiles.damaged."""
        name = f"large message file {file}"
        self.on_damaged(f"{name} is damaged", name, lambda: self.port.delete(file))

    def delete(self, file: int) -> None:
        """Implements LargeFiles.delete."""
        self.port.delete(file)
        self.changes.body_deleted(file)
