"""The folder of large messages: what is appended can be read and synced, and a bad file stops no other."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from atalanta.runtime.disk.large_files import OPEN_FILES_MAX, FolderLargeFiles


class Folder:
    """The port and its answers, in order."""

    def __init__(self, path: Path) -> None:
        self.answers: queue.SimpleQueue[tuple[object, ...]] = queue.SimpleQueue()
        self.path = path
        self.port = FolderLargeFiles(
            path,
            self._soon,
            lambda file, size: self.answers.put(("written", file, size)),
            lambda file: self.answers.put(("synced", file)),
            lambda file, why: self.answers.put(("failed", file, why)),
            lambda token, data: self.answers.put(("read", token, data)),
        )

    def _soon(self, call: Callable[..., None], *arguments: object) -> None:
        call(*arguments)

    def answer(self) -> tuple[object, ...]:
        return self.answers.get(timeout=20)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    made.port.close()


def test_what_is_appended_can_be_read_back(folder: Folder) -> None:
    port = folder.port
    port.create(7, True)
    port.append(7, b"hello ")
    port.append(7, b"world")
    port.read(7, 3, 100, 1)
    port.sync(7)
    assert folder.answer() == ("written", 7, 6)
    assert folder.answer() == ("written", 7, 5)
    assert folder.answer() == ("read", 1, b"lo world")
    assert folder.answer() == ("synced", 7)
    assert port.files() == {7: 11}
    port.delete(7)
    port.read(7, 0, 10, 2)
    assert folder.answer() == ("read", 2, b"")
    assert port.files() == {}


def test_more_files_than_are_kept_open(folder: Folder) -> None:
    port = folder.port
    count = OPEN_FILES_MAX + 10
    for file in range(count):
        port.create(file, False)
    for file in range(count):
        port.append(file, b"ab")
    for file in range(count):
        port.append(file, b"cd")
    for file in range(count):
        port.read(file, 0, 10, file)
    seen = [folder.answer() for _ in range(3 * count)]
    assert seen[2 * count :] == [("read", file, b"abcd") for file in range(count)]


def test_a_file_that_cannot_be_written_is_told_once_and_stops_no_other(folder: Folder) -> None:
    port = folder.port
    (folder.path / "1.msg").mkdir()
    port.create(1, True)
    port.append(1, b"x")
    port.sync(1)
    port.create(2, True)
    port.append(2, b"x")
    kind, file, _ = folder.answer()
    assert (kind, file) == ("failed", 1)
    assert folder.answer() == ("written", 2, 1)


def test_other_files_are_not_ours(folder: Folder) -> None:
    for name in ("1.msg", "a.msg", "2.txt", "3"):
        (folder.path / name).write_bytes(b"xyz")
    assert folder.port.files() == {1: 3}


def test_a_file_gets_another_number_when_it_is_synced(folder: Folder) -> None:
    port = folder.port
    port.create(7, True)
    port.append(7, b"old")
    port.read(7, 0, 10, 1)
    port.create(99, True)
    port.append(99, b"new body")
    port.rename(99, 7)
    port.read(7, 0, 10, 2)
    port.append(7, b"!")
    port.read(7, 0, 10, 3)
    answers = [folder.answer() for _ in range(7)]
    assert answers[1] == ("read", 1, b"old")
    assert answers[3:] == [("synced", 7), ("read", 2, b"new body"), ("written", 7, 1), ("read", 3, b"new body!")]
    assert port.files() == {7: 9}


def test_a_file_that_is_not_there_gets_no_other_number(folder: Folder) -> None:
    folder.port.rename(99, 7)
    kind, file, why = folder.answer()
    assert (kind, file) == ("failed", 99)
    assert "No such file" in str(why)
