"""`atalanta run`: logging, the ready line, error messages of the start, exit statuses."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from atalanta import __version__
from atalanta.app.run import run_broker
from atalanta.app.startup_error import StartupError
from atalanta.runtime.ha.guard.start import set_parent_death_signal
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.build import build_name
from atalanta.runtime.process.event_loop import loop_name
from atalanta.runtime.process.logs import configure_logging, log_event

if TYPE_CHECKING:
    from atalanta.ha.policy_elements import HostedBackup

LOG_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def run_in_foreground(
    broker_xml: Path,
    log_level: str,
    web: str | None = None,
    log_json: bool = False,
    guarded: bool = True,
    hosted: HostedBackup | None = None,
    alone: bool = False,
    console: str | None = None,
) -> int:
    """Runs the node until a signal. Returns the exit status (runtime/process/exit_codes.py). The log goes to
    stderr.

    `broker_xml` may be the folder that has etc/broker.xml. `hosted`: the node is a backup that its node hosts. `alone`:
    there are no other brokers, whatever the file says. `console`: see run_broker.
    """
    open_streams()
    if broker_xml.is_dir():
        broker_xml = broker_xml / "etc" / "broker.xml"
    level = LOG_LEVELS.get(log_level.lower())
    if level is None:
        configure_logging(logging.INFO, log_json)
        why = f"--log-level {log_level}: none of {', '.join(LOG_LEVELS)}"
        return refused_start(StartupError(exit_codes.USAGE, [why]), log_json)
    configure_logging(level, log_json)
    # Until the event loop handles it, a SIGHUP must not end a node that is still reading its journal.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    log = logging.getLogger("atalanta")
    build = build_name()
    log_event(
        log,
        "process_started",
        {"version": __version__, "build": build, "loop": loop_name(), "pid": os.getpid()},
    )
    if build == "interpreted":
        why = "mypyc did not compile this installation: a node does a fraction of its work"
        log_event(log, "interpreted_build_slow", {"why": why})
    try:
        return run_broker(broker_xml, print_ready, web, guarded, hosted, alone, console)
    except StartupError as error:
        return refused_start(error, log_json)
    except Exception as error:
        log_event(log, "node_bug", {"input": "start"}, error)
        return exit_codes.BUG


def run_hosted(words: list[str]) -> int:
    """Runs a hosted backup until a signal, or until the process of its host ends. Returns the exit status.

    `words`: broker.xml, log level, "json" or "text", "guarded" or "alone", process id of the host, the HostedBackup.
    """
    from atalanta.ha.policy_elements import HostedBackup  # few nodes are hosted

    broker_xml, level, form, guarded, host, described = words
    hosted = HostedBackup(**json.loads(described))
    set_parent_death_signal(signal.SIGKILL)
    if os.getppid() != int(host):  # it ended before the system knew what to do then
        return exit_codes.STOPPED
    return run_in_foreground(Path(broker_xml), level, None, form == "json", guarded == "guarded", hosted)


def refused_start(error: StartupError, log_json: bool) -> int:
    """Writes the reasons to stderr, with `log_json` as one event a line. Returns the exit status."""
    for line in error.lines:
        if log_json:
            log = logging.getLogger("atalanta")
            log_event(log, "start_fatal", {"status": error.status, "why": line})
        else:
            print(line, file=sys.stderr)
    return error.status


def open_streams() -> None:
    """Opens the null device in the place of each standard stream that was closed at the start (`>&-`).

    Else a socket or a file of the journal would get its number, and what some process prints.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest number that is free
    if sys.stdout is None:
        sys.stdout = open(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = open(2, "w", closefd=False)


def print_ready(words: list[str]) -> None:
    """Prints the only line on stdout when every acceptor accepts; scripts wait for it.

    If nobody can read it any more (a closed pipe, a full disk), the node goes on without: the log says so, once.
    """
    line = " ".join(["ready", *words])
    try:
        print(line, flush=True)
    except OSError as error:
        log_event(logging.getLogger("atalanta"), "ready_line_lost", {"line": line, "why": str(error)})
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
