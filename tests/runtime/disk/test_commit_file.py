"""Commits past the page cache and through it: the same bytes, whatever the system allows."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from atalanta.runtime.disk.commit_file import BLOCK_BYTES, BUFFER_BYTES, DIRECT, CommitFile
from atalanta.runtime.disk.descriptors import DescriptorReserve

SIZE = 64 * BLOCK_BYTES


@pytest.fixture
def reserve() -> Iterator[DescriptorReserve]:
    made = DescriptorReserve()
    yield made
    made.close_all()


def new_file(folder: Path, size: int = SIZE) -> Path:
    path = folder / "journal"
    path.write_bytes(b"H" * 64 + b"\xff" * (size - 64))
    return path


def run_of_commits(path: Path, file: CommitFile, draw: random.Random) -> bytes:
    """One behind the other, some after the file was closed and opened; what was written, head and all."""
    written = bytearray(b"H" * 64)
    file.open("journal", path)
    while True:
        data = draw.randbytes(draw.choice((1, 300, 1323, BLOCK_BYTES, 9_000, 3 * BLOCK_BYTES)))
        if len(written) + len(data) > SIZE:
            file.close()
            return bytes(written)
        cut = draw.randrange(len(data) + 1)
        file.write(len(written), data[:cut], data[cut:])
        written += data
        if draw.random() < 0.1:
            file.close()
            file.open("journal", path)


@pytest.mark.parametrize("direct", [True, False])
def test_commits_lie_one_behind_the_other(
    tmp_path: Path, reserve: DescriptorReserve, direct: bool
) -> None:
    for seed in range(8):
        path = new_file(tmp_path)
        file = CommitFile(reserve)
        file.direct = file.direct and direct
        written = run_of_commits(path, file, random.Random(seed))
        found = path.read_bytes()
        assert len(found) == SIZE and found.startswith(written)
        # Only the block of the last commit's end may change behind it.
        rest = -(-len(written) // BLOCK_BYTES) * BLOCK_BYTES
        assert found[rest:] == b"\xff" * (SIZE - rest)


def test_a_commit_longer_than_the_buffer(tmp_path: Path, reserve: DescriptorReserve) -> None:
    size = BUFFER_BYTES + 4 * BLOCK_BYTES
    path = new_file(tmp_path, size)
    file = CommitFile(reserve)
    file.open("journal", path)
    data = random.Random(1).randbytes(BUFFER_BYTES + 5_000)
    file.write(64, data[:28], data[28:])
    file.write(64 + len(data), b"more")
    file.close()
    assert path.read_bytes()[64 : 64 + len(data) + 4] == data + b"more"


def test_a_file_of_odd_length_is_not_changed_behind_the_commit(
    tmp_path: Path, reserve: DescriptorReserve
) -> None:
    path = new_file(tmp_path, SIZE + 1)
    file = CommitFile(reserve)
    file.open("journal", path)
    file.write(64, b"data")
    file.write(SIZE - 1, b"xy")
    file.close()
    found = path.read_bytes()
    assert found == b"H" * 64 + b"data" + b"\xff" * (SIZE - 69) + b"xy"


@pytest.mark.skipif(not DIRECT, reason="no direct writes on this system")
@pytest.mark.parametrize("refused", ["open", "write", "synced"])
def test_a_system_that_refuses(
    tmp_path: Path, reserve: DescriptorReserve, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    """A file system without direct files, without direct writes, or without synced ones."""
    real_open, real_write = os.open, os.pwritev
    direct: set[int] = set()

    def open_file(path: str | Path, flags: int, mode: int = 0o777) -> int:
        if flags & DIRECT and refused == "open":
            raise OSError(errno.EINVAL, "no direct files here")
        file = real_open(path, flags, mode)
        direct.discard(file)
        if flags & DIRECT:
            direct.add(file)
        return file

    def write(file: int, data: Sequence[bytes], offset: int, flags: int = 0) -> int:
        if refused == "synced" or (refused == "write" and file in direct):
            raise OSError(errno.EINVAL if refused == "write" else errno.EOPNOTSUPP, "not here")
        return real_write(file, data, offset, flags)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "pwritev", write)
    path = new_file(tmp_path)
    written = run_of_commits(path, CommitFile(reserve), random.Random(7))
    assert path.read_bytes().startswith(written)


def failing(number: int) -> Callable[..., int]:
    def write(file: int, data: Sequence[bytes], offset: int, flags: int = 0) -> int:
        raise OSError(number, os.strerror(number))

    return write


def test_a_failed_write_is_not_tried_another_way(
    tmp_path: Path, reserve: DescriptorReserve, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = CommitFile(reserve)
    file.open("journal", new_file(tmp_path))
    monkeypatch.setattr(os, "pwritev", failing(errno.EIO))
    monkeypatch.setattr(os, "pwrite", failing(errno.EIO))
    direct = file.direct
    with pytest.raises(OSError, match="Input/output"):
        file.write(64, b"data")
    assert file.direct == direct
    file.close()
