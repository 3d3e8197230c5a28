"""A process without free file descriptors goes on to write its journal and to read its large messages."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from atalanta.runtime.disk.descriptors import RESERVED
from atalanta.runtime.disk.disk import FileDisk
from atalanta.runtime.disk.large_files import SUFFIX, FolderLargeFiles

# Descriptors above those that other tests of this process have left open.
FREE = 200
OTHERS_MAX = 4096


@pytest.fixture
def take_all() -> Iterator[Callable[[], None]]:
    """Takes every free descriptor of this process, at each call."""
    taken: list[int] = []
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(number for number in map(int, os.listdir("/proc/self/fd")) if number < OTHERS_MAX)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + FREE, before[1]))

    def take() -> None:
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            assert error.errno == errno.EMFILE

    yield take
    for file in taken:
        os.close(file)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_new_segments_are_made_without_free_descriptors(
    tmp_path: Path, take_all: Callable[[], None]
) -> None:
    said: SimpleQueue[int | str] = SimpleQueue()
    disk = FileDisk(tmp_path, lambda call, item: call(item), said.put, said.put)
    for token in range(1, 5 * RESERVED):
        take_all()
        disk.create(f"segment-{token}", 8192, b"head")
        disk.commit(f"segment-{token}", 4, b"data", token)
        assert said.get(timeout=20) == token
        take_all()
        assert disk.read(f"segment-{token}", 0, 8) == b"headdata"
    disk.close()


def test_large_messages_are_read_without_free_descriptors(
    tmp_path: Path, take_all: Callable[[], None]
) -> None:
    (tmp_path / f"1{SUFFIX}").write_bytes(b"body")
    said: SimpleQueue[bytes] = SimpleQueue()
    files = FolderLargeFiles(
        tmp_path,
        lambda call, *arguments: call(*arguments),
        lambda file, size: None,
        lambda file: None,
        lambda file, why: None,
        lambda token, data: said.put(data),
    )
    take_all()
    files.read(1, 0, 4, 9)
    assert said.get(timeout=20) == b"body"
    files.close()
