"""The process that was started: it passes signals on to its child, the guard, and ends with the status of that.

Nothing depends on it. The guard sees its end, also by `kill -9`, at the closed tie: a pair of connected sockets, with
one byte for each signal. Then the guard ends the broker and proves that end.

The process imports nothing of the broker, and of the standard library as little as it can.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from atalanta.runtime.ha.guard.guard_log import GuardLog

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
PASSED_SIGNALS = (*STOP_SIGNALS, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# They are blocked before the first fork, and wait until each process can handle them.
SIGNALS = (signal.SIGCHLD, *PASSED_SIGNALS)


class StartedProcess:
    """The process, with its end of the tie to the process `guard`. The signals must be blocked."""

    def __init__(self, guard: int, tie: int, log: GuardLog) -> None:
        self.guard = guard
        self._tie = tie
        self._log = log
        # Not every system keeps a blocked signal that is ignored.
        for number in SIGNALS:
            signal.signal(number, lambda number, frame: None)

    def run(self) -> int:
        """Waits for the end of the guard. Returns its exit status, 128 + n after the signal n."""
        while True:
            status = self._reap()
            if status is not None:
                return status
            number = signal.sigwait(SIGNALS)
            if number != signal.SIGCHLD:
                self._pass_on(number)

    def _pass_on(self, number: int) -> None:
        try:
            os.write(self._tie, bytes([number]))
        except BrokenPipeError:
            pass  # the guard has ended, and its status comes next

    def _reap(self) -> int | None:
        """Returns the status of the guard if it has ended. Takes those of whatever else a process 1 has to wait for."""
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == 0:
                return None
            if ended == self.guard:
                code = os.waitstatus_to_exitcode(status)
                if code < 0:
                    self._log.event("guard_killed", {"signal": -code, "pid": ended})
                return code if code >= 0 else 128 - code


def run_started(words: Sequence[str]) -> int:
    """Runs the started process with the words of its command line: guard, descriptor of the tie, log level, format of
    the log. Returns the exit status."""
    guard, tie, level, log_format = words[:4]
    return StartedProcess(int(guard), int(tie), GuardLog(int(level), log_format == "json")).run()
