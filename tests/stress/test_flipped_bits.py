"""One flipped bit in a journal, a page file or the file of a large message: it is found and told, with file and queue,
and no changed or lost message goes unnoticed.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from atalanta.client import ClientError
from atalanta.runtime.process.exit_codes import BAD_DATA
from tests.stress.killed_node import PATIENCE_S, SingleNode
from tests.stress.node_process import Launcher
from tests.stress.workload import QUEUES, connected

pytestmark = pytest.mark.process

# What a node tells of damage, by the file that is damaged; the last commit looks like one that a crash has cut off.
TOLD = {
    ".log": ("cannot be read", "journal_tail_cut"),
    ".page": ("page_file_damaged",),
    ".msg": ("large_message_damaged",),
}


@dataclass(frozen=True)
class Life:
    """One life of a node: its exit status, what its queues had (None: not all could be read), and its log."""

    status: int
    found: dict[str, list[str] | None]
    log: str


class DamagedNode:
    """A node with the files of a finished load, which each life begins with."""

    def __init__(self, launcher: Launcher, folder: Path) -> None:
        self.node = SingleNode(launcher, folder)
        self.node.process.start()
        self.node.process.until_ready()
        asyncio.run(self.node.play())
        assert self.node.load.finished
        self.node.process.end(signal.SIGKILL)
        self.named = 0  # damages of the journal for which messages and queues were named
        self._files = folder / "files"
        shutil.copytree(self.node.store, self._files)
        self.whole = self.live(None, 0, 0)
        assert self.whole.status == 0 and sum(len(names or []) for names in self.whole.found.values()) > 100

    def files(self, suffix: str) -> list[Path]:
        """Returns the files of one kind, relative to the store."""
        found = [path.relative_to(self._files) for path in self._files.rglob(f"*{suffix}")]
        return sorted(path for path in found if "spare" not in path.name)

    def used(self, path: Path) -> list[int]:
        """Returns the places of bytes that are not zero."""
        return [place for place, byte in enumerate((self._files / path).read_bytes()) if byte]

    def live(self, path: Path | None, place: int, bit: int) -> Life:
        """Flips one bit, starts the node and empties its queues."""
        node = self.node
        shutil.rmtree(node.store)
        shutil.copytree(self._files, node.store)
        if path is not None:
            data = bytearray((node.store / path).read_bytes())
            data[place] ^= 1 << bit
            (node.store / path).write_bytes(data)
        begin = len(node.process.log())
        node.process.start()
        found: dict[str, list[str] | None] = {}
        if node.process.until_printed("ready"):
            found = asyncio.run(self._read_all())
            node.process.send_signal(signal.SIGTERM)
        return Life(node.process.wait(), found, node.process.log()[begin:])

    async def _read_all(self) -> dict[str, list[str] | None]:
        """Reads each queue over a connection of its own: one with a damaged large message is closed."""
        found: dict[str, list[str] | None] = {}
        async with asyncio.timeout(PATIENCE_S):
            for queue in [queue for queues in QUEUES.values() for queue in queues]:
                try:
                    async with connected(self.node.url) as connection:
                        found[queue] = await self.node.load.read(connection, queue)
                except ClientError:
                    found[queue] = None
        return found

    def check(self, path: Path, place: int, bit: int) -> bool:
        """Checks one flipped bit; returns whether it did any damage."""
        life = self.live(path, place, bit)
        told = [word for word in TOLD[path.suffix] if word in life.log]
        what = f"bit {bit} of byte {place} of {path}: {told}\n{life.log}"
        if life.status == BAD_DATA:
            assert path.suffix == ".log" and path.name in life.log, what
            self.named += "the block had " in life.log
            return True
        assert life.status == 0, what
        changed = [queue for queue, names in life.found.items() if names != self.whole.found[queue]]
        assert told or not changed, f"nothing is told of {changed}, {what}"
        if path.suffix == ".page":
            assert set(changed) <= {"paged"} and (not changed or "queue=paged" in life.log), what
        if path.suffix == ".msg":
            assert set(changed) <= {"large"} and "queues=large" in life.log, what
        return bool(changed)


def damage(launcher: Launcher, folder: Path, count: int, seed: int) -> None:
    """Flips `count` bits, one in each life, in turn in a journal, a page and a large message."""
    chance = random.Random(seed)
    node = DamagedNode(launcher, folder)
    harm = 0
    try:
        for index in range(count):
            path = chance.choice(node.files((".log", ".page", ".msg")[index % 3]))
            harm += node.check(path, chance.choice(node.used(path)), chance.randrange(8))
    finally:
        node.node.close()
    print(f"{count} flipped bits, {harm} did damage, and all of these were told; of {node.named} blocks the contents")
    assert harm > 0 and (node.named > 0 or count < 100)


def test_a_flipped_bit_is_told(launcher: Launcher, tmp_path: Path) -> None:
    damage(launcher, tmp_path, 3, 1)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_1000_flipped_bits_are_told(launcher: Launcher, tmp_path: Path) -> None:
    damage(launcher, tmp_path, 1_000, 2)
