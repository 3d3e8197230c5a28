"""Requests of an operator to a pair with a shared store: empty files, which the process that follows one removes."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from atalanta.files.replace import sync_folder

HANDOVER: Final = "handover"  # to the active process: let another one serve
PROMOTE: Final = "promote"  # to a backup: serve, though the primary was stopped without a failover
PROMOTE_LOSSY: Final = "promote-lossy"  # to a member of a group: serve at once, though it may lack messages
FOLDER_NAME: Final = "requests"


def post_request(journal: Path, request: str) -> None:
    """Asks the processes of the pair. Raises OSError."""
    folder = journal / FOLDER_NAME
    folder.mkdir(mode=0o750, exist_ok=True)
    (folder / request).touch()
    sync_folder(folder)


def take_request(journal: Path, request: str) -> bool:
    """Returns whether this was asked for; only one process gets the answer True. Raises OSError."""
    try:
        (journal / FOLDER_NAME / request).unlink()
    except FileNotFoundError:
        return False
    return True


def withdraw_requests(journal: Path) -> None:
    """Removes what was asked of an earlier epoch: it must not end this one. Raises OSError."""
    for request in (HANDOVER, PROMOTE, PROMOTE_LOSSY):
        take_request(journal, request)
