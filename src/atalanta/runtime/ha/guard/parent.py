"""The process of the guard: waits for the end of its child, the broker, and tells the backups.

Its parent is the process that was started. It passes the signals of that on, and ends with the status of the broker.
When the started process ends, whatever ended it, the guard ends the broker. It proves the end by `waitpid`: the system
reports the end of a process when its last thread has ended and its files are closed.

The process imports nothing of the broker, and of the standard library as little as it needs.
"""

from __future__ import annotations

import os
import select
import selectors
import signal
import socket
import time
from collections.abc import Callable, Sequence

from atalanta.runtime.ha.guard.guard_log import GuardLog
from atalanta.runtime.ha.guard.line import CONTAINER_STAY_S, receive_report
from atalanta.runtime.ha.guard.started_process import SIGNALS, STOP_SIGNALS
from atalanta.runtime.ha.guard.watchers import GuardConnections

# After the end of the broker: how long a backup that has just connected may take to log in.
HANDSHAKE_S = 1.0


class GuardParent:
    """The guard of the process `child`, with its ends of the line and of the tie. Create it in the main thread.

    `voter` is the process id of its voter, 0 for none, and `life` the descriptor whose end tells that one that the
    broker has ended. The voter outlives the guard then, by its own `stay_s`.
    """

    def __init__(
        self, child: int, line: socket.socket, tie: socket.socket, voter: int, life: int, log: GuardLog
    ) -> None:
        self.child = child
        self.voter = voter
        self.status: int | None = None  # of the broker, when it has ended
        self.alone = False  # the started process has ended
        self._in_container = os.getppid() == 1  # the started process is the first one, and its end that of all others
        self._life = life
        self._log = log
        self._line = line
        self._tie = tie
        self._stops = 0
        self._selector = selectors.DefaultSelector()
        self.watchers = GuardConnections(self._selector)
        for source, act in ((line, self._read_line), (tie, self._read_tie)):
            source.setblocking(False)
            self._selector.register(source, selectors.EVENT_READ, act)
        self._wake, wake = socket.socketpair()
        for end in (self._wake, wake):
            end.setblocking(False)
        self._writes_signals = wake
        self._selector.register(self._wake, selectors.EVENT_READ, self._read_signals)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda number, frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def run(self) -> int:
        """Waits for the end of the broker and proves it to whoever watches. Returns its exit status, 128 + n after
        the signal n."""
        self._reap()  # it may have ended before there was a handler
        while self.status is None:
            self._turn(self.watchers.timeout_s())
        # What the broker had written before its end is still in the line.
        while self._read_line():
            pass
        told = self.watchers.end()
        if self._life >= 0:
            os.close(self._life)
        if self.voter:
            os.kill(self.voter, signal.SIGCONT)  # somebody may have stopped it, and it has to end
        self._tell_end(self.status, told)
        self._stay(HANDSHAKE_S, lambda: self.watchers.pending)
        self.watchers.listen_no_more()
        if self._in_container and not self.alone:
            self._stay(CONTAINER_STAY_S, lambda: self.voter)
        return self.status

    def _stay(self, seconds: float, needed: Callable[[], int]) -> None:
        """Goes on while it is needed, at most `seconds`. A further request to stop ends it."""
        deadline = time.monotonic() + seconds
        stops = self._stops
        while needed() and self._stops == stops and (left := deadline - time.monotonic()) > 0:
            self._turn(left)

    def _turn(self, timeout_s: float | None) -> None:
        for key, _ in self._selector.select(timeout_s):
            key.data()

    def _tell_end(self, status: int, told: int) -> None:
        """Logs how the broker ended and how many backups were told."""
        pid, epoch = self.child, self.watchers.epoch
        if self.alone:
            self._log.event("started_process_lost", {"pid": pid, "epoch": epoch, "backups": told})
        elif status > 128 and status - 128 not in STOP_SIGNALS:
            self._log.event("broker_killed", {"signal": status - 128, "pid": pid, "epoch": epoch, "backups": told})
        elif told:
            self._log.event("broker_ended", {"status": status, "pid": pid, "epoch": epoch, "backups": told})

    def _read_line(self) -> bool:
        """Takes one report. Returns False if there is none."""
        if self._line.fileno() < 0:
            return False
        try:
            report = receive_report(self._line)
        except (BlockingIOError, ConnectionResetError):
            return False
        if report is None:
            self._selector.unregister(self._line)
            self._line.close()
            return False
        epoch, secret, descriptor = report
        if descriptor is not None:
            self.watchers.listen(socket.socket(fileno=descriptor))
        else:
            self.watchers.activate(epoch, secret)
        return True

    def _read_signals(self) -> None:
        try:
            numbers = self._wake.recv(select.PIPE_BUF)
        except BlockingIOError:
            return
        if signal.SIGCHLD in numbers:
            self._reap()
        for number in numbers:
            if number != signal.SIGCHLD and self.status is None:
                os.kill(self.child, number)

    def _read_tie(self) -> None:
        """Takes what the started process has got, and its end."""
        numbers = self._tie.recv(select.PIPE_BUF)
        for number in numbers:
            self._pass_on(signal.Signals(number))
        if not numbers:
            self._selector.unregister(self._tie)
            self._tie.close()
            self.alone = self.status is None
            if self.voter:
                os.kill(self.voter, signal.SIGCONT)  # somebody may have stopped all of them
            if self.alone:
                os.kill(self.child, signal.SIGKILL)

    def _pass_on(self, number: signal.Signals) -> None:
        """Passes a signal of the started process on. The second request to stop ends the broker at once, as without a
        guard. Only those of the started process count: a terminal or a service manager may signal all processes."""
        self._stops += number in STOP_SIGNALS
        if self.status is not None:
            return
        if number in STOP_SIGNALS and self._stops > 1:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            self.status = 128 + number
        else:
            os.kill(self.child, number)

    def _reap(self) -> None:
        """Takes the status of the broker if it has ended, and of whatever else a process 1 has to wait for."""
        while True:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if ended == 0:
                return
            code = os.waitstatus_to_exitcode(status)
            if ended == self.child:
                self.status = code if code >= 0 else 128 - code
            elif ended == self.voter:
                self.voter = 0
                if code < 0:  # else it has said why
                    self._log.event("voter_lost", {"pid": ended, "signal": -code})


def run_guard(words: Sequence[str]) -> int:
    """Runs the guard with the words of its command line: child, descriptors of the line and of the tie, voter,
    descriptor of its life, log level, format of the log. Returns the exit status."""
    child, line, tie, voter, life, level, log_format = words[:7]
    log = GuardLog(int(level), log_format == "json")
    line_end, tie_end = socket.socket(fileno=int(line)), socket.socket(fileno=int(tie))
    return GuardParent(int(child), line_end, tie_end, int(voter), int(life), log).run()
