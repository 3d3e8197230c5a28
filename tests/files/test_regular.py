"""Files that configurations name: nobody is waited for, and never more is read than may be."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from atalanta.files.regular import NotRegular, read_regular


@pytest.mark.parametrize("size", [0, 9, 10])
def test_a_file_within_the_limit_is_read_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    assert read_regular(path, 10) == b"x" * size
    (tmp_path / "link").symlink_to(path)
    assert read_regular(tmp_path / "link", 10) == b"x" * size


def test_of_a_longer_one_a_byte_more_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100_000)
    assert len(read_regular(path, 10)) == 11
    assert len(read_regular(path, 70_000)) == 70_001


def test_a_file_that_does_not_tell_its_size_is_read_as_well() -> None:
    path = Path("/proc/self/status")
    assert path.stat().st_size == 0
    assert b"\nThreads:" in read_regular(path, 1 << 16)
    assert len(read_regular(path, 100)) == 101


def test_nobody_writes_into_the_pipe_and_nobody_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotRegular) as caught:
        read_regular(tmp_path / "pipe", 10)
    assert caught.value.strerror == "is a named pipe, not a regular file"


def test_devices_sockets_and_folders(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        with pytest.raises(NotRegular, match="is a socket"):
            read_regular(tmp_path / "socket", 10)
    with pytest.raises(NotRegular, match="is a device"):
        read_regular(Path("/dev/zero"), 10)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path, 10)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none", 10)


def test_what_takes_the_files_place_after_the_look_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tmp_path / "before"
    before.write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    look = os.stat(before)
    monkeypatch.setattr(os, "stat", lambda path: look)
    with pytest.raises(NotRegular, match="named pipe"):
        read_regular(tmp_path / "pipe", 10)
