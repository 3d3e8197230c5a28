"""Listening sockets: bound first, so that a taken port is known early; accepting when the node may.

Each accepted connection is an input `on_accept` with the acceptor's name. Above the limits
connections are cut off at once and counted: a node short of files must go on serving those it has.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from dataclasses import dataclass
from typing import cast

from atalanta.runtime.net.tcp import Connection, Connections, address_text
from atalanta.runtime.net.tls_connection import SecureConnection
from atalanta.runtime.trace import LogTrace


@dataclass(frozen=True)
class Listen:
    """Where an acceptor listens. -1 means: only the shell's own limit, the system's own buffers."""

    name: str
    host: str
    port: int
    connections_max: int = -1
    backlog: int = 512
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    no_delay: bool = True
    tls: ssl.SSLContext | None = None
    handshake_timeout_s: float = 10.0  # of TLS; 0: as long as it takes


class Acceptor:
    """One acceptor of the configuration, on every address its host name stands for."""

    def __init__(self, listen: Listen, connections: Connections, trace: LogTrace) -> None:
        self.listen = listen
        self.connections = connections
        self.accepted_now = 0
        self.tls = listen.tls  # connections made from now on use it
        self._trace = trace
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []

    @property
    def addresses(self) -> list[str]:
        """ "host:port" of what is really bound: with port 0 the system's choice."""
        return [address_text(bound.getsockname()) for bound in self._sockets]

    def bind(self) -> None:
        """Takes the port; OSError says which one and why not."""
        self._sockets = bound_sockets(self.listen.host, self.listen.port)
        for bound in self._sockets:
            # Accepted sockets inherit both.
            if self.listen.send_buffer_bytes > 0:
                size = self.listen.send_buffer_bytes
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
            if self.listen.receive_buffer_bytes > 0:
                size = self.listen.receive_buffer_bytes
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)

    async def accept(self) -> None:
        """Starts to accept; returns when a peer's connect succeeds."""
        loop = self.connections.loop
        for bound in self._sockets:
            server = await loop.create_server(
                self._protocol,
                sock=bound,
                backlog=self.listen.backlog,
                start_serving=False,
            )
            await server.start_serving()
            self._servers.append(server)

    def _protocol(self) -> asyncio.BaseProtocol:
        tls = self.tls
        return AcceptedConnection(self) if tls is None else AcceptedSecureConnection(self, tls)

    def close(self) -> None:
        """Accepts no more; connections that are open stay."""
        for server in self._servers:
            server.close()
        for bound in self._sockets:
            bound.close()

    def admit(self) -> bool:
        """Whether one more connection may come in."""
        own_max = self.listen.connections_max
        if 0 <= own_max <= self.accepted_now:
            refused = own_max
        elif self.connections.wanted() >= self.connections.limits.connections_max:
            refused = self.connections.limits.connections_max
        else:
            self.accepted_now += 1
            return True
        self._trace.count("connections.refused")
        self._trace.event("connection_refused", {"acceptor": self.listen.name, "limit": refused})
        return False

    def enter(self, transport: asyncio.BaseTransport) -> bool:
        """Whether the connection may come in; cut off if not."""
        if not self.admit():
            cast(asyncio.Transport, transport).abort()
            return False
        if not self.listen.no_delay:
            # Event loops switch it on by themselves.
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        return True

    def tls_failed(self, peer: str, why: str) -> None:
        """A handshake did not come to its end."""
        self._trace.count("connections.tls_refused")
        self._trace.event("tls_refused", {"acceptor": self.listen.name, "remote": peer, "why": why})

    def opened(self, number: int, server_name: str | None = None, certificate: str = "") -> None:
        """A connection is open and has its number; `server_name` is what its client asked for (SNI), `certificate`
        the subject of the one it showed."""
        self._trace.count("connections.accepted")
        remote = self.connections.remote_address(number)
        self.connections.driver.accepted(number, self.listen.name, remote, server_name, certificate)


class AcceptedConnection(Connection):
    """A connection that counts against its acceptor's limit."""

    def __init__(self, acceptor: Acceptor) -> None:
        super().__init__(acceptor.connections, acceptor.opened)
        self._acceptor = acceptor
        self._admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refused ones never reach the node."""
        self._admitted = self._acceptor.enter(transport)
        if self._admitted:
            super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Makes room for another."""
        if self._admitted:
            self._acceptor.accepted_now -= 1
            super().connection_lost(exc)


class AcceptedSecureConnection(SecureConnection):
    """The same over TLS; it counts from its first byte, not only from the end of the handshake."""

    def __init__(self, acceptor: Acceptor, context: ssl.SSLContext) -> None:
        timeout_s = acceptor.listen.handshake_timeout_s
        super().__init__(acceptor.connections, self._entered, self._refused, context, timeout_s)
        self._acceptor = acceptor
        self._admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refused ones never reach the node."""
        self._admitted = self._acceptor.enter(transport)
        if self._admitted:
            self._connections.handshaking += 1
            super().connection_made(transport)

    def _entered(self, number: int) -> None:
        self._connections.handshaking -= 1
        self._acceptor.opened(number, self.asked_name(), self.subject)

    def _refused(self, why: str) -> None:
        self._connections.handshaking -= 1
        self._acceptor.tls_failed(self.peer, why)

    def connection_lost(self, exc: Exception | None) -> None:
        """Makes room for another."""
        if self._admitted:
            self._acceptor.accepted_now -= 1
            super().connection_lost(exc)


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets bound to `host` and `port`, not yet listening; no host means every IPv4 address.

    A name like localhost may stand for an address family this machine does not have: one bound
    address is enough.
    """
    try:
        found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    sockets: list[socket.socket] = []
    unavailable: OSError | None = None
    for family, kind, protocol, _, address in found:
        bound = socket.socket(family, kind, protocol)
        # A node that was killed must get its port back while its old connections time out.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            bound.bind(address)
        except OSError as error:
            bound.close()
            unavailable = error
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                break
        else:
            sockets.append(bound)
            unavailable = None
            if port == 0:
                break  # a second address would get another port
    if unavailable is not None:
        for bound in sockets:
            bound.close()
        text = f"cannot listen on {host}:{port}: {unavailable.strerror}"
        raise OSError(unavailable.errno, text) from unavailable
    return sockets
