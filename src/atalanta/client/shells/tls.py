"""TLS of the client's connections, from the URL's options or an SSL context of the program."""

from __future__ import annotations

import socket
import ssl

from atalanta.client.options import ClientOptions, Server
from atalanta.tls.context import ClientTls, client_tls
from atalanta.tls.errors import TlsError
from atalanta.wire.uri import UriError


def use_tls(options: ClientOptions, context: ssl.SSLContext | None) -> None:
    """Prepares the TLS of every connection. `context` overrides the URL. UriError names the option."""
    if context is not None:
        sni_host = "" if options.tls is None else options.tls.sni_host
        options.secure = ClientTls(context, sni_host)
    elif options.tls is not None:
        try:
            options.secure = client_tls(options.tls, ())
        except TlsError as error:
            raise UriError(f"option {error}") from error


def secured(options: ClientOptions, server: Server, plain: socket.socket) -> socket.socket:
    """Returns the socket after the handshake, unchanged without TLS. After an OSError `plain` is closed."""
    tls = options.secure
    if tls is None:
        return plain
    try:
        return tls.context.wrap_socket(plain, server_hostname=tls.server_name(server.host))
    except OSError:
        plain.close()
        raise


def buffered(connection: socket.socket) -> bool:
    """Returns True if received bytes wait that `select` does not report: TLS reads whole records."""
    return isinstance(connection, ssl.SSLSocket) and connection.pending() > 0
