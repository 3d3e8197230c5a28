"""`atalanta run`: logging, the ready line, errors of the start in words, exit statuses."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from atalanta import __version__
from atalanta.app import StartupError, run_broker
from atalanta.build import build_name
from atalanta.runtime import exit_codes
from atalanta.runtime.loop import loop_name

LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def run_in_foreground(broker_xml: Path, log_level: str, web: str | None = None) -> int:
    """Runs until a signal; the exit status (runtime/exit_codes.py). The log goes to stderr."""
    level = LEVELS.get(log_level.lower())
    if level is None:
        print(f"--log-level {log_level}: none of {', '.join(LEVELS)}", file=sys.stderr)
        return exit_codes.BAD_CONFIGURATION
    logging.basicConfig(
        level=level,
        stream=sys.stderr,
        format="%(asctime)s %(levelname)-8s %(name)s %(message)s",
    )
    log = logging.getLogger("atalanta")
    log.info("atalanta %s, %s, on %s", __version__, build_name(), loop_name())
    try:
        return run_broker(broker_xml, say_ready, web)
    except StartupError as error:
        for line in error.lines:
            print(line, file=sys.stderr)
        return error.status
    except Exception:
        log.critical("an error of atalanta itself: the node stops", exc_info=True)
        return exit_codes.BUG


def say_ready(words: list[str]) -> None:
    """The one line on stdout, as soon as every acceptor accepts; scripts wait for it."""
    print(" ".join(["ready", *words]), flush=True)
