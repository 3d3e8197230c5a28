"""The entry point of the `atalanta` command: arguments in, exit status out."""

from __future__ import annotations

import gc
import sys

from atalanta.cli.run_line import read_run_line
from atalanta.runtime.process.exit_codes import INTERRUPTED


def main() -> None:
    """Runs the command line.

    `run` in its usual form starts without typer: a node would keep typer and its imports in memory for its whole
    life. Everything else, including help and errors, is handled by typer.
    """
    line = read_run_line(sys.argv[1:])
    if line is None:
        from atalanta.cli.application import application

        application()
        return
    gc.disable()  # imports leave no garbage; the event loop enables it again
    try:
        from atalanta.cli.run import run_in_foreground

        status = run_in_foreground(
            line.broker_xml,
            line.log_level,
            line.web,
            line.log_json,
            line.guarded,
            alone=line.alone,
            console=line.console,
        )
    except KeyboardInterrupt:  # before the event loop handled it
        status = INTERRUPTED
    sys.exit(status)
