"""The real disk: order, errors, ends, and a writing process killed in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue

import pytest

from atalanta.runtime.disk.disk import FileDisk
from atalanta.runtime.disk.inline_commit import OwnCommits
from atalanta.runtime.ha.epoch_lost import EpochLost
from atalanta.store.block import BLOCK_HEAD_SIZE
from atalanta.store.segment import SEGMENT_HEAD_SIZE
from tests.runtime.disk import journal_writer
from tests.runtime.disk.journal_writer import Writer


class Always(OwnCommits):
    """Every commit is the turn's."""

    def wanted(self, size: int) -> bool:
        return True


class Never(OwnCommits):
    """Every commit is the worker's."""

    def wanted(self, size: int) -> bool:
        return False


class Answers:
    """A disk and what it said, in order; ints are tokens."""

    def __init__(self, folder: Path) -> None:
        self.said: SimpleQueue[int | str] = SimpleQueue()
        # Called on the worker's thread here: the queue makes that safe.
        self.disk = FileDisk(folder, lambda call, item: call(item), self.said.put, self.said.put)

    def next(self) -> int | str:
        return self.said.get(timeout=20)


def test_jobs_are_done_in_order(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    disk = answers.disk
    disk.create("a", 10_000_000, b"head")
    disk.commit("a", 4, b"one", 1)
    disk.create("b", 100, b"")
    disk.commit("b", 0, b"two", 2)
    disk.commit("a", 9_999_997, b"end", 3)
    disk.delete("b")
    assert [answers.next() for _ in range(3)] == [1, 2, 3]
    assert disk.read("a", 0, 8) == b"headone\0"
    assert disk.read("a", 9_999_995, 100) == b"\0\0end"
    disk.close()
    assert disk.names() == ["a"] and disk.size("a") == 10_000_000
    assert (tmp_path / "a").read_bytes() == b"headone" + bytes(9_999_990) + b"end"


def test_close_finishes_what_waits(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.disk.create("a", 1000, b"")
    for token in range(1, 50):
        answers.disk.commit("a", token, b"x", token)
    answers.disk.close()
    answers.disk.close()
    assert [answers.next() for _ in range(49)] == list(range(1, 50))
    assert answers.disk.idle()
    with pytest.raises(RuntimeError, match="closed"):
        answers.disk.commit("a", 0, b"x", 50)


def test_a_failure_is_told_once_and_nothing_follows(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.disk.create("a", 1000, b"")
    answers.disk.commit("missing", 0, b"x", 1)
    answers.disk.commit("a", 0, b"x", 2)
    answers.disk.delete("a")
    why = answers.next()
    assert isinstance(why, str) and str(tmp_path) in why and "missing" in why
    answers.disk.close()
    assert answers.said.empty() and answers.disk.idle()
    assert (tmp_path / "a").read_bytes() == bytes(1000)


def test_a_full_disk_is_a_failure(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    (tmp_path / "full").symlink_to("/dev/full")
    answers = Answers(tmp_path)
    answers.disk.commit("full", 0, b"x", 1)
    why = answers.next()
    assert isinstance(why, str) and "No space left" in why
    answers.disk.close()


def test_repair_is_done_at_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abcdef")
    answers = Answers(tmp_path)
    answers.disk.repair("a", 2, b"XY")
    assert answers.disk.read("a", 0, 6) == b"abXYef"
    with pytest.raises(FileNotFoundError):
        answers.disk.repair("b", 0, b"x")
    answers.disk.close()


def test_a_file_that_is_gone_already_can_be_deleted(tmp_path: Path) -> None:
    """A page file that an operator removed: its messages were all in memory, and the node goes on."""
    answers = Answers(tmp_path)
    answers.disk.create("a", 1000, b"")
    answers.disk.delete("page-1.page")
    answers.disk.commit("a", 0, b"x", 1)
    assert answers.next() == 1
    answers.disk.close()


def test_a_deleted_file_is_not_held_open(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.disk.create("a", 100, b"x")
    answers.disk.commit("a", 0, b"y", 1)
    assert answers.next() == 1
    assert answers.disk.read("a", 0, 1) == b"y"
    answers.disk.delete("a")
    answers.disk.close()
    held = []
    for entry in Path("/proc/self/fd").iterdir() if Path("/proc/self/fd").exists() else []:
        try:
            held.append(os.readlink(entry))
        except FileNotFoundError:
            continue
    assert not [path for path in held if path.startswith(str(tmp_path))]


@pytest.mark.process
def test_a_killed_writer_loses_nothing_confirmed(tmp_path: Path) -> None:
    """SIGKILL in mid-stream, several times on the same journal; each time all is there."""
    last = 0
    for round_number in range(4):
        writer = subprocess.Popen(
            [sys.executable, journal_writer.__file__, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        try:
            for _ in range(30 + 17 * round_number):
                line = writer.stdout.readline()
                assert line, "the writer ended by itself"
            writer.send_signal(signal.SIGKILL)
            lines = line + writer.stdout.read()
        finally:
            writer.kill()
            writer.wait()
            writer.stdout.close()
        # A line that was cut off by the kill says nothing.
        confirmed = int(lines[: lines.rindex(b"\n")].split()[-1])
        assert confirmed > last
        reader = Writer(tmp_path)
        report = reader.journal.recover(reader.records)
        reader.disk.close()
        assert report.last >= confirmed
        assert reader.records.count == report.last
        last = report.last
    assert len(list(tmp_path.iterdir())) > 2


@pytest.mark.process
def test_damage_on_a_real_disk_is_refused(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    writer.journal.recover(writer.records)
    writer.append(20)
    while not writer.journal.idle():
        writer.calls.get(timeout=20)()
    writer.append(1)
    while not writer.journal.idle():
        writer.calls.get(timeout=20)()
    writer.disk.close()
    name = writer.disk.names()[0]
    with open(tmp_path / name, "r+b") as file:
        file.seek(SEGMENT_HEAD_SIZE + BLOCK_HEAD_SIZE + 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 16]))
    done = subprocess.run(
        [sys.executable, journal_writer.__file__, str(tmp_path)], capture_output=True, timeout=60
    )
    assert done.returncode != 0
    assert f"JournalDamaged: journal file {name}, offset {SEGMENT_HEAD_SIZE + BLOCK_HEAD_SIZE}".encode() in done.stderr


def test_a_file_set_aside_becomes_another(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    disk = answers.disk
    disk.create("a", 100, b"head")
    disk.commit("a", 4, b"one", 1)
    disk.set_aside("a", "aside")
    disk.create("b", 100, b"")
    disk.reuse("aside", "c", b"HE")
    disk.commit("c", 7, b"two", 2)
    assert [answers.next() for _ in range(2)] == [1, 2]
    disk.close()
    assert disk.names() == ["b", "c"]
    assert (tmp_path / "c").read_bytes() == b"HEadonetwo" + bytes(90)


def test_a_file_that_was_deleted_is_not_set_aside(tmp_path: Path) -> None:
    """A check of the files may find one damaged whose deletion waits: that is no broken disk."""
    answers = Answers(tmp_path)
    disk = answers.disk
    disk.create("a", 100, b"head")
    disk.delete("a")
    disk.set_aside("a", "aside")
    disk.create("b", 100, b"")
    disk.commit("b", 4, b"one", 1)
    assert answers.next() == 1
    disk.close()
    assert disk.names() == ["b"]


def test_a_file_that_was_replaced_by_another_is_read_anew(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    disk = answers.disk
    disk.create("a", 8, b"old")
    disk.create("spare", 8, b"")
    disk.commit("a", 3, b"1", 1)
    assert answers.next() == 1
    assert disk.read("a", 0, 4) == b"old1"
    disk.reuse("spare", "a", b"new")
    disk.commit("a", 3, b"2", 2)
    assert answers.next() == 2
    assert disk.read("a", 0, 4) == b"new2"
    disk.close()


def test_short_commits_are_done_at_the_end_of_the_turn(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    disk = answers.disk
    disk.commit_at_turn_end()
    disk.create("a", 4_194_304, b"")
    disk.commit("a", 0, b"one", 1)
    assert not disk.end_turn()
    assert answers.next() == 1, "nobody knows yet how long it takes: the worker does it"
    assert disk._own is not None
    disk._own.worker(3, 0.000_1)
    disk.commit("a", 3, b"two", 2)
    assert not disk.idle() and answers.said.empty()
    assert disk.end_turn()
    assert answers.next() == 2 and disk.idle() and not disk.end_turn()
    assert (tmp_path / "a").read_bytes()[:6] == b"onetwo"
    disk.close()


def test_the_worker_gets_its_commit_when_the_output_was_sent(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    disk = answers.disk
    disk.create("a", 4096, b"")
    disk.commit("a", 0, b"zero", 1)
    assert answers.next() == 1
    disk.commit_at_turn_end()
    disk._own = Never()
    disk.commit("a", 4, b"one", 2)
    disk.create("b", 4096, b"")
    disk.commit("b", 0, b"two", 3)
    assert disk.commit_waits and answers.said.empty()
    assert disk.end_turn() == 0
    assert [answers.next(), answers.next()] == [2, 3]
    assert disk.read("a", 0, 7) == b"zeroone" and disk.read("b", 0, 3) == b"two"
    disk.close()


def test_what_comes_behind_a_commit_of_the_turn_keeps_its_place(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    disk = answers.disk
    disk.create("a", 4096, b"")
    disk.commit("a", 0, b"zero", 1)
    assert answers.next() == 1
    disk.commit_at_turn_end()
    disk._own = Always()
    disk.commit("a", 4, b"one", 2)
    disk.set_aside("a", "c")
    disk.create("b", 4096, b"")
    disk.commit("b", 0, b"two", 3)
    assert answers.said.empty() and (tmp_path / "a").read_bytes()[:8] == b"zero" + bytes(4)
    assert disk.end_turn()
    assert [answers.next(), answers.next()] == [2, 3]
    assert disk.names() == ["b", "c"] and (tmp_path / "c").read_bytes()[:7] == b"zeroone"
    disk.commit("b", 3, b"three", 4)
    disk.delete("c")
    disk.close()
    assert answers.next() == 4 and (tmp_path / "b").read_bytes()[:8] == b"twothree"
    assert disk.names() == ["b"] and disk.idle()


def test_nothing_is_done_behind_a_commit_of_the_turn_that_failed(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    disk = answers.disk
    (tmp_path / "a").write_bytes(b"a")
    disk.commit_at_turn_end()
    disk._own = Always()
    disk.commit("missing", 0, b"x", 1)
    disk.delete("a")
    assert disk.end_turn()
    assert "missing" in str(answers.next())
    disk.close()
    assert answers.said.empty() and disk.names() == ["a"]


def test_a_failed_commit_at_the_end_of_the_turn_is_the_end(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    disk = answers.disk
    disk.commit_at_turn_end()
    disk._own = Always()
    disk.commit("missing", 0, b"x", 1)
    assert disk.end_turn()
    assert "missing" in str(answers.next())
    disk.commit("missing", 0, b"x", 2)
    assert not disk.end_turn()
    assert disk.idle() and answers.said.empty()
    disk.close()


@pytest.mark.parametrize("inline", [False, True])
def test_a_lost_epoch_answers_no_commit(tmp_path: Path, inline: bool) -> None:
    """The check comes after the sync: the bytes are there, and nobody is told."""
    said: SimpleQueue[int | str] = SimpleQueue()

    def lost() -> None:
        assert (tmp_path / "a").read_bytes().startswith(b"data")
        raise EpochLost("taken by another")

    disk = FileDisk(tmp_path, lambda call, item: call(item), said.put, said.put, check=lost)
    disk.create("a", 100, b"")
    while not disk.idle():
        pass
    if inline:
        disk._own = Always()
    disk.commit("a", 0, b"data", 7)
    disk.end_turn()
    assert said.get(timeout=20) == "taken by another"
    assert disk.idle()
    disk.close()
    assert said.empty()


def test_a_shared_folder_makes_each_file_anew(tmp_path: Path) -> None:
    """A successor may have linked the one of that name."""
    disk = FileDisk(
        tmp_path, lambda call, item: None, lambda token: None, lambda why: None, check=lambda: None
    )
    (tmp_path / "a").write_bytes(b"linked")
    (tmp_path / "heir").hardlink_to(tmp_path / "a")
    disk.create("a", 3, b"new")
    disk.close()
    assert (tmp_path / "a").read_bytes() == b"new" and (tmp_path / "heir").read_bytes() == b"linked"
    assert not disk.recycles()
