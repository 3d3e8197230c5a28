"""A process that writes a journal as fast as it can and prints every lsn that is durable.

    python journal_writer.py FOLDER    until it is killed
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from atalanta.kernel.ports import Timers, Trace
from atalanta.runtime.disk.disk import FileDisk
from atalanta.store.config import JournalConfig
from atalanta.store.journal import Journal

CONFIG = JournalConfig(bytes(16), segment_size_bytes=64 * 1024, block_size_bytes_max=16 * 1024)


class NoTrace(Trace):
    """Nobody looks."""

    def count(self, name: str, n: int = 1) -> None:
        pass

    def event(self, name: str, fields: dict[str, object]) -> None:
        pass


class Records:
    """Replay that checks each record against what the writer would write."""

    def __init__(self) -> None:
        self.count = 0

    def on_record(self, lsn: int, kind: int, payload: bytes) -> None:
        self.count += 1
        if (lsn, kind, payload) != (self.count, lsn % 256, payload_of(lsn)):
            raise ValueError(f"record {lsn} is not what was written")


def payload_of(lsn: int) -> bytes:
    """Different lengths, up to a page and a half."""
    return lsn.to_bytes(8, "big") * (lsn * 7 % 700)


def show(lsn: int) -> None:
    """Prints the lsn for whoever has started this program."""
    print(lsn, flush=True)


class NoTimers(Timers):
    """Nothing is compacted, and no record is idle."""


class Writer:
    """The owner of one journal, with a queue for an event loop. `confirm` gets every lsn that is durable."""

    def __init__(
        self,
        folder: Path,
        config: JournalConfig = CONFIG,
        confirm: Callable[[int], None] = show,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.disk = FileDisk(folder, self.call_soon, self.committed, self.disk_failed, check=check)
        self.journal = Journal(self.disk, config, NoTimers(), NoTrace())
        self.journal.listen(self, self.on_failed)
        self.records = Records()
        self.confirm = confirm

    def call_soon(self, call: Callable[[object], None], argument: object) -> None:
        self.calls.put(lambda: call(argument))

    def committed(self, token: int) -> None:
        self.journal.on_committed(0, token)

    def disk_failed(self, why: str) -> None:
        self.journal.on_failed(0, why)

    def on_durable(self, now: int, lsn: int) -> None:
        self.confirm(lsn)

    def on_failed(self, now: int, why: str) -> None:
        raise SystemExit(why)

    def begin(self) -> None:
        """Replays everything and checks it."""
        self.journal.recover(self.records)

    def append(self, count: int) -> None:
        for _ in range(count):
            lsn = self.journal.last + 1
            self.journal.append(lsn % 256, payload_of(lsn))
        self.journal.flush(0)

    def run(self) -> None:
        """Keeps some records waiting all the time."""
        self.append(20)
        while True:
            self.calls.get()()
            if self.journal.last - self.journal.durable < 40:
                self.append(20)


if __name__ == "__main__":
    writer = Writer(Path(sys.argv[1]))
    writer.begin()
    writer.run()
