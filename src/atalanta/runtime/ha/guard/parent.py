"""The process of the guard: waits for the end of its child, the broker, and tells the backups.

It passes SIGTERM, SIGINT and SIGHUP on, and ends with the status of the broker. It proves the end by `waitpid`: the
system reports the end of a process when its last thread has ended and its files are closed.

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

from atalanta.runtime.ha.guard.line import receive_report
from atalanta.runtime.ha.guard.watchers import Watchers

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SIGNALS = (signal.SIGCHLD, signal.SIGHUP, *STOP_SIGNALS)
# After the end of the broker: how long a backup that has just connected may take to log in, and how long backups that
# were told have the voter, to take over. They close the connection when they have.
HANDSHAKE_S = 1.0
TAKEOVER_S = 10.0


class GuardLog:
    """The log of a guard, loaded when there is something to say: a guard should be small while it waits."""

    def __init__(self, level: int, as_json: bool) -> None:
        self._level = level
        self._as_json = as_json

    def event(self, name: str, fields: dict[str, object]) -> None:
        """Logs an event."""
        import logging

        from atalanta.runtime.process.logs import configure_logging, log_event

        configure_logging(self._level, self._as_json)
        log_event(logging.getLogger("atalanta.guard"), name, fields)


class GuardParent:
    """The guard of the process `child`, with its end of the line. Create it in the main thread.

    `voter` is the process id of a voter that lives as long as the guard, 0 for none.
    """

    def __init__(self, child: int, line: socket.socket, voter: int, log: GuardLog) -> None:
        self.child = child
        self.voter = voter
        self.status: int | None = None  # of the broker, when it has ended
        self._log = log
        self._line = line
        self._stops = 0
        self._selector = selectors.DefaultSelector()
        self.watchers = Watchers(self._selector)
        line.setblocking(False)
        self._selector.register(line, selectors.EVENT_READ, self._read_line)
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
        self._tell_end(self.status, told)
        self._stay(HANDSHAKE_S, lambda: self.watchers.pending)
        self._stay(TAKEOVER_S, lambda: self.voter and self.watchers.watching)
        if self.voter:
            os.kill(self.voter, signal.SIGKILL)
            os.waitpid(self.voter, 0)
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
        if status > 128 and status - 128 not in STOP_SIGNALS:
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
            if number != signal.SIGCHLD:
                self._pass_on(signal.Signals(number))

    def _pass_on(self, number: signal.Signals) -> None:
        """Passes a signal on. The second request to stop ends the broker at once, as without a guard: the broker leaves
        this count to the guard, because terminals and service managers may signal both processes."""
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
    """Runs the guard with the words of its command line: child, descriptor of the line, voter, log level, format of the
    log. Returns the exit status."""
    child, descriptor, voter, level, log_format = words[:5]
    log = GuardLog(int(level), log_format == "json")
    return GuardParent(int(child), socket.socket(fileno=int(descriptor)), int(voter), log).run()
