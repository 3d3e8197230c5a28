"""Listening sockets: bound early, so that a used port is known early; accepting when the node is ready.

Each accepted connection is an input `on_accept` with the acceptor's name. A node without free file descriptors must
continue to serve its clients. So above the limits a new connection replaces one without a login: the oldest of the
host that has most of them. If all have logged in, the new one is closed. Either is counted.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from dataclasses import dataclass
from typing import cast

from atalanta.cluster.inputs import NodeInputs
from atalanta.kernel.security.remote_host import RefusalLimit
from atalanta.runtime.net.connections_by_host import Closable, ConnectionsByHost
from atalanta.runtime.net.tcp import Connections, TcpConnection, address_text
from atalanta.runtime.net.tls_connection import SecureConnection
from atalanta.runtime.process.high_descriptor import high_socket
from atalanta.runtime.trace import LogTrace

HELLOS = (b"\x16", b"\x80")  # a ClientHello begins with one of them
NO_TLS = "the peer speaks no TLS, which this acceptor demands: set sslEnabled=true at both, or at neither"

# Seconds of silence before the system asks the other host, between its questions, and how many it asks.
KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


@dataclass(frozen=True)
class Listen:
    """The address and options of an acceptor. -1 means: only the shell's own limit, the system's own buffers.

    `core`: it serves CORE. Without `auto_start` it opens when an operator starts it.
    """

    name: str
    host: str
    port: int
    connections_max: int = -1
    backlog: int = 512
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    no_delay: bool = True
    tls: ssl.SSLContext | None = None
    handshake_timeout_s: float = 10.0  # for TLS; 0: no limit
    core: bool = True
    auto_start: bool = True

    def same_address(self, other: Listen) -> bool:
        """Returns whether both listen at the same host and port."""
        return (self.host, self.port) == (other.host, other.port)


class PortTaken(OSError):
    """The error of a port at which another socket listens, though both could be bound."""


class Acceptor:
    """An acceptor of the configuration, on every address of its host name."""

    def __init__(self, listen: Listen, connections: Connections, trace: LogTrace) -> None:
        self.listen = listen
        self.connections = connections
        self.accepted_now = 0
        self.without_login = ConnectionsByHost()
        self.tls = listen.tls  # used by connections from now on
        self._trace = trace
        self._refusals = RefusalLimit()
        self._sockets: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []

    @property
    def addresses(self) -> list[str]:
        """Returns the bound addresses as "host:port"; for port 0 with the port of the system's choice."""
        return [address_text(bound.getsockname()) for bound in self._sockets]

    def bind(self) -> None:
        """Binds the port; OSError names it, with the reason."""
        self._sockets = bound_sockets(self.listen.host, self.listen.port)
        self._set_options()

    def adapt(self, listen: Listen) -> None:
        """Takes other options at the same address, for new connections. The backlog stays."""
        if listen != self.listen:
            self.listen = listen
            self.tls = listen.tls
            self._set_options()

    def _set_options(self) -> None:
        for bound in self._sockets:
            # Accepted sockets inherit all these.
            keep_alive(bound)
            if self.listen.send_buffer_bytes > 0:
                size = self.listen.send_buffer_bytes
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, size)
            if self.listen.receive_buffer_bytes > 0:
                size = self.listen.receive_buffer_bytes
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)

    def listen_early(self) -> None:
        """Lets connections wait in the backlog for `accept`: their clients wait for an answer, and are not refused."""
        for bound in self._sockets:
            bound.listen(self.listen.backlog)

    async def accept(self) -> None:
        """Starts to accept. After the return a peer's connect succeeds. Raises PortTaken."""
        loop = self.connections.loop
        for bound in self._sockets:
            try:
                bound.listen(self.listen.backlog)
            except OSError as error:
                place = address_text(bound.getsockname())
                text = f"acceptor {self.listen.name} cannot listen on {place}: {error.strerror}"
                raise PortTaken(error.errno, text) from error
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
        """Stops accepting; open connections stay."""
        for server in self._servers:
            server.close()
        for bound in self._sockets:
            bound.close()

    def admit(self) -> bool:
        """Returns whether the limits allow one more connection, after one without a login has made room for it."""
        own_max = self.listen.connections_max
        limits = self.connections.limits
        room = True
        if 0 <= own_max <= self.accepted_now:
            self._refuse(own_max)
            room = self.without_login.close_one()
        elif self.connections.descriptors() >= limits.connections_max:
            self._refuse(limits.connections_max)
            room = self.connections.without_login.close_one()
        if room:
            self.accepted_now += 1
        return room

    def _refuse(self, limit: int) -> None:
        self._trace.count("connections.refused")
        self._trace.event("connection_refused", {"acceptor": self.listen.name, "limit": limit})

    def enter(self, transport: asyncio.BaseTransport) -> bool:
        """Returns whether the connection is allowed; closes it if not."""
        if not self.admit():
            cast(asyncio.Transport, transport).abort()
            return False
        if not self.listen.no_delay:
            # Event loops set TCP_NODELAY by default.
            sock = transport.get_extra_info("socket")
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        return True

    def entered(self, connection: Closable) -> None:
        """Records a connection that is admitted, without a login yet."""
        self.without_login.add(connection)
        self.connections.without_login.add(connection)

    def logged_in(self, connection: Closable) -> None:
        """Records that the peer has logged in."""
        self.without_login.remove(connection)
        self.connections.without_login.remove(connection)

    def left(self, connection: Closable) -> None:
        """Frees the slot of a closed connection."""
        self.accepted_now -= 1
        self.logged_in(connection)

    def tls_failed(self, peer: str, why: str, first: bytes) -> None:
        """Records a handshake that failed; `first` is the peer's first byte, if it sent any."""
        self._trace.count("connections.tls_refused")
        if first and first not in HELLOS:
            why = NO_TLS
            if not self._refusals.admits(int(self.connections.loop.time() * 1e9), peer, why):
                return
        self._trace.event("tls_refused", {"acceptor": self.listen.name, "remote": peer, "why": why})

    def opened(self, number: int, server_name: str | None = None, certificate: str = "") -> None:
        """Reports an open connection with its number to the node. `server_name` is the SNI name of the client,
        `certificate` the subject of its certificate."""
        self._trace.count("connections.accepted")
        remote = self.connections.remote_address(number)
        self.connections.driver.post(NodeInputs.on_accept, number, self.listen.name, remote, server_name, certificate)


class AcceptedConnection(TcpConnection):
    """A connection that counts against its acceptor's limit."""

    def __init__(self, acceptor: Acceptor) -> None:
        super().__init__(acceptor.connections, acceptor.opened)
        self._acceptor = acceptor
        self._admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts the connection; the node never sees a refused one."""
        self._admitted = self._acceptor.enter(transport)
        if self._admitted:
            super().connection_made(transport)
            self._acceptor.entered(self)

    def logged_in(self) -> None:
        """Records that the peer has logged in."""
        self._acceptor.logged_in(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Frees a slot for another connection."""
        if self._admitted:
            self._acceptor.left(self)
            super().connection_lost(exc)


class AcceptedSecureConnection(SecureConnection):
    """A TLS connection that counts against its acceptor's limit from its first byte, not only after the handshake."""

    def __init__(self, acceptor: Acceptor, context: ssl.SSLContext) -> None:
        timeout_s = acceptor.listen.handshake_timeout_s
        super().__init__(acceptor.connections, self._entered, self._refused, context, timeout_s)
        self._acceptor = acceptor
        self._admitted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts the connection; the node never sees a refused one."""
        self._admitted = self._acceptor.enter(transport)
        if self._admitted:
            self._connections.handshaking += 1
            super().connection_made(transport)
            self._acceptor.entered(self)

    def logged_in(self) -> None:
        """Records that the peer has logged in."""
        self._acceptor.logged_in(self)

    def _entered(self, number: int) -> None:
        self._connections.handshaking -= 1
        self._acceptor.opened(number, self.asked_name(), self.subject)

    def _refused(self, why: str) -> None:
        self._connections.handshaking -= 1
        self._acceptor.tls_failed(self.peer, why, self.first)

    def connection_lost(self, exc: Exception | None) -> None:
        """Frees a slot for another connection."""
        if self._admitted:
            self._acceptor.left(self)
            super().connection_lost(exc)


def keep_alive(connection: socket.socket) -> None:
    """Lets the system close a connection whose other host is lost: not every protocol has heart-beats."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE:
        option = getattr(socket, name, None)
        if option is not None:  # not every system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Returns sockets bound to `host` and `port`, not yet listening; an empty host means every IPv4 address.

    A name like localhost may have an address of a family that this machine does not support. One bound address
    is enough.
    """
    try:
        # As bytes: for text Python loads the tables of international names at each start.
        name = host.encode("ascii" if host.isascii() else "idna") or b"0.0.0.0"
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    sockets: list[socket.socket] = []
    unavailable: OSError | None = None
    for family, kind, protocol, _, address in found:
        bound = socket.socket(family, kind, protocol)
        # A node that was killed must be able to bind its port while its old connections time out.
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
            sockets.append(high_socket(bound))
            unavailable = None
            if port == 0:
                break  # a second address would get another port
    if unavailable is not None:
        for bound in sockets:
            bound.close()
        text = f"cannot listen on {host}:{port}: {unavailable.strerror}"
        raise OSError(unavailable.errno, text) from unavailable
    return sockets
