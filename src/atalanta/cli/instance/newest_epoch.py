"""The newest epoch of a shared store, as `atalanta check` sees it beside running nodes."""

from __future__ import annotations

import contextlib
from pathlib import Path

from atalanta.config.configuration import Configuration
from atalanta.runtime.disk.folder_lock import DataFolderDamaged
from atalanta.runtime.ha.epoch_folders import EpochFolders, Epochs
from atalanta.runtime.ha.epoch_names import has_epochs
from atalanta.runtime.ha.holder_lock import LOCKED, look_at_lock


def newest_journal(configuration: Configuration) -> Path:
    """Returns the folder with the journal of the node's last run: that of an epoch, if there are any."""
    try:
        return _newest_complete(configuration).journal
    except (OSError, DataFolderDamaged):
        # It cannot be read: the check of the node id says so, or the start of the node.
        return configuration.journal_folder


def check_marks(configuration: Configuration) -> None:
    """Raises DataFolderDamaged if an epoch that was served is not marked as complete: the node would not start."""
    with contextlib.suppress(OSError):
        _newest_complete(configuration)


def is_served(configuration: Configuration) -> bool:
    """Returns whether a process of the pair serves the newest epoch now."""
    try:
        return look_at_lock(_newest_complete(configuration).mark) == LOCKED
    except (OSError, DataFolderDamaged):
        return False


def _newest_complete(configuration: Configuration) -> EpochFolders:
    """Returns the folders of that epoch. Raises OSError and DataFolderDamaged."""
    journal = configuration.journal_folder
    epochs = Epochs(journal, configuration.paging_folder, configuration.large_messages_folder)
    if not has_epochs(journal):
        return epochs.folders(0)
    return epochs.latest()
