"""The start of a guard: the calling process becomes the guard, and its child goes on as the broker.

The child is a fork, so nothing is read or imported twice. The process that was started keeps its id and turns into a
small one by `exec`.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from atalanta.runtime.ha.guard.line import GuardLine
from atalanta.runtime.ha.guard.parent import SIGNALS, run_guard
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import JsonFormatter, log_event
from atalanta.runtime.process.signals import StopSignals

log = logging.getLogger("atalanta.guard")

PR_SET_PDEATHSIG = 1
PACKAGE = str(Path(__file__).resolve().parents[4])
PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from atalanta.runtime.ha.guard.parent import run_guard; sys.exit(run_guard(sys.argv[2:]))"
)
VOTER_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from atalanta.runtime.ha.guard.voter import run_voter; sys.exit(run_voter(sys.argv[2:]))"
)


@dataclass(frozen=True)
class VoterStart:
    """The voter of a guard: where it listens, its folder, and the password of the group."""

    host: str
    port: int
    folder: Path
    password: str


def start_guard(voter: VoterStart | None = None) -> GuardLine | None:
    """Returns in a new process, the broker; the calling one becomes its guard and never returns. Call it in the main
    thread, while there is no other, no event loop, and no lock or port of the broker.

    Returns None, in the calling process, if the system allows no further process: then there is no guard.
    """
    line, guards_line = socket.socketpair()
    sys.stdout.flush()
    sys.stderr.flush()
    # An ignored SIGCHLD, inherited from whoever started this process, would hide the status of the child.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Signals wait until the guard can pass them on.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    guard = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        line.close()
        guards_line.close()
        log_event(log, "guard_not_started", {"why": str(error)})
        return None
    if child:
        line.close()
        become_guard(child, guards_line, voter)
    guards_line.close()
    end_with(guard, line)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    StopSignals.second_ends = False
    log_event(log, "guard_started", {"pid": os.getpid(), "guard": guard})
    return GuardLine(line)


def become_guard(child: int, line: socket.socket, voter: VoterStart | None) -> None:
    """Turns this process into the guard of `child`, and never returns."""
    root = logging.getLogger()
    as_json = any(isinstance(handler.formatter, JsonFormatter) for handler in root.handlers)
    log_words = [str(root.level), "json" if as_json else "text"]
    voter_process = start_voter(voter, log_words) if voter is not None else 0
    words = [str(child), str(line.fileno()), str(voter_process), *log_words]
    line.set_inheritable(True)
    # The rest is for those who look at a list of processes.
    command = [sys.executable, "-S", "-s", "-P", "-c", PROGRAM, PACKAGE, *words, "guard of", *sys.argv]
    try:
        if sys.executable:  # a program that has Python inside has none
            os.execv(sys.executable, command)
    except OSError:  # no memory, or the file is gone
        pass
    os._exit(run_guard(words))  # a large guard does the same


def start_voter(voter: VoterStart, log_words: list[str]) -> int:
    """Starts the voter as another child of this process. Returns its id, 0 if the system allows none."""
    guard = os.getpid()
    # The password fits into the buffer of the pipe, and no list of processes shows it.
    source, sink = os.pipe()
    os.write(sink, voter.password.encode())
    os.close(sink)
    os.set_inheritable(source, True)
    words = [*log_words, voter.host, str(voter.port), str(voter.folder), str(source)]
    try:
        child = os.fork()
    except OSError as error:
        log_event(log, "voter_not_started", {"at": f"{voter.host}:{voter.port}", "why": str(error)})
        child = 0
    else:
        if child == 0:
            become_voter(guard, words)
    os.close(source)
    return child


def become_voter(guard: int, words: list[str]) -> None:
    """Turns this process into the voter, and never returns."""
    set_parent_death_signal()
    if os.getppid() == guard and sys.executable:
        try:
            os.execv(sys.executable, [sys.executable, "-P", "-c", VOTER_PROGRAM, PACKAGE, *words])
        except OSError as error:
            log_event(log, "voter_not_started", {"at": ":".join(words[2:4]), "why": str(error)})
    os._exit(exit_codes.BUG)


def end_with(guard: int, line: socket.socket) -> None:
    """Lets this process end when the guard does, however that ends."""
    if not set_parent_death_signal():
        thread = threading.Thread(target=end_with_line, args=[line], name="guard", daemon=True)
        thread.start()
    if os.getppid() != guard:  # it ended before the system knew what to do then
        os._exit(128 + signal.SIGKILL)


def set_parent_death_signal() -> bool:
    """Asks Linux for a SIGKILL at the end of the parent. Returns False on other systems."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return prctl is not None and prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) == 0


def end_with_line(line: socket.socket) -> None:
    """Waits for the end of the line, which the guard never writes to, and ends the process."""
    line.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)
