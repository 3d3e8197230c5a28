"""The entry point of the `atalanta` command: arguments in, exit status out."""

from __future__ import annotations

import sys

from atalanta.cli.run_line import read_run_line

INTERRUPTED = 130  # as a shell has it for SIGINT


def main() -> None:
    """`run`, as it is usually written, starts without typer: a node would keep that, and what it brings, in memory
    for as long as it lives. Everything else, help and mistakes included, is typer's.
    """
    line = read_run_line(sys.argv[1:])
    if line is None:
        from atalanta.cli.application import application

        application()
        return
    try:
        from atalanta.cli.run import run_in_foreground

        status = run_in_foreground(line.broker_xml, line.log_level, line.web, line.log_json)
    except KeyboardInterrupt:  # before the loop listened to it
        status = INTERRUPTED
    sys.exit(status)
