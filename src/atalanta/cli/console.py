"""The command `atalanta console`: the server in the foreground, until a signal."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from atalanta.cli.cluster.svg import svg_of
from atalanta.cli.output.outcome import USAGE, Refused, reported
from atalanta.client import run
from atalanta.runtime.ha.guard.start import set_parent_death_signal
from atalanta.runtime.process.exit_codes import BAD_CONFIGURATION, STOPPED, UNAVAILABLE
from atalanta.runtime.process.logs import configure_logging
from atalanta.wire.loopback import is_loopback

if TYPE_CHECKING:
    from atalanta.console.options import ConsoleOptions
    from atalanta.console.server import ConsoleServer

log = logging.getLogger("atalanta.console")


def run_console(
    nodes: list[str],
    listen: str,
    path: str,
    origins: list[str],
    tls_certificate: Path | None,
    tls_key: Path | None,
    plain: bool,
    read_only: bool,
) -> None:
    """Runs the console until SIGTERM or SIGINT. Its log goes to stderr, and one line with its address to stdout."""
    with reported():
        try:
            from atalanta.console.options import DEFAULT_NODE, ConsoleOptions, ConsoleRefused
            from atalanta.console.server import ConsoleServer
        except ImportError as error:
            line = f"the console needs more packages: pip install '.[console]' in the checkout ({error})"
            raise Refused(line, BAD_CONFIGURATION) from error
        options = ConsoleOptions(
            nodes or [DEFAULT_NODE], listen, path, origins, tls_certificate, tls_key, plain, read_only
        )
        try:
            server = ConsoleServer(options, svg_of)
        except ConsoleRefused as error:
            raise Refused(str(error), USAGE) from error
        configure_logging(logging.INFO, False)
        run(serve(server, options))


def run_beside(words: list[str]) -> int:
    """Runs the console beside a node, until a signal or the end of the node. Returns the exit status.

    `words`: log level, "json" or "text", process id of the node. Standard input has the options as JSON.
    """
    from atalanta.console.options import ConsoleRefused, options_from
    from atalanta.console.server import ConsoleServer

    level, form, node = words
    set_parent_death_signal(signal.SIGTERM)
    if os.getppid() != int(node):  # it ended before the system knew what to do then
        return STOPPED
    options = options_from(json.load(sys.stdin))
    configure_logging(logging.getLevelNamesMapping().get(level.upper(), logging.INFO), form == "json")
    try:
        run(serve(ConsoleServer(options, svg_of), options, beside=True))
    except (ConsoleRefused, Refused) as error:
        log.error("console_refused why=%s", error)
        return error.status if isinstance(error, Refused) else BAD_CONFIGURATION
    return STOPPED


async def serve(server: ConsoleServer, options: ConsoleOptions, beside: bool = False) -> None:
    """Serves until a signal. `beside` a node the address is a line of the log: nobody reads standard output."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    try:
        address = await server.start()
    except OSError as error:
        raise Refused(f"--listen {options.listen}: {error.strerror or error}", UNAVAILABLE) from error
    if beside:
        log.info("console_listening address=%s", address)
    else:
        typer.echo(f"console {address} for {', '.join(options.nodes)}{described(options)}")
    try:
        await stopped.wait()
    finally:
        await server.stop()


def described(options: ConsoleOptions) -> str:
    """Returns what an operator should know of these options, for the line at the start."""
    host, _ = options.place()
    words = ""
    if options.read_only:
        words += "; read only"
    if not is_loopback(host) and not options.tls:
        words += "; --plain: whoever listens on the network reads passwords and messages"
    return words
