"""A folder with room for a number of bytes, as a full disk leaves it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from atalanta.runtime.disk import commit_file, reserve


class LimitedRoom:
    """The room of one folder: files beyond `bytes` cannot grow. Bytes that a file has already can be overwritten."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path, size: int) -> None:
        self.folder = folder
        self.bytes = size
        self._write_all = commit_file.write_all
        monkeypatch.setattr(reserve, "write_all", self._write)
        monkeypatch.setattr(os, "posix_fallocate", self._allocate)

    def used(self) -> int:
        return sum(path.stat().st_size for path in self.folder.iterdir())

    def _write(self, file: int, offset: int, data: bytes) -> None:
        self._check(file, offset + len(data))
        self._write_all(file, offset, data)

    def _allocate(self, file: int, offset: int, size: int) -> None:
        self._check(file, offset + size)
        os.ftruncate(file, offset + size)

    def _check(self, file: int, end: int) -> None:
        if self.used() + max(0, end - os.fstat(file).st_size) > self.bytes:
            raise OSError(errno.ENOSPC, "no space left")
