"""A journal in an epoch's folder, without a node. As a program: appends until it ends, and prints what is confirmed.

    python -m tests.runtime.ha.epoch_writer FOLDER LEASE_MS [--unchecked]

takes the store in FOLDER when it may, and writes; with the option it neither looks for a successor nor heeds its lease.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from atalanta.runtime.disk.disk import FileDisk
from atalanta.runtime.ha.held_epoch import HeldEpoch
from atalanta.store.config import JournalConfig
from atalanta.store.journal import Journal
from tests.runtime.disk.journal_writer import NoTrace, Records, payload_of
from tests.runtime.ha.store_rig import store

SEGMENT_BYTES = 16 * 1024


class EpochWriter:
    """The owner of one journal, with a queue for an event loop. `confirm` gets every lsn that is durable."""

    def __init__(
        self,
        folder: Path,
        journal_id: bytes,
        held: HeldEpoch | None = None,
        confirm: Callable[[int], None] = lambda lsn: None,
        check: Callable[[], None] | None = None,
    ) -> None:
        self.calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        check = check if held is None else held.check
        self.disk = FileDisk(folder, self.call_soon, self.committed, self.disk_failed, check=check)
        config = JournalConfig(journal_id, segment_size_bytes=SEGMENT_BYTES, block_size_bytes_max=8 * 1024)
        self.journal = Journal(self.disk, config, self, NoTrace())
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

    def on_journal_failed(self, now: int, why: str) -> None:
        raise SystemExit(why)

    def begin(self) -> None:
        """Replays everything and checks it."""
        self.journal.recover(self.records)

    def append(self, count: int) -> None:
        for _ in range(count):
            lsn = self.journal.last + 1
            self.journal.append(lsn % 256, payload_of(lsn))
        self.journal.flush(0)

    def commit(self, count: int) -> None:
        """Appends so many records and returns when they are durable."""
        self.append(count)
        while self.journal.durable < self.journal.last:
            self.calls.get()()

    def fill(self, segments: int) -> None:
        """Appends until so many more segments are in use, and all is durable."""
        end = self.journal.segments[-1].number + segments
        while self.journal.segments[-1].number < end:
            self.commit(3)

    def close(self) -> None:
        self.disk.close()

    def run(self) -> None:
        """Keeps some records waiting all the time."""
        self.append(20)
        while True:
            self.calls.get()()
            if self.journal.last - self.journal.durable < 40:
                self.append(20)


def main(folder: Path, lease_ms: int, checked: bool) -> None:
    """Takes the store as a primary and writes. Prints `epoch N records M`, then every confirmed lsn."""
    pair = store(folder, lease_ms * 1_000_000)
    held = None
    while held is None:
        view = pair.look()
        if pair.may_take(view, True, time.monotonic_ns()):
            held = pair.take()
        else:
            time.sleep(0.005)
    holder = held

    def confirm(lsn: int) -> None:
        if checked:
            holder.hold()
        print(lsn, flush=True)

    writer = EpochWriter(held.journal, pair.node_id.bytes, held if checked else None, confirm)
    writer.begin()
    held.start(lambda why: None, time.time_ns)
    print(f"epoch {held.epoch} records {writer.records.count} pid {os.getpid()}", flush=True)
    writer.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), "--unchecked" not in sys.argv)
