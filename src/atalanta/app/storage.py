"""The storage of a node: its journal, page files and large messages."""

from __future__ import annotations

import asyncio
import logging
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from atalanta.app.startup_error import StartupError
from atalanta.cluster.inputs import NodeInputs
from atalanta.config.configuration import Configuration
from atalanta.config.stored_settings import STORED_SETTINGS_NAME, StoredSettingsFile
from atalanta.runtime.disk.data_folder import make_folder, open_data_folder
from atalanta.runtime.disk.disk import FileDisk
from atalanta.runtime.disk.folder_lock import DataFolderDamaged, DataFolderError
from atalanta.runtime.disk.large_files import FolderLargeFiles
from atalanta.runtime.disk.memory_disk import MemoryDisk
from atalanta.runtime.disk.memory_large_files import MemoryLargeFiles
from atalanta.runtime.disk.reserve import DiskReserve
from atalanta.runtime.driver import Driver
from atalanta.runtime.ids import SystemIds
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event
from atalanta.store.pages import NAME_PREFIX

if TYPE_CHECKING:
    from atalanta.runtime.ha.held_epoch import HeldEpoch

logger = logging.getLogger("atalanta.app")
# Artemis' files: of messages, and of queues (in the folder beside the journal, unless configured otherwise).
ARTEMIS_SUFFIXES: Final = (".amq", ".bindings")
ARTEMIS_BINDINGS_NAME: Final = "bindings"


class JournalFolder(Protocol):
    """The folder of a journal that this process uses alone."""

    journal: Path

    def check_locks(self) -> None:
        """Raises DataFolderError if another process could use the folder by now. Called before a file is made."""

    def close(self) -> None:
        """Releases the folder for other processes."""


@dataclass
class Storage:
    """The folder of a node's journal; `folder` is None for a node that keeps everything in memory."""

    node_id: uuid.UUID
    folder: JournalFolder | None
    pages: Path | None = None
    large: Path | None = None
    reserve: DiskReserve | None = None
    settings: StoredSettingsFile = field(default_factory=lambda: StoredSettingsFile(None))
    epoch: HeldEpoch | None = None  # of a shared store

    def disk(
        self, loop: asyncio.AbstractEventLoop, driver: Driver, commits_in_loop: bool
    ) -> FileDisk | MemoryDisk:
        """Returns the Disk port for the node of `driver`."""
        if self.folder is None:
            return MemoryDisk(loop.call_soon, driver.callback(NodeInputs.on_committed))
        elsewhere = {} if self.pages is None else {NAME_PREFIX: self.pages}
        disk = FileDisk(
            self.folder.journal,
            loop.call_soon_threadsafe,
            driver.callback(NodeInputs.on_committed),
            driver.callback(NodeInputs.on_disk_failed),
            elsewhere,
            self.folder.check_locks,
            self.reserve,
            lambda name: driver.post(NodeInputs.on_room, False, name),
            None if self.epoch is None else self.epoch.check,
        )
        if commits_in_loop:
            disk.commit_at_turn_end()
            driver.disk_at_turn_end(disk)
        return disk

    def large_files(
        self,
        loop: asyncio.AbstractEventLoop,
        driver: Driver,
        memory_bytes_max: int,
        sync: bool,
    ) -> FolderLargeFiles | MemoryLargeFiles:
        """Returns the LargeFiles port for the node of `driver`: at most `memory_bytes_max` without a folder."""
        if self.large is None:
            return MemoryLargeFiles(
                memory_bytes_max,
                loop.call_soon,
                driver.callback(NodeInputs.on_large_written),
                driver.callback(NodeInputs.on_large_synced),
                driver.callback(NodeInputs.on_large_failed),
                driver.callback(NodeInputs.on_large_read),
            )
        return FolderLargeFiles(
            self.large,
            loop.call_soon_threadsafe,
            driver.callback(NodeInputs.on_large_written),
            driver.callback(NodeInputs.on_large_synced),
            driver.callback(NodeInputs.on_large_failed),
            driver.callback(NodeInputs.on_large_read),
            sync,
        )

    def close(self) -> None:
        """Releases the folder for other processes."""
        if self.folder is not None:
            self.folder.close()


def open_storage(configuration: Configuration) -> Storage:
    """Opens and locks the data folder and reads its node id.

    The folder is the journal's own: nodes may share a parent folder, never a journal.
    """
    new_id = SystemIds().uuid
    if not configuration.broker.persistence_enabled:
        return Storage(uuid.UUID(bytes=new_id()), None)
    path = configuration.journal_folder
    refuse_artemis_journal(path)
    try:
        folder = open_data_folder(path, new_id, path)
        if folder.journal_missing:
            log_event(logger, "journal_missing", {"folder": path, "node": folder.node_id})
        pages = configuration.paging_folder / str(folder.node_id)
        make_folder(pages)
        large = configuration.large_messages_folder / str(folder.node_id)
        make_folder(large)
    except DataFolderDamaged as error:
        raise StartupError(exit_codes.BAD_DATA, [str(error)]) from error
    except DataFolderError as error:
        raise StartupError(exit_codes.FOLDER_TAKEN, [str(error)]) from error
    except OSError as error:
        line = f"the data folder {path} cannot be used: {error}"
        raise StartupError(exit_codes.DISK_FAILED, [line]) from error
    reserve = disk_reserve(folder.journal, configuration)
    settings = StoredSettingsFile.of(configuration)
    return Storage(folder.node_id, folder, pages, large, reserve, settings)


def epoch_storage(configuration: Configuration, node_id: uuid.UUID, epoch: HeldEpoch) -> Storage:
    """Returns the storage of one epoch of a shared store."""
    return Storage(
        node_id,
        epoch,
        epoch.pages,
        epoch.large,
        disk_reserve(epoch.journal, configuration),
        StoredSettingsFile(epoch.journal / STORED_SETTINGS_NAME),
        epoch,
    )


def disk_reserve(folder: Path, configuration: Configuration) -> DiskReserve:
    """Returns the reserve of a journal's folder: its files have room for a segment, and for a page that is larger."""
    sizes = [configuration.journal.file_size_bytes]
    for setting in configuration.broker.address_settings:
        page_bytes = setting.values.get("page_size_bytes")
        if isinstance(page_bytes, int):
            sizes.append(page_bytes)
    return DiskReserve(folder, max(sizes))


def refuse_artemis_journal(journal: Path) -> None:
    """Refuses folders with files of an Artemis broker: the node would start without that broker's messages."""
    for folder in (journal, journal.parent / ARTEMIS_BINDINGS_NAME):
        if any(found for suffix in ARTEMIS_SUFFIXES for found in folder.glob(f"*{suffix}")):
            lines = [
                f"{folder} holds the journal of an Artemis broker, which this node cannot read: export it with "
                "`artemis data exp`,",
                "move the data folder away, start this node, and read the export with "
                "`atalanta data import FILE.xml` (docs/guide/migration.md)",
            ]
            raise StartupError(exit_codes.BAD_DATA, lines)
