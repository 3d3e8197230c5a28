"""Real processes that write one after the other into a shared store; the one before is killed, or paused and woken.

What a process has printed it has confirmed: every successor must have it, and a late one confirms nothing.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from atalanta.runtime.ha.shared_store import look_at_store
from tests.source_tree import ROOT

LEASE_MS = 400
pytestmark = pytest.mark.process


class WriterProcess:
    """A process of the pair, with every line that it has printed."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.runtime.ha.epoch_writer", str(folder), str(LEASE_MS), *options],
            stdout=subprocess.PIPE, cwd=ROOT, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._data = b""
        self._folder = folder

    def read(self, wait_s: float) -> bool:
        """Reads what is there, or what comes soon; False at the end of the output."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], wait_s)[0]:
            return True
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        self._data += data
        return bool(data)

    def lines(self) -> list[str]:
        """Returns all whole lines: the first names the epoch, the others are confirmed lsns."""
        return self._data.decode().split("\n")[:-1]

    def confirmed(self) -> int:
        return max((int(line) for line in self.lines()[1:]), default=0)

    def begun(self) -> tuple[int, int]:
        """Returns the epoch, and how many records it has found."""
        end = time.monotonic() + 30
        while not self.lines():
            assert self.read(0.1) and time.monotonic() < end, "the process has ended, or waits for too long"
        # Until its first renewal the record asks the others for the patience of a long start.
        while (record := look_at_store(self._folder / "journal").record) is None or record.patience_ns:
            assert time.monotonic() < end, "the process does not renew its lease"
            time.sleep(0.01)
        words = self.lines()[0].split()
        return int(words[1]), int(words[3])

    def write_to(self, more: int) -> None:
        """Waits until so many more records are confirmed."""
        end = self.confirmed() + more
        while self.confirmed() < end:
            assert self.read(5), "the process has ended"

    def rest(self) -> None:
        """Reads everything up to the end of the process."""
        while self.read(10):
            pass
        self.process.wait(10)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[WriterProcess, WriterProcess]]:
    """A process that writes, and one that waits."""
    first = WriterProcess(tmp_path)
    assert first.begun()[0] == 1
    second = WriterProcess(tmp_path)
    yield first, second
    first.close()
    second.close()


def test_a_killed_process_is_followed_at_once(pair: tuple[WriterProcess, WriterProcess]) -> None:
    first, second = pair
    first.write_to(2_000)
    time.sleep(0.5)  # the second one has seen the lock of the first
    first.process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    first.rest()
    epoch, found = second.begun()
    assert epoch == 2 and found >= first.confirmed()
    assert time.monotonic() - killed < 20  # by the lock; a busy machine takes its time
    second.write_to(500)


def test_a_paused_process_confirms_nothing_after_its_successor(pair: tuple[WriterProcess, WriterProcess]) -> None:
    first, second = pair
    first.write_to(2_000)
    first.process.send_signal(signal.SIGSTOP)
    epoch, found = second.begun()
    assert epoch == 2
    second.write_to(500)
    first.process.send_signal(signal.SIGCONT)
    first.rest()
    assert first.process.returncode != 0
    assert found >= first.confirmed()
    second.write_to(500)


def test_each_of_many_killed_or_paused_processes_is_followed(tmp_path: Path) -> None:
    processes = [WriterProcess(tmp_path)]
    paused: list[WriterProcess] = []
    try:
        confirmed = 0
        for turn in range(3):
            current = processes[-1]
            epoch, found = current.begun()
            assert epoch == turn + 1 and found >= confirmed
            processes.append(WriterProcess(tmp_path))
            current.write_to(300 * (turn + 1))
            current.process.send_signal(signal.SIGSTOP if turn % 2 else signal.SIGKILL)
            if turn % 2:
                paused.append(current)
            else:
                current.rest()
            current.read(0.1)
            confirmed = max(confirmed, current.confirmed())
        assert processes[-1].begun()[1] >= confirmed
        for late in paused:
            late.process.send_signal(signal.SIGCONT)
            late.rest()
            assert late.confirmed() <= processes[-1].begun()[1]
        processes[-1].write_to(300)
    finally:
        for each in processes:
            each.close()


@pytest.mark.soak
def test_a_process_that_does_not_look_confirms_what_its_successor_lacks(tmp_path: Path) -> None:
    """The planted fault: this is what the tests above would find."""
    first = WriterProcess(tmp_path, "--unchecked")
    first.begun()
    second = WriterProcess(tmp_path, "--keep")
    try:
        first.write_to(500)
        first.process.send_signal(signal.SIGSTOP)
        found = second.begun()[1]
        first.process.send_signal(signal.SIGCONT)
        first.write_to(1_000)
        assert first.confirmed() > found
    finally:
        first.close()
        second.close()


@pytest.mark.soak
def test_pauses_and_kills_at_any_instant(tmp_path: Path) -> None:
    for turn in range(9):
        folder = tmp_path / f"{turn}"
        folder.mkdir()
        first = WriterProcess(folder)
        second = WriterProcess(folder)
        try:
            while not first.lines() and not second.lines():
                first.read(0.02)
                second.read(0.02)
            if second.lines():
                first, second = second, first
            first.write_to(50 + 97 * turn)
            time.sleep(0.007 * turn)
            first.process.send_signal(signal.SIGSTOP if turn % 3 else signal.SIGKILL)
            found = second.begun()[1]
            second.write_to(100)
            first.process.send_signal(signal.SIGCONT)
            first.rest()
            assert found >= first.confirmed()
            second.write_to(100)
        finally:
            first.close()
            second.close()
