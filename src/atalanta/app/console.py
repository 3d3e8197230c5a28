"""The console beside a node (`atalanta run --console`, or `[console]` of atalanta.toml): a process of its own."""

from __future__ import annotations

import json
import logging
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from atalanta.app.side_process import SideProcess, log_words, parent_word
from atalanta.app.startup_error import StartupError
from atalanta.cluster.native_config import OwnConsole, names_of
from atalanta.config.configuration import WILDCARD_HOSTS, Configuration
from atalanta.runtime.process import exit_codes
from atalanta.runtime.process.logs import log_event

if TYPE_CHECKING:
    from atalanta.console.options import ConsoleOptions
    from atalanta.wire.endpoint import EndpointConfig

PACKAGES: Final = ("aiohttp", "jinja2", "markupsafe")
CORE: Final = "CORE"
RESTART_MAX_S: Final = 300.0
END_S: Final = 5.0

log = logging.getLogger("atalanta.app")


class ConsoleProcess(SideProcess):
    """The process of the console, which asks the nodes of its options."""

    end_s = END_S
    restart_max_s = RESTART_MAX_S

    def __init__(self, options: ConsoleOptions) -> None:
        given = json.dumps(options.as_json()).encode()
        super().__init__("atalanta.cli.console", "run_beside", [*log_words(), parent_word()], given)

    def started(self, pid: int) -> None:
        """Tells that the process was started."""
        log_event(log, "console_started", {"pid": pid})

    def ended(self, why: str) -> None:
        """Tells that it has ended by itself, or could not be started."""
        log_event(log, "console_ended", {"why": why})


def console_of(configuration: Configuration, wanted: str | None, web: str | None) -> ConsoleProcess | None:
    """Returns the console that the command line or the file wants, not yet started; None for none. StartupError.

    `wanted` is host:port of the command line, "" for the file's or the usual one, None without the option. `web` is
    the address of the node's own HTTP server.
    """
    own = configuration.own.console
    if wanted is None and own is None:
        return None
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        line = f"--console needs more packages: pip install '.[console]' in the checkout (no {', '.join(missing)})"
        raise StartupError(exit_codes.BAD_CONFIGURATION, [line])
    from atalanta.console.options import ConsoleRefused  # few nodes have a console

    options = options_of(configuration, own or OwnConsole(), wanted)
    try:
        options.place()
        options.base_path()
        options.origin_hosts()
        options.tls_context()
    except ConsoleRefused as error:
        raise StartupError(exit_codes.BAD_CONFIGURATION, [f"console: {error}"]) from error
    if web is not None and web == options.listen:
        line = f"--web and the console are both to listen on {web}: give one of them another port"
        raise StartupError(exit_codes.BAD_CONFIGURATION, [line])
    return ConsoleProcess(options)


def options_of(configuration: Configuration, own: OwnConsole, wanted: str | None) -> ConsoleOptions:
    """Returns the options of the console; files are beside atalanta.toml."""
    from atalanta.console.options import ConsoleOptions

    folder = configuration.users_folder
    return ConsoleOptions(
        nodes=list(names_of(own.nodes)) or nodes_of(configuration),
        listen=wanted or own.listen,
        path=own.path,
        origins=list(names_of(own.origin)),
        tls_certificate=folder / own.tls_certificate if own.tls_certificate else None,
        tls_key=folder / own.tls_key if own.tls_key else None,
        plain=own.plain,
        read_only=own.read_only,
    )


def nodes_of(configuration: Configuration) -> list[str]:
    """Returns the nodes that the console asks: this one by its acceptor, and those of its static connectors.

    So the console of a passive member asks the active one. StartupError if no acceptor lets it in without TLS.
    """
    open_to_all = [each for each in configuration.acceptors if each.tls is None and each.serves(CORE) and each.port]
    found = [place_of(each) for each in open_to_all[:1]]
    for connection in configuration.cluster_connections:
        for name in connection.static_connectors:
            connector = configuration.connectors.get(name)
            if connector is not None and connector.tls is None:
                found.append(place_of(connector))
    if not open_to_all:
        raise StartupError(exit_codes.BAD_CONFIGURATION, [
            f"{configuration.path}: no acceptor for CORE without TLS, so the console does not know how to reach the "
            'node: write [console] and nodes = "tcp://host:port?sslEnabled=true&trustStorePath=…" in atalanta.toml',
        ])  # fmt: skip
    return list(dict.fromkeys(found))


def place_of(endpoint: EndpointConfig) -> str:
    """Returns host:port as a client on this machine reaches it."""
    host = "localhost" if endpoint.host in WILDCARD_HOSTS else endpoint.host
    return f"[{host}]:{endpoint.port}" if ":" in host else f"{host}:{endpoint.port}"
