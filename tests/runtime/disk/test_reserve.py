"""A full disk: the reserve becomes segments, and a spare that cannot be made ends nothing."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

import pytest

from atalanta.runtime.disk.disk import FileDisk
from atalanta.runtime.disk.reserve import MARGIN_BYTES, NAMES, DiskReserve
from tests.runtime.disk.limited import LimitedRoom

SEGMENT = 3 << 20
RESERVE = 2 * (SEGMENT + MARGIN_BYTES)


class Answers:
    """A disk with a reserve for segments of 1 MiB, and what it said: tokens, failures, names without room."""

    def __init__(self, folder: Path) -> None:
        self.reserve = DiskReserve(folder, SEGMENT)
        self.filled = self.reserve.fill()
        self.said: SimpleQueue[tuple[str, object]] = SimpleQueue()
        self.disk = FileDisk(
            folder,
            lambda call, item: call(item),
            lambda token: self.said.put(("durable", token)),
            lambda why: self.said.put(("failed", why)),
            reserve=self.reserve,
            no_room=lambda name: self.said.put(("no room", name)),
        )

    def all(self) -> list[tuple[str, object]]:
        self.disk.close()
        return [self.said.get() for _ in range(self.said.qsize())]


def test_new_files_come_from_the_reserve_and_then_only_spares_are_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LimitedRoom(monkeypatch, tmp_path, RESERVE + SEGMENT + 100)
    answers = Answers(tmp_path)
    assert answers.filled
    disk = answers.disk
    for number in range(1, 4):
        disk.create(f"a{number}", SEGMENT, b"head")
        disk.commit(f"a{number}", 4, b"data", number)
    disk.create_spare("a4", SEGMENT, b"head")
    disk.commit("a3", 8, b"more", 4)
    assert answers.all() == [
        ("durable", 1),
        ("no room", ""),
        ("durable", 2),
        ("no room", ""),
        ("durable", 3),
        ("no room", "a4"),
        ("durable", 4),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a1", "a2", "a3"]
    for number in range(1, 4):
        data = (tmp_path / f"a{number}").read_bytes()
        assert len(data) == SEGMENT and data[:8] == b"headdata" and not any(data[16:])


def test_a_needed_file_without_room_ends_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LimitedRoom(monkeypatch, tmp_path, 100)
    answers = Answers(tmp_path)
    assert not answers.filled and not list(tmp_path.iterdir())
    answers.disk.create("a1", SEGMENT, b"head")
    answers.disk.commit("a1", 4, b"data", 1)
    ((kind, why),) = answers.all()
    assert kind == "failed" and "no space left" in str(why)


def test_the_reserve_is_filled_again_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = LimitedRoom(monkeypatch, tmp_path, RESERVE + 100)
    reserve = DiskReserve(tmp_path, SEGMENT)
    assert reserve.fill()
    assert reserve.take(tmp_path / "a", SEGMENT, b"head")
    assert reserve.fill() is False
    room.bytes += SEGMENT
    assert reserve.fill()
    assert {path.name for path in tmp_path.iterdir()} == {"a", *NAMES}


def test_a_file_larger_than_the_reserve_is_not_made_of_it(tmp_path: Path) -> None:
    reserve = DiskReserve(tmp_path, SEGMENT)
    assert reserve.fill()
    assert not reserve.take(tmp_path / "a", SEGMENT + MARGIN_BYTES + 1, b"")
