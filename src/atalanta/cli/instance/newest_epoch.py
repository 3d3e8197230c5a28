"""The newest epoch of a shared store, as `atalanta check` sees it beside running nodes."""

from __future__ import annotations

from pathlib import Path

from atalanta.config.configuration import Configuration
from atalanta.runtime.ha.epoch_folders import Epochs
from atalanta.runtime.ha.epoch_names import has_epochs
from atalanta.runtime.ha.holder_lock import LOCKED, look_at_lock


def newest_journal(configuration: Configuration) -> Path:
    """Returns the folder with the journal of the node's last run: that of an epoch, if there are any."""
    journal = configuration.journal_folder
    if not has_epochs(journal):
        return journal
    epochs = Epochs(journal, configuration.paging_folder, configuration.large_messages_folder)
    try:
        return epochs.folders(epochs.newest_complete(epochs.newest() + 1)).journal
    except OSError:
        return journal  # it cannot be read: the check of the node id says so


def is_served(journal: Path) -> bool:
    """Tells whether a process of the pair serves the epoch with that journal folder now."""
    try:
        return look_at_lock(journal) == LOCKED
    except OSError:
        return False
