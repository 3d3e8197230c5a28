"""A journal in an epoch's folder, without a node. As a program: appends until it ends, and prints what is confirmed.

    python -m tests.runtime.ha.epoch_writer FOLDER LEASE_MS [--unchecked] [--keep]

takes the store in FOLDER when it may, and writes. With --unchecked it neither looks for a successor nor heeds its
lease; with --keep it does not remove the files of earlier epochs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from atalanta.runtime.ha.held_epoch import HeldEpoch
from atalanta.store.config import JournalConfig
from tests.runtime.disk.journal_writer import Writer
from tests.runtime.ha.store_rig import store

SEGMENT_BYTES = 16 * 1024


class EpochWriter(Writer):
    """The owner of the journal of an epoch."""

    def __init__(
        self,
        folder: Path,
        journal_id: bytes,
        held: HeldEpoch | None = None,
        confirm: Callable[[int], None] = lambda lsn: None,
        check: Callable[[], None] | None = None,
    ) -> None:
        config = JournalConfig(journal_id, segment_size_bytes=SEGMENT_BYTES, block_size_bytes_max=8 * 1024)
        super().__init__(folder, config, confirm, check if held is None else held.check)

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


def main(folder: Path, lease_ms: int, checked: bool, empties: bool) -> None:
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
    if empties:
        held.start(lambda why: None, time.time_ns)
    held.hold()
    print(f"epoch {held.epoch} records {writer.records.count} pid {os.getpid()}", flush=True)
    writer.run()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), "--unchecked" not in sys.argv, "--keep" not in sys.argv)
