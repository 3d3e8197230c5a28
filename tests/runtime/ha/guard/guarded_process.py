"""Real processes with a guard for tests: a child that does what it is told, and its guard. Never left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.waiting import DEADLINE_S, until, until_stopped

SECRET = b"s" * 32
EPOCH = 7
# The child prints its id and its guard's port, then does one Python statement a line, and prints "done".
PROGRAM = """
import logging, os, pathlib, signal, subprocess, sys
from atalanta.runtime.ha.guard.start import VoterStart, start_guard
from atalanta.runtime.process.logs import configure_logging
configure_logging(logging.INFO, False)
words = sys.argv[1:]
voter = words and VoterStart("127.0.0.1", int(words[0]), pathlib.Path(words[1]), words[2], *map(float, words[3:]))
line = start_guard(voter or None)
print(os.getpid(), os.getppid(), line.listen("127.0.0.1", 0), flush=True)
for statement in sys.stdin:
    exec(statement)
    print("done", flush=True)
"""


class GuardedProcess:
    """`process`, which was started, its child, the guard, and the child of that, the broker.

    `voter` has the port, the folder and the password of a voter beside the child, and how long it outlives that.
    """

    def __init__(self, *voter: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *(str(each) for each in voter)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.child, self.guard, self.port = (int(word) for word in self._line().split())

    @property
    def voter(self) -> int:
        """The process id of the voter, which starts beside the child; while the guard lives."""
        children = Path(f"/proc/{self.guard}/task/{self.guard}/children")
        until(lambda: len(children.read_text().split()) == 2, "the guard has no voter")
        (found,) = {int(word) for word in children.read_text().split()} - {self.child}
        return found

    def do(self, statement: str) -> None:
        """Lets the child do this, to its end."""
        self.tell(statement)
        assert self._line() == "done\n"

    def tell(self, statement: str) -> None:
        """Lets the child begin to do this."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{statement}\n")
        self.process.stdin.flush()

    def activate(self, epoch: int = EPOCH, secret: bytes = SECRET) -> None:
        """The child says that it is active."""
        self.do(f"line.report({epoch}, {secret!r})")

    def wait(self) -> tuple[int, str]:
        """Waits for the end of what was started. Returns its exit status and what all processes have logged."""
        assert self.process.stderr is not None
        status = self.process.wait(DEADLINE_S)
        until(lambda: not alive(self.child), "the broker outlives what was started")
        return status, self.process.stderr.read()

    def close(self) -> None:
        """Kills what is left."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(DEADLINE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()


@contextmanager
def guarded_process(*voter: object, active: bool = True) -> Iterator[GuardedProcess]:
    """Starts both; they are gone after the block. With `active` the child is active in EPOCH."""
    made = GuardedProcess(*voter)
    try:
        if active:
            made.activate()
        yield made
    finally:
        made.close()


def alive(process: int) -> bool:
    """Returns whether a thread of the process is left. The first one may be a zombie while others still run."""
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
    except (ProcessLookupError, FileNotFoundError):
        return False
    for thread in threads:
        with suppress(ProcessLookupError, FileNotFoundError):  # it ends at this moment
            if (thread / "stat").read_text().rpartition(") ")[2][0] != "Z":
                return True
    return False


def stop(process: int) -> None:
    """Stops a process with all its threads."""
    os.kill(process, signal.SIGSTOP)
    until_stopped(process)
