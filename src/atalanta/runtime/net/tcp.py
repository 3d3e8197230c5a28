"""TCP connections, accepted and dialed: bytes in to the driver, the node's out once a turn."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from typing import cast

from atalanta.kernel.ports import Wire
from atalanta.runtime.driver import Driver
from atalanta.runtime.net.limits import Limits
from atalanta.runtime.net.tls_handshakes import Handshakes


class Connections(Wire):
    """Every open connection by its number; numbers are never used again."""

    def __init__(self, loop: asyncio.AbstractEventLoop, driver: Driver, limits: Limits) -> None:
        self.loop = loop
        self.driver = driver
        self.limits = limits
        # Accepted, with a TLS handshake that is not over: they have no number yet.
        self.handshaking = 0
        self.handshakes = Handshakes(loop)
        # Being dialled: strangers may announce any number of places that do not answer.
        self.dialing = 0
        self._open: dict[int, Connection] = {}
        self._dirty: list[Connection] = []
        self._next = 1
        driver.after_flush(self.write_out)

    def __len__(self) -> int:
        return len(self._open)

    def wanted(self) -> int:
        """How many take a file of the process: those that are open, and those on the way to it."""
        return len(self._open) + self.handshaking + self.dialing

    def add(self, connection: Connection) -> int:
        """Gives a new connection its number."""
        number = self._next
        self._next += 1
        self._open[number] = connection
        return number

    def remove(self, number: int) -> None:
        """Forgets a connection that is gone."""
        del self._open[number]

    def write(self, conn: int, data: bytes) -> None:
        """Wire.write: sent when the turn ends; dropped when the connection is closing or gone."""
        connection = self._open.get(conn)
        if connection is None or connection.closing:
            return
        if not connection.unsent:
            self._dirty.append(connection)
        connection.unsent.append(data)

    def pause(self, conn: int) -> None:
        """Wire.pause"""
        connection = self._open.get(conn)
        if connection is not None:
            connection.paused = True
            connection.listen()

    def resume(self, conn: int) -> None:
        """Wire.resume"""
        connection = self._open.get(conn)
        if connection is not None:
            connection.paused = False
            connection.listen()

    def close(self, conn: int, why: str) -> None:
        """Wire.close: after what was written before; no more data is taken from the peer."""
        connection = self._open.get(conn)
        if connection is None or connection.closing:
            return
        connection.closing = why or "closed"
        if not connection.unsent:
            self._dirty.append(connection)

    def write_out(self) -> bool:
        """The end of a turn: one write a connection, then the closes that were asked for; whether there were any."""
        dirty = self._dirty
        self._dirty = []
        for connection in dirty:
            connection.write_out()
        return bool(dirty)

    def remote_address(self, conn: int) -> str:
        """ "host:port" of the peer; "" when the connection is gone."""
        connection = self._open.get(conn)
        return connection.peer if connection is not None else ""

    def close_all(self, why: str) -> None:
        """Closes every connection, after what was written."""
        for number in list(self._open):
            self.close(number, why)
        self.write_out()

    def abort_all(self) -> None:
        """Cuts off what still lingers."""
        for connection in list(self._open.values()):
            connection.abort()


class Connection(asyncio.Protocol):
    """One TCP connection. `opened(number)` tells the node how it came about.

    Loops read up to 256 KiB at once into a buffer of their own: one call with the bytes costs less than to ask us for
    a buffer and have them cut out of it.
    """

    def __init__(self, connections: Connections, opened: Callable[[int], None]) -> None:
        self.number = 0
        self.peer = ""
        self.unsent: list[bytes] = []
        self.closing = ""
        self._connections = connections
        self._opened = opened
        self._driver = connections.driver
        self._transport: asyncio.Transport
        self._file = -1  # of the socket, where it can be written to; -1: by the transport alone
        self._linger: asyncio.TimerHandle | None = None
        self._reading = True
        self._choked = False  # the peer takes too little
        self.paused = False  # by the node

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The number is given here, so that a refused one never had one."""
        self._transport = cast(asyncio.Transport, transport)
        limits = self._connections.limits
        self._transport.set_write_buffer_limits(limits.write_high_bytes, limits.write_low_bytes)
        self.peer = address_text(transport.get_extra_info("peername"))
        socket = transport.get_extra_info("socket")
        if socket is not None and sys.platform != "win32":
            self._file = socket.fileno()
        self.number = self._connections.add(self)
        self._opened(self.number)
        if not self._reading:  # uvloop begins to read behind this call, whatever was said in it
            self._connections.loop.call_soon(self._pause_again)

    def _pause_again(self) -> None:
        if not self._reading and not self._transport.is_closing():
            self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """One input a chunk."""
        if not self.closing:
            self._driver.data(self.number, data)

    def eof_received(self) -> bool:
        """A peer that shut down its sending side is gone for us."""
        return False

    def pause_writing(self) -> None:
        """The peer takes our bytes too slowly: the node should deliver nothing more to it."""
        if not self.closing:
            self._driver.blocked(self.number)

    def resume_writing(self) -> None:
        """What had piled up is gone."""
        if self._choked:
            self._choked = False
            self.listen()
        if not self.closing:
            self._driver.unblocked(self.number)

    def write_out(self) -> None:
        """One write for all of a turn; then the close, if one was asked for."""
        transport = self._transport
        unsent = self.unsent
        self.unsent = []
        if unsent and not transport.is_closing() and not self._send(unsent):
            self._limit(transport.get_write_buffer_size())
        if self.closing and not transport.is_closing():
            self._say_goodbye()
            transport.close()
            if transport.get_write_buffer_size():
                linger_s = self._connections.limits.close_linger_s
                self._linger = self._connections.loop.call_later(linger_s, self.abort)

    def _send(self, unsent: Sequence[bytes]) -> bool:
        """At once, as far as the peer takes it: loops collect writes to the end of a pass, and do them in any order.

        Whether that was all, and nothing is left with the transport.
        """
        transport = self._transport
        if len(unsent) > 1:
            transport.writelines(unsent)
            return False
        data = unsent[0]
        written = 0
        if self._file >= 0 and not transport.get_write_buffer_size():
            try:
                written = os.write(self._file, data)
            except OSError:
                pass  # it would block, or the peer is gone: the transport finds the same
            if written == len(data):
                return True
        transport.write(memoryview(data)[written:] if written else data)
        return False

    def _say_goodbye(self) -> None:
        """Plain TCP has none of its own."""

    def _limit(self, unsent_bytes: int) -> None:
        """What to do about a peer that takes too little: read no more of it, then cut it off."""
        limits = self._connections.limits
        if unsent_bytes <= limits.read_stop_bytes:
            return
        if unsent_bytes > limits.write_max_bytes:
            self.closing = self.closing or "the peer does not read: write limit reached"
            self.abort()
        elif not self._choked:
            self._choked = True
            self.listen()

    def listen(self) -> None:
        """Read from the peer, or do not, as things are now."""
        wanted = not self._choked and not self.paused
        if wanted == self._reading or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def abort(self) -> None:
        """Ends it now, whatever is unsent."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Exactly once; the node hears of it, also when it asked for the close itself."""
        if self._linger is not None:
            self._linger.cancel()
        self._connections.remove(self.number)
        why = self.closing or (str(exc) if exc is not None else "closed by the peer")
        self._driver.closed(self.number, why)


def address_text(address: object) -> str:
    """ "host:port" of a socket address, IPv6 hosts in brackets."""
    if not isinstance(address, tuple) or len(address) < 2:
        return str(address or "")
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
