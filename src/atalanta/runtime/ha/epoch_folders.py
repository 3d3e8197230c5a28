"""The folders of the epochs of a shared store, and their names.

    <journal>/epochs/00000007/            segments, reserve files, management-settings.xml
    <journal>/epochs/00000007/lease       the holder's record (lease_file.py)
    <journal>/epochs/00000007/holder.lock locked by the holder for its life (holder_lock.py)
    <journal>/epochs/00000007/complete    everything was inherited, and every earlier lease is over
    <pages>/epochs/00000007/              page files
    <large>/epochs/00000007/              large messages
    <journal>/epochs/00000008/adopted     instead of `complete`: the epoch whose files it goes on with, in their place

An epoch is *adopted* if its holder has surely ended: nobody writes to its files any more, so nothing is linked or
copied, and a broker that is alone starts as if there were no epochs.

Directories of epochs are emptied later, and never removed: no number is used twice. Files of a node without a shared
store, in <journal>, <pages> and <large> themselves, are epoch 0.

Every look for a name opens its directory first. A network file system then asks its server, and does not answer from
what it had seen before (close-to-open consistency).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from atalanta.files.replace import sync_folder
from atalanta.ha.folder_lease import EpochUnmarked, EpochView, inherited_epoch
from atalanta.runtime.disk.descriptors import DescriptorReserve
from atalanta.runtime.disk.folder_lock import DataFolderDamaged
from atalanta.runtime.ha.epoch_names import EPOCHS_NAME, epoch_name, epochs_of
from atalanta.runtime.ha.lease_file import decode_record, read_content

COMPLETE_NAME: Final = "complete"
ADOPTED_NAME: Final = "adopted"  # another name: earlier versions, which do not know it, must not pass over the files


@dataclass(frozen=True)
class EpochFolders:
    """The folders of one epoch; `number` 0 is that of the files of a node without a shared store.

    `mark` is the directory of the epoch itself, with lease, lock and the mark of its completeness. The others have the
    files of epoch `base`, which is an earlier one if that was adopted.
    """

    number: int
    journal: Path
    pages: Path
    large: Path
    mark: Path
    base: int

    @property
    def adopted(self) -> bool:
        """Returns whether the files are those of an earlier epoch."""
        return self.base != self.number


def present(folder: Path, name: str, files: DescriptorReserve | None = None) -> bool:
    """Returns whether the folder has that name now. OSError for everything else but that the name is missing."""
    flags = os.O_RDONLY | os.O_DIRECTORY
    opened = os.open(folder, flags | os.O_CLOEXEC) if files is None else files.open(folder, flags)
    try:
        os.stat(name, dir_fd=opened)
    except FileNotFoundError:
        return False
    finally:
        if files is None:
            os.close(opened)
        else:
            files.close(opened)
    return True


def adopted_epoch(mark: Path) -> int | None:
    """Returns the epoch whose files that of this directory has adopted; None if it has files of its own.

    DataFolderDamaged if it cannot be known. Raises OSError.
    """
    path = mark / ADOPTED_NAME
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return None
    if not text.isdecimal():
        raise DataFolderDamaged(f"{path} has no number of an epoch, but {text[:60]!r}: restore the file from a backup")
    return int(text)


class Epochs:
    """All epochs of a store. `pages` and `large` are the folders of this node id."""

    def __init__(self, journal: Path, pages: Path, large: Path) -> None:
        self.journal = journal
        self.pages = pages
        self.large = large
        self.marks = journal / EPOCHS_NAME
        self._newest = 0

    def folders(self, number: int) -> EpochFolders:
        """Returns the folders of an epoch; they need not exist. Raises OSError if that is unknown."""
        base = number if number == 0 else adopted_epoch(self.marks / epoch_name(number))
        return self.with_base(number, number if base is None else base)

    def latest(self) -> EpochFolders:
        """Returns the folders of the newest epoch that has inherited everything. Raises OSError, DataFolderDamaged."""
        return self.folders(self.newest_complete(self.newest() + 1))

    def with_base(self, number: int, base: int) -> EpochFolders:
        """Returns the folders of an epoch with the files of epoch `base`."""
        mark = self.marks / epoch_name(number) if number else self.journal
        if base == 0:
            return EpochFolders(number, self.journal, self.pages, self.large, mark, 0)
        name = epoch_name(base)
        pages, large = self.pages / EPOCHS_NAME / name, self.large / EPOCHS_NAME / name
        return EpochFolders(number, self.marks / name, pages, large, mark, base)

    def numbers(self) -> list[int]:
        """Returns the numbers of all epochs, sorted, and 0 before them."""
        return [0, *epochs_of(self.journal)]

    def exists(self, number: int) -> bool:
        """Returns whether the epoch was made. Raises OSError if that is unknown."""
        return present(self.marks, epoch_name(number))

    def newest(self) -> int:
        """Returns the number of the newest epoch, complete or not; 0 without any."""
        if self._newest == 0:
            self._newest = max(epochs_of(self.journal), default=0)
        while self.exists(self._newest + 1):
            self._newest += 1
        return self._newest

    def make(self, number: int) -> bool:
        """Makes an epoch, once for all processes; returns False if another one was faster. `sync` follows."""
        try:
            (self.marks / epoch_name(number)).mkdir(mode=0o750)
        except FileExistsError:
            return False
        return True

    def sync(self) -> None:
        """Makes the names of the epochs durable. Raises OSError."""
        sync_folder(self.marks)

    def is_complete(self, number: int) -> bool:
        """Returns whether the epoch has inherited everything. Raises OSError if that is unknown."""
        mark = self.marks / epoch_name(number)
        return number == 0 or present(mark, COMPLETE_NAME) or present(mark, ADOPTED_NAME)

    def newest_complete(self, below: int) -> int:
        """Returns the newest complete epoch below that number; 0 if none is.

        DataFolderDamaged for an epoch that was served and has lost the mark. Raises OSError.
        """
        try:
            return inherited_epoch(below, self._view)
        except EpochUnmarked as error:
            folder = self.marks / epoch_name(error.epoch)
            if not any(folder.glob("*.log")):  # it has adopted the files of another one
                raise DataFolderDamaged(
                    f"{folder / ADOPTED_NAME} is missing: epoch {error.epoch} was served, and without this file its "
                    "messages would be left out. Find out what has removed it, and restore the folder from a backup"
                ) from error
            raise DataFolderDamaged(
                f"{folder / COMPLETE_NAME} is missing: epoch {error.epoch} was served, and without this file its "
                "messages would be left out. Find out what has removed it. If nothing else is missing in the folder, "
                "create the file again, empty; otherwise restore the folder from a backup first"
            ) from error

    def _view(self, number: int) -> EpochView:
        complete = self.is_complete(number)
        record = None if complete else decode_record(read_content(self.marks / epoch_name(number)))
        return EpochView(number, complete, record)
