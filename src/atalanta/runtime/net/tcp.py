"""TCP connections, accepted and dialed: input goes to the driver, the node's output is sent once per event-loop
iteration."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, cast

from mypy_extensions import mypyc_attr

from atalanta.cluster.inputs import NodeInputs
from atalanta.kernel.ports import Wire
from atalanta.runtime.driver import Driver
from atalanta.runtime.net.connections_by_host import ConnectionsByHost
from atalanta.runtime.net.hang_ups import HangUps
from atalanta.runtime.net.limits import Limits
from atalanta.runtime.net.tls_handshakes import Handshakes
from atalanta.runtime.process.allocator import trim_allocator

TRIM_DELAY_S: Final = 1.0
# A read of so many bytes has probably left others behind. uvloop reads up to 32 times 256 KB from one connection before
# it looks at the next one: quick work for large batches, seconds without an answer to others for small frames.
FULL_READ_BYTES: Final = 128 * 1024
# An iteration takes full reads for so long. Then each connection that has more rests after one.
FULL_READS_NS: Final = 20 * 1_000_000


class Connections(Wire):
    """Every open connection by its number; numbers are never reused."""

    def __init__(self, loop: asyncio.AbstractEventLoop, driver: Driver, limits: Limits) -> None:
        self.loop = loop
        self.driver = driver
        self.limits = limits
        # Accepted, with an unfinished TLS handshake: they have no number yet.
        self.handshaking = 0
        self.handshakes = Handshakes(loop)
        self.hang_ups = HangUps(loop)
        # Accepted, without a login: when the limit is reached, they make room for others.
        self.without_login = ConnectionsByHost()
        # Being dialled: unknown peers may announce any number of addresses that do not answer.
        self.dialing = 0
        self._open: dict[int, TcpConnection] = {}
        self._dirty: list[TcpConnection] = []
        self._resting: deque[TcpConnection] = deque()  # not read until their turn comes again
        self._full_reads_since_ns = 0  # the first full read of this iteration was done; 0: none
        self._next = 1
        self._may_send: Callable[[], bool] | None = None
        self._trim: asyncio.TimerHandle | None = None
        driver.after_flush(self.write_out)

    def __len__(self) -> int:
        return len(self._open)

    def descriptors(self) -> int:
        """Returns the number of connections that use a file descriptor: open, in handshake, or being dialled."""
        return len(self._open) + self.handshaking + self.dialing

    def add(self, connection: TcpConnection) -> int:
        """Gives a new connection its number."""
        number = self._next
        self._next += 1
        self._open[number] = connection
        return number

    def remove(self, number: int) -> None:
        """Removes a closed connection."""
        del self._open[number]

    def write(self, conn: int, data: bytes) -> None:
        """Implements Wire.write: sent at the end of the iteration; dropped on a closing or closed connection."""
        connection = self._open.get(conn)
        if connection is None or connection.closing:
            return
        if not connection.unsent:
            self._dirty.append(connection)
        connection.unsent.append(data)

    def pause(self, conn: int) -> None:
        """Implements Wire.pause."""
        connection = self._open.get(conn)
        if connection is not None:
            connection.paused = True
            connection.listen()

    def resume(self, conn: int) -> None:
        """Implements Wire.resume."""
        connection = self._open.get(conn)
        if connection is not None:
            connection.paused = False
            connection.listen()

    def close(self, conn: int, why: str) -> None:
        """Implements Wire.close, after earlier output; no more data is read from the peer."""
        connection = self._open.get(conn)
        if connection is None or connection.closing:
            return
        connection.closing = why or "closed"
        if not connection.unsent:
            self._dirty.append(connection)

    def freed(self) -> None:
        """Implements Wire.freed: the allocator gives memory back, at most once in a second."""
        if self._trim is None:
            self._trim = self.loop.call_later(TRIM_DELAY_S, self._trim_memory)

    def _trim_memory(self) -> None:
        self._trim = None
        trim_allocator()

    def logged_in(self, conn: int) -> None:
        """Implements Wire.logged_in."""
        connection = self._open.get(conn)
        if connection is not None:
            connection.logged_in()

    def exempt(self, conn: int) -> None:
        """Implements Wire.exempt."""
        connection = self._open.get(conn)
        if connection is not None:
            connection.exempt = True

    def gate(self, may_send: Callable[[], bool]) -> None:
        """Sets the function that says whether output may leave now. Output that may not stays for a later iteration;
        exempt connections are not held."""
        self._may_send = may_send

    def full_read_done(self, connection: TcpConnection) -> None:
        """Lets a connection that probably has more to say rest, if the full reads of this iteration have taken long:
        it is read when all that rest already have had their turn."""
        now = time.monotonic_ns()
        if not self._full_reads_since_ns:
            self._full_reads_since_ns = now
        elif now - self._full_reads_since_ns >= FULL_READS_NS and connection.begin_rest():
            self._resting.append(connection)

    def _end_a_rest(self) -> None:
        """Reads on from the connection that has rested longest: one for each write, whatever their number."""
        self._resting.popleft().end_rest()
        if self._resting:
            self.loop.call_soon(self.driver.open_turn)  # nothing else may begin an iteration

    def write_out(self) -> bool:
        """Sends the output of an iteration, one write per connection, then closes as requested. Returns whether
        there was any."""
        self._full_reads_since_ns = 0
        if self._resting:
            self._end_a_rest()
        dirty = self._dirty
        self._dirty = []
        if self._may_send is not None and dirty and not self._may_send():
            self._dirty = [each for each in dirty if not each.exempt]
            dirty = [each for each in dirty if each.exempt]
        for connection in dirty:
            connection.write_out()
        return bool(dirty)

    def remote_address(self, conn: int) -> str:
        """Returns "host:port" of the peer; "" for a closed connection."""
        connection = self._open.get(conn)
        return connection.peer if connection is not None else ""

    def local_address(self, conn: int) -> str:
        """Implements Wire.local_address."""
        connection = self._open.get(conn)
        return connection.local() if connection is not None else ""

    def close_all(self, why: str) -> None:
        """Closes every connection, after its output. The exempt ones stay until `abort_all`."""
        for number, connection in list(self._open.items()):
            if not connection.exempt:
                self.close(number, why)
        self.driver.write_all()

    def all_closed(self) -> bool:
        """Returns whether only exempt connections are open."""
        return all(connection.exempt for connection in self._open.values())

    def abort_clients(self) -> None:
        """Aborts the connections that are still open, but not the exempt ones: the members may still be told."""
        for connection in list(self._open.values()):
            if not connection.exempt:
                connection.abort()

    def abort_all(self) -> None:
        """Aborts the connections that are still open."""
        for connection in list(self._open.values()):
            connection.abort()


@mypyc_attr(allow_interpreted_subclasses=True)
class TcpConnection(asyncio.Protocol):
    """A TCP connection. `opened(number)` reports it to the node as accepted or dialed.

    Event loops read up to 256 KiB into a buffer of their own. One call with the bytes costs less than a request
    for our buffer and a copy out of it.
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
        self._file = (
            -1
        )  # descriptor of the socket, for direct writes; -1: only the transport writes
        self._linger: asyncio.TimerHandle | None = None
        self._reading = True
        self._blocked = False  # the peer reads too slowly
        self.exempt = False  # its output is never held
        self.paused = False  # by the node

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Registers the connection. The number is given here, so that a refused connection has none."""
        self._transport = cast(asyncio.Transport, transport)
        limits = self._connections.limits
        self._transport.set_write_buffer_limits(limits.write_high_bytes, limits.write_low_bytes)
        self.peer = address_text(transport.get_extra_info("peername"))
        socket = transport.get_extra_info("socket")
        if socket is not None and sys.platform != "win32":
            self._file = socket.fileno()
        self.number = self._connections.add(self)
        self._opened(self.number)
        if not self._reading:  # uvloop begins to read after this call, even if it was paused in it
            self._connections.loop.call_soon(self._pause_again)

    def local(self) -> str:
        """Returns "host:port" of this end."""
        return address_text(self._transport.get_extra_info("sockname"))

    def logged_in(self) -> None:
        """Records that the peer has logged in."""

    def _pause_again(self) -> None:
        if not self._reading and not self._transport.is_closing():
            self._transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        """Passes one chunk to the node as one input."""
        if not self.closing:
            self._driver.data(self.number, data)
            if len(data) >= FULL_READ_BYTES:
                self._connections.full_read_done(self)

    def begin_rest(self) -> bool:
        """Reads no more until `end_rest`. Returns False if reading is stopped already."""
        if not self._reading or self._transport.is_closing():
            return False
        self._transport.pause_reading()
        return True

    def end_rest(self) -> None:
        """Reads on, unless reading was stopped meanwhile."""
        if self._reading and not self._transport.is_closing():
            self._transport.resume_reading()

    def eof_received(self) -> bool:
        """Closes the connection: a peer that shut down its sending side is treated as gone."""
        return False

    def pause_writing(self) -> None:
        """Records that the peer reads too slowly: the node should deliver no more to it."""
        if not self.closing:
            self._driver.post(NodeInputs.on_blocked, self.number)

    def resume_writing(self) -> None:
        """Records that the backlog was sent."""
        if self._blocked:
            self._blocked = False
            self.listen()
        if not self.closing:
            self._driver.post(NodeInputs.on_unblocked, self.number)

    def write_out(self) -> None:
        """Sends all output of an iteration in one write, then closes if requested."""
        transport = self._transport
        unsent = self.unsent
        self.unsent = []
        if unsent and not transport.is_closing() and not self._send(unsent):
            self._limit(transport.get_write_buffer_size())
        if self.closing and not transport.is_closing():
            self._send_close()
            transport.close()
            if transport.get_write_buffer_size():
                linger_s = self._connections.limits.close_linger_s
                self._linger = self._connections.loop.call_later(linger_s, self.abort)

    def _send(self, unsent: Sequence[bytes]) -> bool:
        """Sends directly, as far as the peer takes it: loops delay writes to the end of an iteration, in any order.

        Returns whether all was sent and the transport has no backlog.
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
                pass  # the socket would block, or the peer is gone: the transport finds the same
            if written == len(data):
                return True
        transport.write(memoryview(data)[written:] if written else data)
        return False

    def _send_close(self) -> None:
        """Ends the protocol; plain TCP has no message for this."""

    def _limit(self, unsent_bytes: int) -> None:
        """Limits the backlog of a peer that reads too slowly: first stops reading from it, then aborts."""
        limits = self._connections.limits
        if unsent_bytes <= limits.read_stop_bytes:
            return
        if unsent_bytes > limits.write_max_bytes:
            self.closing = self.closing or "the peer does not read: write limit reached"
            self.abort()
        elif not self._blocked:
            self._blocked = True
            self.listen()

    def listen(self) -> None:
        """Starts or stops reading from the peer, by the current state."""
        reading = not self._blocked and not self.paused
        if reading == self._reading or self._transport.is_closing():
            return
        self._reading = reading
        hang_ups = self._connections.hang_ups
        if reading:
            hang_ups.unwatch(self)
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
            hang_ups.watch(self, self._transport.get_extra_info("socket"))

    def hung_up(self) -> None:
        """Reports to the node that the peer has gone, or sends no more, while nothing is read from it."""
        if not self.closing:
            self._driver.post(NodeInputs.on_hung_up, self.number)

    def abort(self) -> None:
        """Closes the connection now and drops unsent output."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Reports the end to the node, exactly once, also if the node requested the close."""
        if self._linger is not None:
            self._linger.cancel()
        if not self._reading:
            self._connections.hang_ups.unwatch(self)
        self._connections.remove(self.number)
        why = self.closing or (str(exc) if exc is not None else "closed by the peer")
        self._driver.post(NodeInputs.on_closed, self.number, why)


def address_text(address: object) -> str:
    """Returns "host:port" of a socket address, IPv6 hosts in brackets."""
    if not isinstance(address, tuple) or len(address) < 2:
        return str(address or "")
    host, port = str(address[0]), address[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
