"""The processes of a pair with a shared store, as they tell each other by files beside the journal.

Each passive process writes one file, again and again: its role, its connectors, what it asks for. The active one reads
them: clients learn of the backup, and a primary gets its store back. A file that does not change any more belongs to
a process that has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from atalanta.ha.folder_lease import Announcement
from atalanta.ha.policy import PRIMARY
from atalanta.runtime.ha.member_file import (
    MemberRecord,
    read_members,
    remove_member,
    write_member,
)

BEAT_NS: Final = 500_000_000
GONE_NS: Final = 3_000_000_000
# A process that has not written its file for so long tells of itself anew: a holder may have removed the file since
# (see member_file.SILENT_NS).
GAP_NS: Final = 1_500_000_000


@dataclass
class LastChange:
    """The last change of a member's file: its count, and the own monotonic instant."""

    beat: int
    at_ns: int


class PairMembers:
    """The own file in `folder`, and those of the others."""

    def __init__(self, folder: Path, own: MemberRecord, monotonic_ns: Callable[[], int]) -> None:
        self.folder = folder
        self.own = own
        self._monotonic_ns = monotonic_ns
        self._seen: dict[str, LastChange] = {}
        self._beat_at_ns = -1
        self.announcement = Announcement(GAP_NS)
        self.alive: list[MemberRecord] = []

    async def beat(self) -> None:
        """Writes the own file and reads the others, at most every BEAT_NS. Raises OSError."""
        now = self._monotonic_ns()
        if self._beat_at_ns >= 0 and now < self._beat_at_ns + BEAT_NS:
            return
        self._beat_at_ns = now
        self.own = replace(self.own, beat=self.own.beat + 1)
        await asyncio.to_thread(write_member, self.folder, self.own)
        self.announcement.on_written(now, self._monotonic_ns())
        await self.read()

    async def read(self) -> list[MemberRecord]:
        """Returns the other passive processes that are alive, primaries last. Raises OSError."""
        found = await asyncio.to_thread(read_members, self.folder)
        now = self._monotonic_ns()
        for record in found:
            seen = self._seen.get(record.name)
            if seen is None or seen.beat != record.beat:
                # The first sight of a file is no sign of life: its process may have ended long ago.
                self._seen[record.name] = LastChange(record.beat, -1 if seen is None else now)
        self.alive = sorted(
            (each for each in found if each.name != self.own.name and self._lives(each, now)),
            key=lambda each: (each.role == PRIMARY, each.name),
        )
        return self.alive

    def _lives(self, record: MemberRecord, now: int) -> bool:
        at_ns = self._seen[record.name].at_ns
        return at_ns >= 0 and now < at_ns + GONE_NS

    def primary_waits(self) -> bool:
        """Returns whether a primary is alive and waits for the store."""
        return any(each.role == PRIMARY for each in self.alive)

    def leave(self) -> None:
        """Removes the own file: this process is active now, or ends. One that stays is no sign of life."""
        with contextlib.suppress(OSError):
            remove_member(self.folder, self.own.name)
        self._beat_at_ns = -1
        self.announcement.end()


def member_name() -> str:
    """Returns a new name for a process; a process that starts again is another member."""
    return uuid.uuid4().hex
