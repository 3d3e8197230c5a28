"""The start of the HTTP server (`atalanta run --web`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.app.startup_error import StartupError
from atalanta.message.encoding.digits import all_digits
from atalanta.runtime.process import exit_codes

if TYPE_CHECKING:
    from atalanta.web.server import WebServer


async def start_web(place: str) -> WebServer:
    """Starts the HTTP server at `place` (host:port). The server answers "not ready" until it has a node that is
    ready."""
    try:
        from atalanta.web.server import WebServer
    except ImportError as error:
        line = f"--web needs more packages: pip install '.[web]' in the checkout ({error})"
        raise StartupError(exit_codes.BAD_CONFIGURATION, [line]) from error
    host, separator, port = place.rpartition(":")
    if not separator or not all_digits(port, 5) or int(port) > 65_535:
        line = f"--web {place}: not host:port, such as 127.0.0.1:8161"
        raise StartupError(exit_codes.BAD_CONFIGURATION, [line])
    server = WebServer(None, host.strip("[]"), int(port))
    try:
        await server.start()
    except OSError as error:
        await server.stop()
        line = f"--web {place}: {error.strerror or error}"
        raise StartupError(exit_codes.UNAVAILABLE, [line]) from error
    return server
