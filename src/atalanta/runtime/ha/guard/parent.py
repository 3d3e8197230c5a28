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
from collections.abc import Sequence

from atalanta.runtime.ha.guard.line import receive_report
from atalanta.runtime.ha.guard.watchers import Watchers

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
SIGNALS = (signal.SIGCHLD, signal.SIGHUP, *STOP_SIGNALS)
# How long a backup may take to read the proof. It closes the connection then.
LINGER_S = 1.0


class GuardParent:
    """The guard of the process `child`, with its end of the line. Create it in the main thread."""

    def __init__(self, child: int, line: socket.socket) -> None:
        self.child = child
        self.status: int | None = None  # of the broker, when it has ended
        self.told = 0
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
        self.told = self.watchers.end()
        deadline = time.monotonic() + LINGER_S
        while not self.watchers.empty and (left := deadline - time.monotonic()) > 0:
            self._turn(left)
        return self.status

    def _turn(self, timeout_s: float | None) -> None:
        for key, _ in self._selector.select(timeout_s):
            key.data()

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
                self._pass_on(signal.Signals(number))

    def _pass_on(self, number: signal.Signals) -> None:
        """Passes a signal on. The second request to stop ends the broker at once, as without a guard: the broker leaves
        this count to the guard, because terminals and service managers may signal both processes."""
        if number in STOP_SIGNALS:
            self._stops += 1
            if self._stops > 1:
                os.kill(self.child, signal.SIGKILL)
                os.waitpid(self.child, 0)
                self.status = 128 + number
                return
        os.kill(self.child, number)

    def _reap(self) -> None:
        """Takes the status of the broker if it has ended, and of whatever else a process 1 has to wait for."""
        while self.status is None:
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if ended == 0:
                return
            if ended == self.child:
                code = os.waitstatus_to_exitcode(status)
                self.status = code if code >= 0 else 128 - code


def run_guard(words: Sequence[str]) -> int:
    """Runs the guard with the words of its command line: child, descriptor of the line, log level, format of the log.
    Returns the exit status."""
    child, descriptor, level, log_format = words[:4]
    guard = GuardParent(int(child), socket.socket(fileno=int(descriptor)))
    status = guard.run()
    if status > 128 or guard.told:
        tell_end(guard, int(level), log_format == "json")
    return status


def tell_end(guard: GuardParent, level: int, as_json: bool) -> None:
    """Logs how the broker ended and how many backups were told."""
    # Only now: a guard should be small while it waits.
    import logging

    from atalanta.runtime.process.logs import configure_logging, log_event

    configure_logging(level, as_json)
    log = logging.getLogger("atalanta.guard")
    pid, epoch, told = guard.child, guard.watchers.epoch, guard.told
    assert guard.status is not None
    if guard.status > 128 and guard.status - 128 not in STOP_SIGNALS:
        number = guard.status - 128
        log_event(log, "broker_killed", {"signal": number, "pid": pid, "epoch": epoch, "backups": told})
    else:
        log_event(log, "broker_ended", {"status": guard.status, "pid": pid, "epoch": epoch, "backups": told})
