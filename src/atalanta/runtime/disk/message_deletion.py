"""The deletion of all messages of a data folder, before its node starts (deleteAllMessagesOnStartup of Classic)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from atalanta.files.replace import sync_folder
from atalanta.runtime.disk.large_files import SUFFIX as LARGE_SUFFIX
from atalanta.store.pages import NAME_PREFIX as PAGE_PREFIX
from atalanta.store.segment import is_spare, segment_number


def delete_messages(journal: Path, pages: Path, large: Path) -> int:
    """Deletes journal, page files and large messages, durably. Returns the number of files. Raises OSError.

    The node id and the stored settings stay. The oldest segment goes first: after a crash in between, the rest of the
    journal is one whose old records were compacted.
    """
    kinds: tuple[tuple[Path, Callable[[str], bool]], ...] = (
        (journal, lambda name: segment_number(name) > 0 or is_spare(name)),
        (pages, lambda name: name.startswith(PAGE_PREFIX)),
        (large, lambda name: name.endswith(LARGE_SUFFIX)),
    )
    deleted = 0
    for folder, belongs in kinds:
        for path in sorted(folder.iterdir()):
            if belongs(path.name):
                path.unlink()
                deleted += 1
        sync_folder(folder)
    return deleted
