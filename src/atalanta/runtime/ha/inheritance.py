"""The files that an epoch inherits from an earlier one.

The earlier holder may be alive, and paused in the middle of a write. The rules, for each kind of file:

- Sealed segments are linked: nobody writes to them again. Copied are the newest segment that begins with a whole block
  and the one after it: the earlier holder may still write there, and so will the new one. The last block that was
  confirmed is in one of these or before them. Later segments have nothing that was confirmed.
- A segment that is missing was deleted by the earlier holder, after its records were durable elsewhere, and so were all
  older ones. They are not needed.
- Page files and large messages are listed after the segments are read: what a record names exists by then. Nobody
  writes to them after the record that names them. They are linked. One that disappears was deleted after a record that
  the segments have.
- The stored settings are replaced as a whole file: linked.
- Reserve files and spare segments are not inherited. The reserve of the earlier epoch is freed first: the copies may
  need its room.

A file that is linked is never written in place, truncated, or used again under another name by any holder: see
`FileDisk.recycles`. Where links fail, files are copied.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from atalanta.files.replace import replace_file, sync_folder
from atalanta.runtime.disk.data_folder import make_folder
from atalanta.runtime.disk.large_files import SUFFIX as LARGE_SUFFIX
from atalanta.runtime.disk.reserve import NAMES as RESERVE_NAMES
from atalanta.runtime.ha.epoch_folders import ADOPTED_NAME, COMPLETE_NAME, EpochFolders
from atalanta.store.block import (
    BLOCK_HEAD_SIZE,
    BLOCK_HEAD_SIZE_7,
    BlockError,
    decode_block_head,
    decode_records,
)
from atalanta.store.pages import NAME_PREFIX as PAGE_PREFIX
from atalanta.store.segment import (
    SEGMENT_HEAD_SIZE,
    Segment,
    is_spare,
    segment_name,
    segment_number,
)

SETTINGS_NAME: Final = "management-settings.xml"
# Errors of file systems without hard links, or with too many links to one file, or that refuse a link to a file of
# another user. Then the file is copied.
NO_LINK: Final = (errno.EPERM, errno.EACCES, errno.EXDEV, errno.EMLINK, errno.EOPNOTSUPP, errno.ENOSYS)


def inherit(source: EpochFolders, target: EpochFolders, journal_id: bytes, still_held: Callable[[], None]) -> None:
    """Makes `target` from `source`. All is synced, but not yet complete.

    `still_held` is called after every file and raises an error to end it. Raises OSError.
    """
    make_folder(target.pages)
    make_folder(target.large)
    for name in RESERVE_NAMES:
        (source.journal / name).unlink(missing_ok=True)
    _inherit_segments(source.journal, target.journal, journal_id, still_held)
    for here, there, belongs in (
        (source.journal, target.journal, _is_settings),
        (source.pages, target.pages, is_page),
        (source.large, target.large, is_large),
    ):
        for name in _names(here, belongs):
            _link_if_there(here / name, there / name)
            still_held()
    for folder in (target.large, target.pages, target.journal):
        sync_folder(folder)


def mark_complete(target: EpochFolders) -> None:
    """Marks the epoch as complete, durably: everything that it inherits is synced. Raises OSError."""
    if target.adopted:
        replace_file(target.mark / ADOPTED_NAME, f"{target.base}\n".encode("ascii"))
        return
    file = os.open(target.mark / COMPLETE_NAME, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    sync_folder(target.journal)


def empty(folders: EpochFolders, but: Sequence[str] = ()) -> None:
    """Removes the files of an epoch, and its folders of pages and large messages. Raises OSError.

    Files of these names stay in the journal folder. The files of an adopted epoch stay, too: only its marks go.
    """
    if folders.adopted:
        for name in _names(folders.mark, lambda name: name not in but):
            (folders.mark / name).unlink(missing_ok=True)
        return
    if folders.number == 0:
        for folder, belongs in (
            (folders.journal, is_plain_journal),
            (folders.pages, is_page),
            (folders.large, is_large),
        ):
            for name in _names(folder, belongs):
                (folder / name).unlink(missing_ok=True)
        return
    for folder in (folders.journal, folders.pages, folders.large):
        for name in _names(folder, lambda name: name not in but):
            (folder / name).unlink(missing_ok=True)
    for folder in (folders.pages, folders.large):
        with contextlib.suppress(OSError):  # gone, or a network file system keeps the names of open files
            folder.rmdir()


def is_page(name: str) -> bool:
    return name.startswith(PAGE_PREFIX)


def is_large(name: str) -> bool:
    return name.endswith(LARGE_SUFFIX)


def is_plain_journal(name: str) -> bool:
    """Returns whether it is a file of a journal in the folder of a node without a shared store."""
    return segment_number(name) > 0 or is_spare(name) or name in RESERVE_NAMES or name.startswith(SETTINGS_NAME)


def _is_settings(name: str) -> bool:
    return name == SETTINGS_NAME


def _names(folder: Path, belongs: Callable[[str], bool]) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                entry.name for entry in entries if belongs(entry.name) and entry.is_file(follow_symlinks=False)
            )
    except FileNotFoundError:
        return []


def _inherit_segments(source: Path, target: Path, journal_id: bytes, still_held: Callable[[], None]) -> None:
    numbers = [segment_number(name) for name in _names(source, lambda name: segment_number(name) > 0)]
    newest = _newest_with_block(source, numbers, journal_id)
    for number in sorted(numbers, reverse=True):
        name = segment_name(number)
        try:
            if newest == 0 or number == newest:
                copy_file(source / name, target / name)
            elif number == newest + 1:
                # It has nothing that was confirmed: its holder may be making it, or making it anew.
                _copy_if_there(source / name, target / name)
            elif number < newest:
                link_file(source / name, target / name)
            else:
                continue
        except FileNotFoundError:
            if number == newest or newest == 0:
                raise
            break
        still_held()


def _newest_with_block(folder: Path, numbers: list[int], journal_id: bytes) -> int:
    """Returns the newest segment that begins with a whole block; 0 for none."""
    for number in sorted(numbers, reverse=True):
        segment = Segment(journal_id, number, 0, False)
        try:
            if _begins_with_block(folder / segment.name, segment.seal):
                return number
        except FileNotFoundError:
            continue
    return 0


def _begins_with_block(path: Path, seal: bytes) -> bool:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        begin = os.pread(file, BLOCK_HEAD_SIZE, SEGMENT_HEAD_SIZE)
        head_size = BLOCK_HEAD_SIZE
        head = decode_block_head(seal, begin)
        if head is None:
            head_size = BLOCK_HEAD_SIZE_7
            head = decode_block_head(seal, begin, 0, head_size)
        if head is None:
            return False
        data = b""
        while len(data) < head.length:
            piece = os.pread(file, head.length - len(data), SEGMENT_HEAD_SIZE + head_size + len(data))
            if not piece:
                break
            data += piece
        decode_records(head, data)
    except BlockError:
        return False
    finally:
        os.close(file)
    return True


def link_file(source: Path, target: Path) -> None:
    """Gives the file a second name, or copies it where that is not possible. Raises OSError."""
    try:
        os.link(source, target)
    except OSError as error:
        if error.errno not in NO_LINK:
            raise
        copy_file(source, target)


def copy_file(source: Path, target: Path) -> None:
    """Copies the contents to a new file and syncs it. Raises OSError."""
    with open(source, "rb") as old:
        file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        with open(file, "wb") as new:
            shutil.copyfileobj(old, new, 1 << 20)
            new.flush()
            os.fsync(new.fileno())


def _copy_if_there(source: Path, target: Path) -> None:
    try:
        copy_file(source, target)
    except FileNotFoundError:
        return


def _link_if_there(source: Path, target: Path) -> None:
    try:
        link_file(source, target)
    except FileNotFoundError:
        return
