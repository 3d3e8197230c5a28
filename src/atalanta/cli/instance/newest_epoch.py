"""The newest epoch of a shared store, as `atalanta check` sees it beside running nodes."""

from __future__ import annotations

import contextlib
from pathlib import Path

from atalanta.config.configuration import Configuration
from atalanta.runtime.disk.folder_lock import DataFolderDamaged
from atalanta.runtime.ha.epoch_folders import Epochs
from atalanta.runtime.ha.epoch_names import has_epochs
from atalanta.runtime.ha.holder_lock import LOCKED, look_at_lock


def newest_journal(configuration: Configuration) -> Path:
    """Returns the folder with the journal of the node's last run: that of an epoch, if there are any."""
    journal = configuration.journal_folder
    if not has_epochs(journal):
        return journal
    try:
        return _newest_complete(configuration)
    except (OSError, DataFolderDamaged):
        return journal  # it cannot be read: the check of the node id says so, or the start of the node


def check_marks(configuration: Configuration) -> None:
    """Raises DataFolderDamaged if an epoch that was served is not marked as complete: the node would not start."""
    if has_epochs(configuration.journal_folder):
        with contextlib.suppress(OSError):
            _newest_complete(configuration)


def _newest_complete(configuration: Configuration) -> Path:
    """Returns the journal folder of that epoch. Raises OSError and DataFolderDamaged."""
    journal = configuration.journal_folder
    epochs = Epochs(journal, configuration.paging_folder, configuration.large_messages_folder)
    return epochs.folders(epochs.newest_complete(epochs.newest() + 1)).journal


def is_served(journal: Path) -> bool:
    """Tells whether a process of the pair serves the epoch with that journal folder now."""
    try:
        return look_at_lock(journal) == LOCKED
    except OSError:
        return False
