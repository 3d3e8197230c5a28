"""The blocking shell: one socket, read and written while a call waits. There is no event loop and no thread per
connection; one daemon thread per process sends pings for idle connections.

Several threads may use a connection; their calls alternate.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from atalanta.client.options import ClientOptions
from atalanta.client.shells.awaitables import READY, Acknowledgement, AwaitedReply
from atalanta.client.shells.shell import ClientShell, drive
from atalanta.client.shells.tls import CLOSED, buffered, is_secured, lacks_a_record, secured
from atalanta.wire.core.client.reply import Reply

TICK_S: Final = 0.5
SELECT_S: Final = 0.1  # maximum wait of other threads for the connection
TURN_S: Final = 0.001
KEEPER_PERIOD_S: Final = 5.0
KEEPER_PERIOD_LEAST_S: Final = 0.1
READ_BYTES: Final = 1 << 18
LONG_FRAME_BYTES_MAX: Final = 8 << 20
LONG_FRAME_WAIT_S: Final = 0.1  # for the rest of a frame that is read in one piece
LENGTH_BYTES: Final = 4  # of a frame, before the bytes that it counts
Result = TypeVar("Result")


class BlockingShell(ClientShell):
    """A shell whose `pump` reads, writes and connects.

    A call holds the lock from beginning to end; while it waits for an answer other calls may run.
    """

    suspends = False

    def __init__(self, options: ClientOptions) -> None:
        self.lock = threading.RLock()
        self._out: list[bytes] = []
        self._socket: socket.socket | None = None
        self._broken: str | None = None
        self._is_ready = False
        self._was_connected = False
        self._next_tick = 0.0
        self._others = 0
        self._long_frames = False
        # Interval at which an idle connection has to be checked, so that pings are in time.
        self.keeper_period_s = KEEPER_PERIOD_S
        if options.client_failure_check_period_ms >= 0:
            period_s = options.client_failure_check_period_ms / 2_000
            self.keeper_period_s = max(KEEPER_PERIOD_LEAST_S, min(KEEPER_PERIOD_S, period_s))
        super().__init__(options)
        self.engine_lock = self.lock

    @property
    def has_transport(self) -> bool:
        """Returns True if a socket is open."""
        return self._socket is not None

    # -- Shell ----------------------------------------------------------------------------------
    def call(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Runs one call of the program to its end."""
        self._others += 1
        with self.lock:
            self._others -= 1
            return drive(coroutine)

    async def wait(self, reply: Reply, timeout_s: float | None = None) -> bool:
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while not reply.done and not self.closed:
            left = SELECT_S
            if until is not None:
                left = min(left, until - time.monotonic())
                if left <= 0:
                    self.after_call()
                    break
            self.pump(left)
            if self._others:
                self.lock.release()
                time.sleep(TURN_S)
                self.lock.acquire()
        return reply.done

    def waiting(self, ask: Callable[[], Reply]) -> Acknowledgement:
        return AwaitedReply(self, ask)

    def outcome(self, reply: Reply) -> Acknowledgement:
        self.call(self.answer(reply))
        return READY

    def caller(self) -> object:
        return None  # a waiting call drives the connection itself

    async def beside(self, function: Callable[[], Result]) -> Result:
        # Other threads may use the connection meanwhile, also the thread that sends pings.
        self.lock.release()
        try:
            return function()
        finally:
            self.lock.acquire()

    async def drained(self) -> None:
        while self._out and self._socket is not None and not self.closed:
            self.pump(SELECT_S)

    def after_call(self) -> None:
        with self.lock:
            if self._socket is not None:
                self.pump(0.0)

    def write(self, data: bytes) -> None:
        self._out.append(data)

    async def shut(self) -> None:
        with self.lock:
            self.closed = True
            self.stop_priority_watch()
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._transfer(self._socket, 0.5 if self._out else 0.0)
            self._close_socket()

    # -- ClientEvents ---------------------------------------------------------------------------
    def ready(self) -> None:
        self._is_ready = True

    def broken(self, why: str) -> None:
        if self._broken is None:
            self._broken = why

    def expect_long_frames(self, frame_bytes: int) -> None:
        """Reads each of the frames that follow in one piece: pieces would be joined, which copies them.

        `frame_bytes`: about as long as they are; 0 ends that. With TLS, and without SO_RCVLOWAT, nothing changes.
        """
        connection = self._socket
        self._long_frames = bool(frame_bytes) and can_wait_for(connection)
        if self._long_frames and connection is not None:
            # The system makes the window of the connection as large as that at once.
            wait_for(connection, frame_bytes)
            wait_for(connection, 1)

    # -- input and output -----------------------------------------------------------------------
    def pump(self, timeout_s: float) -> None:
        """Writes pending data and reads data that arrives in time. Connects if there is no transport."""
        if self.closed or self.engine.failed is not None:
            return
        if self._socket is None:
            self._dial(timeout_s)
            if self._socket is None:
                return
        self.engine.flush()
        try:
            self._transfer(self._socket, timeout_s)
        except OSError as error:
            self.broken(str(error))
        self._after_transfer()

    def glance(self) -> None:
        """Processes what has arrived, unless another thread uses the connection; called between the program's calls."""
        if self.lock.acquire(blocking=False):
            try:
                if not self.closed and self.has_transport:
                    self.pump(0.0)
            finally:
                self.lock.release()

    def _transfer(self, connection: socket.socket, timeout_s: float) -> None:
        waits = buffered(connection)
        readable, writable = ready(connection, bool(self._out), 0.0 if waits else timeout_s)
        if writable:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            try:
                sent = connection.send(data)
            except OSError as error:
                if not lacks_a_record(error):
                    raise
                sent = 0
            if sent < len(data):
                self._out.insert(0, data[sent:])
        if readable or waits:
            try:
                data = connection.recv(self._long_frame(connection) if self._long_frames else READ_BYTES)
            except OSError as error:
                if not lacks_a_record(error):
                    raise
                return
            if data:
                self.engine.feed(time.monotonic_ns(), data)
            else:
                self.broken(CLOSED)

    def _long_frame(self, connection: socket.socket) -> int:
        """Waits for the rest of a long frame, if one begins here. Returns how many bytes to read."""
        if not self.engine.between_frames:
            return READ_BYTES
        head = connection.recv(LENGTH_BYTES, socket.MSG_PEEK)
        size = LENGTH_BYTES + int.from_bytes(head, "big")
        if len(head) < LENGTH_BYTES or not READ_BYTES < size <= LONG_FRAME_BYTES_MAX:
            return READ_BYTES
        wait_for(connection, size)
        try:
            ready(connection, False, LONG_FRAME_WAIT_S)  # a slow one is read as it comes
        finally:
            wait_for(connection, 1)
        return size

    def _after_transfer(self) -> None:
        now = time.monotonic()
        if now >= self._next_tick:
            self._next_tick = now + TICK_S
            self.engine.on_timer(time.monotonic_ns())
        if self._is_ready and not self._was_connected and self._broken is None:
            self._was_connected = True
            assert self.dialled is not None
            self.connected(time.monotonic_ns(), self.dialled)
        elif self._was_connected and self._broken is None:
            self.return_to_priority()
        if self._broken is not None:
            self._end(self._broken)

    def _end(self, why: str) -> None:
        self._close_socket()
        now_ns = time.monotonic_ns()
        if self._was_connected:
            self.transport_lost(now_ns, why)
        else:
            self.login_lost(now_ns, why)

    def _close_socket(self) -> None:
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()

    def _slept_until(self, at_ns: int, timeout_s: float) -> bool:
        """Waits at most `timeout_s`. Returns True if the time `at_ns` has come."""
        pause_s = (at_ns - time.monotonic_ns()) / 1e9
        if pause_s > 0:
            time.sleep(min(pause_s, timeout_s))
        return pause_s <= timeout_s

    def _find(self, timeout_s: float) -> None:
        """Runs discovery, up to initialWaitTimeout."""
        finder = self.options.finder
        assert finder is not None
        if not self._slept_until(self.policy.next_at_ns, timeout_s):
            return
        try:
            servers = finder.servers(lambda: self.closed)
        except OSError as error:
            self.none_found(time.monotonic_ns(), str(error))
        else:
            self.policy.found(servers)

    def _dial(self, timeout_s: float) -> None:
        """Makes one attempt to connect, when its time has come."""
        if self.policy.wants_servers:
            self._find(timeout_s)
            return
        dial = self.policy.next_dial()
        if dial is None:
            self.give_up()
            return
        server, at_ns = dial
        if not self._slept_until(at_ns, timeout_s):
            return
        self.dialled = server
        try:
            plain = socket.create_connection(
                (server.host, server.port),
                self.options.connection_timeout_ms / 1000,
                self.options.local_end,
            )
            connection = secured(self.options, server, plain)
        except (OSError, UnicodeError) as error:
            self.attempt_failed(time.monotonic_ns(), str(error))
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setblocking(False)
        self._socket = connection
        self._out.clear()
        self._broken = None
        self._is_ready = False
        self._was_connected = False
        self.engine.start(time.monotonic_ns())
        keep_alive(self)


def ready(connection: socket.socket, writing: bool, timeout_s: float) -> tuple[bool, bool]:
    """Returns if the socket can be read and, with `writing`, written. `select` refuses descriptors above 1,023."""
    if not hasattr(select, "poll"):  # Windows, whose `select` has no such limit
        readable, writable, _ = select.select([connection], [connection] if writing else [], [], timeout_s)
        return bool(readable), bool(writable)
    poll = select.poll()
    poll.register(connection, select.POLLIN | select.POLLOUT if writing else select.POLLIN)
    found = poll.poll(math.ceil(timeout_s * 1_000))
    events = found[0][1] if found else 0
    # An error or the end of the connection is found by reading.
    return bool(events & ~select.POLLOUT), bool(events & select.POLLOUT)


def can_wait_for(connection: socket.socket | None) -> bool:
    """Returns whether wait_for has an effect."""
    return sys.platform == "linux" and connection is not None and not is_secured(connection)


def wait_for(connection: socket.socket, size: int) -> None:
    """Lets `ready` wait until `size` bytes can be read, or as many as the system takes for one connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)


_kept: weakref.WeakSet[BlockingShell] = weakref.WeakSet()
_kept_lock = threading.Lock()
_keeper_process = 0
_keeper_waits_s = KEEPER_PERIOD_S
_hurried = threading.Event()


def keep_alive(shell: BlockingShell) -> None:
    """Registers a connection for pings while it is idle. Threads do not survive a fork: each process has its own."""
    global _keeper_process, _hurried
    with _kept_lock:
        if _keeper_process != os.getpid():
            _keeper_process = os.getpid()
            _kept.clear()
            _hurried = threading.Event()
            threading.Thread(target=_keep, name="atalanta-pings", daemon=True).start()
        _kept.add(shell)
    if shell.keeper_period_s < _keeper_waits_s:
        _hurried.set()


def kept() -> list[BlockingShell]:
    """Returns the connections to be pinged. A set cannot be iterated while another thread adds to it."""
    with _kept_lock:
        return list(_kept)


def _renew_lock() -> None:
    """Replaces the lock after a fork: a thread of the parent process may have held it."""
    global _kept_lock
    _kept_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def _keep() -> None:
    global _keeper_waits_s
    while True:
        periods = [shell.keeper_period_s for shell in kept()]
        _keeper_waits_s = min(periods, default=KEEPER_PERIOD_S)
        if _hurried.wait(_keeper_waits_s):
            _hurried.clear()
            continue
        for shell in kept():
            shell.glance()

