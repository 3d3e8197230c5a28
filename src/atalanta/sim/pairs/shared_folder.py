"""The shared folder of a simulated pair: numbered epochs, each with files and a lease record of its own.

A takeover copies the files of the newest complete epoch as they are at that instant. A write in progress is torn in the
copy. The machine that wrote them may live on, and go on writing into its own epoch.
"""

from __future__ import annotations

from atalanta.ha import EpochView, FolderRecord
from atalanta.sim.world.disk import SimDisk
from atalanta.sim.world.large_files import SimLargeFiles


class Epoch:
    """An epoch. `locked`: its holder's lock is held, and its release proves the holder's end."""

    def __init__(self, number: int, disk: SimDisk, large: SimLargeFiles) -> None:
        self.number = number
        self.disk = disk
        self.large = large
        self.record: FolderRecord | None = None
        self.complete = False
        self.locked = True


class SharedFolder:
    """The folder. Epochs are never removed, so that no number is used twice."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.epochs: dict[int, Epoch] = {}

    def newest(self) -> int:
        """Returns the number of the newest epoch; 0 if there is none."""
        return len(self.epochs)

    def make(self, number: int, disk: SimDisk, large: SimLargeFiles) -> Epoch | None:
        """Makes the epoch. Returns None if it exists: another machine was faster."""
        if number in self.epochs:
            return None
        self.epochs[number] = Epoch(number, disk, large)
        return self.epochs[number]

    def view(self, number: int) -> EpochView:
        """Returns an epoch as a candidate reads it."""
        epoch = self.epochs.get(number)
        if epoch is None:
            return EpochView(0)
        content = b"" if epoch.record is None else repr(epoch.record).encode()
        return EpochView(number, epoch.complete, epoch.record, content, not epoch.locked)

    def newest_complete(self, before: int) -> Epoch | None:
        """Returns the newest complete epoch before that number, None if there is none."""
        for number in range(before - 1, 0, -1):
            if self.epochs[number].complete:
                return self.epochs[number]
        return None

    def record(self, number: int) -> FolderRecord | None:
        """Returns the record of an epoch, None if it has none yet."""
        return self.epochs[number].record

    def inherit(self, source: Epoch, target: Epoch) -> None:
        """Copies the files of `source` as they are now."""
        target.disk.inherit(source.disk)
        target.large.inherit(source.large)
