"""`atalanta data compare`: the folders of two members of a group, block by block."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import typer

from atalanta.cli.data.folder import ReadOnlyDisk, find_folders
from atalanta.cli.output.outcome import FAILED, Refused, reported
from atalanta.ha.replication.block_stream import BlockName, blocks_of
from atalanta.kernel.ports import PageError
from atalanta.runtime.disk.data_folder import NODE_ID_NAME, read_node_id
from atalanta.runtime.disk.folder_lock import DataFolderError, is_locked
from atalanta.runtime.ha.group.member_folder import read_member
from atalanta.runtime.process.exit_codes import BAD_DATA
from atalanta.store.config import JournalConfig
from atalanta.store.pages import PageFiles
from atalanta.store.recovery import JournalRecovery
from atalanta.store.recovery_report import RecoveryReport
from atalanta.survey.texts import counted


class NoReplay:
    """A recovery whose records nobody needs."""

    def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
        """Implements Replay.on_record."""


class MemberData:
    """The journal and the page files of one member. JournalDamaged, JournalForeign; DataFolderError if it runs."""

    def __init__(self, place: Path) -> None:
        self.folder, pages, _ = find_folders(place)
        if is_locked(self.folder):
            raise DataFolderError(f"{self.folder}: a node uses it; stop that node")
        node_id = read_node_id(self.folder)
        if node_id is None:
            raise Refused(f"{self.folder / NODE_ID_NAME} is missing", BAD_DATA)
        self.node_id = node_id
        self.member = read_member(self.folder) or str(self.folder)
        self.disk = ReadOnlyDisk(self.folder, pages / str(node_id))
        self.pages = PageFiles(self.disk, node_id.bytes)
        reading = JournalRecovery(self.disk, JournalConfig(journal_id=node_id.bytes), NoReplay())
        reading.read()
        self.report: RecoveryReport = reading.state.report
        self._segments = reading.state.segments

    def blocks(self) -> dict[int, BlockName]:
        """Returns the names of all blocks, by their first record."""
        found: dict[int, BlockName] = {}
        for segment in self._segments:
            data = self.disk.read(segment.name, 0, segment.end)
            found |= {block.first: block for block in blocks_of(segment, data)}
        return found

    def stamps(self) -> dict[int, tuple[int, int] | None]:
        """Returns size and checksum of each page file; None if a block of it is damaged."""
        found: dict[int, tuple[int, int] | None] = {}
        for number in self.pages.numbers():
            try:
                self.pages.check(number)
                found[number] = self.pages.stamp(number)
            except PageError:
                found[number] = None
        return found


@dataclass
class FolderComparison:
    """The common content of two members. The journals are equal from record `first` to record `equal_through`.

    `only_first` and `only_second` are records behind it. `different_pages` are the numbers of page files that are not
    equal; those of one member only are no difference: a follower gets them later, and deletes them later.
    """

    members: list[str]
    first: int
    equal_through: int
    blocks: int
    only_first: int
    only_second: int
    pages: int
    different_pages: list[int]


def compare(one: MemberData, other: MemberData) -> FolderComparison:
    """Compares two members of one group. Refused (65) if they are of different ones."""
    if one.node_id != other.node_id:
        raise Refused(f"{one.folder} is of node {one.node_id}, {other.folder} of node {other.node_id}", BAD_DATA)
    mine, theirs = one.blocks(), other.blocks()
    first = max(min(mine, default=0), min(theirs, default=0))
    through, blocks = first - 1, 0
    for lsn in sorted(mine):
        if lsn < first:
            continue
        if theirs.get(lsn) != mine[lsn]:
            break
        through = mine[lsn].last
        blocks += 1
    stamps, others = one.stamps(), other.stamps()
    common = [number for number in stamps if number in others]
    different = [number for number in common if stamps[number] != others[number] or stamps[number] is None]
    return FolderComparison(
        [one.member, other.member], first, max(through, 0), blocks,
        one.report.last - through, other.report.last - through, len(common), different,
    )  # fmt: skip


def run_compare(first: Path, second: Path, json_output: bool) -> None:
    """Prints the comparison. Status 1 if the journals part, or page files are different."""
    with reported():
        one, other = MemberData(first), MemberData(second)
        found = compare(one, other)
        if json_output:
            typer.echo(json.dumps(asdict(found), indent=2))
        else:
            typer.echo(
                f"equal from record {found.first:,} to record {found.equal_through:,}, byte for byte: "
                f"{counted(found.blocks, 'block')}; {counted(found.pages, 'common page file')}"
            )
            for member, count in zip(found.members, (found.only_first, found.only_second), strict=True):
                if count:
                    typer.echo(f"only {member} has the {counted(count, 'record')} behind that")
            for number in found.different_pages:
                typer.echo(f"page file {number} is different, or damaged", err=True)
    if found.different_pages or (found.only_first and found.only_second):
        raise typer.Exit(FAILED)
