"""The disk that is none: the same answers as a real one, for as long as the node lives."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.runtime.disk.memory_disk import MemoryDisk


def test_files_read_back_what_was_committed() -> None:
    later: list[tuple[Callable[[int], None], int]] = []
    committed: list[int] = []
    disk = MemoryDisk(lambda call, token: later.append((call, token)), committed.append)
    disk.create("journal-1", 4096, b"head")
    disk.commit("journal-1", 8, b"block", 7)
    assert not disk.idle() and committed == [], "answered later, never from within commit"
    for call, token in later:
        call(token)
    assert disk.idle() and committed == [7]
    assert disk.read("journal-1", 0, 100) == b"head\0\0\0\0block"
    disk.create("journal-2", 10, b"")
    assert disk.names() == ["journal-1", "journal-2"]
    disk.delete("journal-1")
    assert disk.names() == ["journal-2"]
    with pytest.raises(FileNotFoundError, match="journal-1"):
        disk.size("journal-1")
