"""TLS of the client's connections, from the URL's options or an SSL context of the program."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final, TypeGuard

from atalanta.client.options import ClientOptions, Server
from atalanta.wire.uri import UriError

if TYPE_CHECKING:
    import ssl

CLOSED: Final = "closed by the broker"
# In the errors of a handshake with a server that speaks no TLS: OpenSSL's, and those of a connection that ends.
NO_TLS: Final = ("wrong_version_number", "eof", "reset", "aborted")


def use_tls(options: ClientOptions, context: ssl.SSLContext | None) -> None:
    """Prepares the TLS of every connection. `context` overrides the URL. UriError names the option."""
    if context is None and options.tls is None:
        return
    # Imported here: a program without TLS starts faster.
    from atalanta.tls.context import ClientTls, client_tls
    from atalanta.tls.errors import TlsError

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


def with_tls_hint(options: ClientOptions, why: str) -> str:
    """Returns the reason of a failed attempt, with the option to change if only one side seems to speak TLS."""
    if "sslEnabled" in why:
        return why
    maybe: str | bool
    if options.secure is None:
        maybe = (why == CLOSED or "reset" in why) and "; if it speaks TLS there, add sslEnabled=true to the URL"
    else:
        text = why.lower()
        maybe = (
            "certificate" not in text
            and any(mark in text for mark in NO_TLS)
            and "; if it speaks no TLS there, remove sslEnabled=true from the URL"
        )
    return f"{why}{maybe or ''}"


def buffered(connection: socket.socket) -> bool:
    """Returns True if received bytes wait that `select` does not report: TLS reads whole records."""
    return is_secured(connection) and connection.pending() > 0


def is_secured(connection: socket.socket) -> TypeGuard[ssl.SSLSocket]:
    """Returns whether the socket has TLS, without an import of it."""
    return hasattr(connection, "pending")


def lacks_a_record(error: OSError) -> bool:
    """Returns whether TLS could not go on yet: a part of a record has come, or the socket takes no more now."""
    return type(error).__name__ in {"SSLWantReadError", "SSLWantWriteError"}
