"""The start of a guarded broker: three processes, each the child of the one before it.

    the process that was started    passes signals on (started_process.py)
    the guard                       waits for the broker, and proves its end (parent.py)
    the broker                      goes on in the code that has called `start_guard`

The children are forks, so nothing is read or imported twice. The first two turn into small processes by `exec`, and the
first one keeps its process id.
"""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from atalanta.runtime.ha.guard.line import TAKEOVER_S, GuardLine
from atalanta.runtime.ha.guard.parent import run_guard
from atalanta.runtime.ha.guard.started_process import SIGNALS, run_started
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import JsonFormatter, log_event
from atalanta.runtime.process.signals import StopSignals

log = logging.getLogger("atalanta.guard")

PR_SET_PDEATHSIG = 1
PACKAGE = str(Path(__file__).resolve().parents[4])
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from {} import {} as run; sys.exit(run(sys.argv[2:]))"
STARTED_PROGRAM = PROGRAM.format("atalanta.runtime.ha.guard.started_process", "run_started")
GUARD_PROGRAM = PROGRAM.format("atalanta.runtime.ha.guard.parent", "run_guard")
VOTER_PROGRAM = PROGRAM.format("atalanta.runtime.ha.guard.voter", "run_voter")
NO_SITE = ("-S", "-s", "-P")


@dataclass(frozen=True)
class VoterStart:
    """The voter of a guard: where it listens, its folder, and the password of the group.

    `stay_s`: how long it outlives the broker at most.
    """

    host: str
    port: int
    folder: Path
    password: str
    stay_s: float = TAKEOVER_S


def start_guard(voter: VoterStart | None = None) -> GuardLine | None:
    """Returns in a new process, the broker. The calling one never returns: it waits for a second new one, the guard.
    Call it in the main thread, while there is no other, no event loop, and no lock or port of the broker.

    Returns None, in the calling process, if the system allows no further processes: then there is no guard.
    """
    tie, guards_tie = socket.socketpair()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # it was closed at the start of this process
            stream.flush()
    # An ignored SIGCHLD, inherited from whoever started this process, would hide the status of the child.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    started = os.getpid()
    try:
        guard = os.fork()
        if guard:
            await_broker(guard, tie, guards_tie)
    except OSError as error:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        tie.close()
        guards_tie.close()
        log_event(log, "guard_not_started", {"why": str(error)})
        return None
    if guard == 0:
        tie.close()
        line = fork_broker(started, guards_tie, voter)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return line
    words = [str(guard), str(tie.fileno()), *log_words()]
    tie.set_inheritable(True)
    become(STARTED_PROGRAM, run_started, words, "started")


def await_broker(guard: int, tie: socket.socket, guards_tie: socket.socket) -> None:
    """Waits until the guard has a child. Raises OSError if it has none: then it ends."""
    guards_tie.close()
    answer = tie.recv(1)
    if answer != b"\0":
        os.waitpid(guard, 0)
        number = answer[0] if answer else errno.ECHILD
        raise OSError(number, os.strerror(number))


def fork_broker(started: int, tie: socket.socket, voter: VoterStart | None) -> GuardLine:
    """Returns in a new process, the broker; the calling one becomes its guard and never returns."""
    guard = os.getpid()
    line, guards_line = socket.socketpair()
    try:
        child = os.fork()
    except OSError as error:
        tie.send(bytes([error.errno or errno.EAGAIN]))
        os._exit(exit_codes.BUG)
    if child:
        line.close()
        tie.send(b"\0")
        become_guard(child, guards_line, tie, voter)
    tie.close()
    guards_line.close()
    end_with(guard, line)
    StopSignals.second_ends = False
    log_event(log, "guard_started", {"pid": os.getpid(), "guard": guard, "started": started})
    return GuardLine(line)


def become_guard(child: int, line: socket.socket, tie: socket.socket, voter: VoterStart | None) -> NoReturn:
    """Turns this process into the guard of `child`, and never returns."""
    # The end of the started process wakes a guard that was stopped. It sees that end at the tie.
    set_parent_death_signal(signal.SIGCONT)
    voter_process, life = start_voter(voter) if voter is not None else (0, -1)
    words = [str(child), str(line.fileno()), str(tie.fileno()), str(voter_process), str(life), *log_words()]
    line.set_inheritable(True)
    tie.set_inheritable(True)
    become(GUARD_PROGRAM, run_guard, words, "guard of")


def become(program: str, run: Callable[[Sequence[str]], int], words: list[str], title: str) -> NoReturn:
    """Turns this process into a small one that runs `program`, and never returns.

    `run` does the same without that. `title` and what follows it are for those who look at a list of processes.
    """
    command = [sys.executable, *NO_SITE, "-c", program, PACKAGE, *words, title, *sys.argv]
    try:
        if sys.executable:  # a program that has Python inside has none
            os.execv(sys.executable, command)
    except OSError:  # no memory, or the file is gone
        pass
    os._exit(run(words))


def log_words() -> list[str]:
    """Returns level and form of the log, for a command line."""
    root = logging.getLogger()
    as_json = any(isinstance(handler.formatter, JsonFormatter) for handler in root.handlers)
    return [str(root.level), "json" if as_json else "text"]


def start_voter(voter: VoterStart) -> tuple[int, int]:
    """Starts the voter as another child of this process, the guard.

    Returns its process id, 0 if the system allows none, and the descriptor whose end tells it that the broker has
    ended.
    """
    # The password fits into the buffer of the pipe, and no list of processes shows it.
    source, sink = os.pipe()
    os.write(sink, voter.password.encode())
    os.close(sink)
    seen, life = os.pipe()
    words = [*log_words(), voter.host, str(voter.port), str(voter.folder), str(source), str(seen),
             str(voter.stay_s)]
    try:
        child = os.fork()
    except OSError as error:
        log_event(log, "voter_not_started", {"at": f"{voter.host}:{voter.port}", "why": str(error)})
        child = 0
    else:
        if child == 0:
            os.close(life)
            os.set_inheritable(source, True)
            os.set_inheritable(seen, True)
            become_voter(words)
    os.close(source)
    os.close(seen)
    os.set_inheritable(life, True)
    return child, life


def become_voter(words: list[str]) -> NoReturn:
    """Turns this process into the voter, and never returns."""
    if sys.executable:
        try:
            os.execv(sys.executable, [sys.executable, "-P", "-c", VOTER_PROGRAM, PACKAGE, *words])
        except OSError as error:
            log_event(log, "voter_not_started", {"at": ":".join(words[2:4]), "why": str(error)})
    os._exit(exit_codes.BUG)


def end_with(guard: int, line: socket.socket) -> None:
    """Lets this process end when the guard does, however that ends."""
    if not set_parent_death_signal(signal.SIGKILL):
        thread = threading.Thread(target=end_with_line, args=[line], name="guard", daemon=True)
        thread.start()
    if os.getppid() != guard:  # it ended before the system knew what to do then
        os._exit(128 + signal.SIGKILL)


def set_parent_death_signal(number: signal.Signals) -> bool:
    """Asks Linux for this signal at the end of the parent. Returns False on other systems."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    return prctl is not None and prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0) == 0


def end_with_line(line: socket.socket) -> None:
    """Waits for the end of the line, which the guard never writes to, and ends the process."""
    line.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)
