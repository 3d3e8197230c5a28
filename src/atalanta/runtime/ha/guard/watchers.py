"""The backups that watch a guard: their connections, from the handshake to the proof. Part of the guard's process."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from functools import partial
from selectors import EVENT_READ, BaseSelector

from atalanta.runtime.ha.guard.frames import (
    ENDED,
    NONCE_SIZE,
    WATCH_SIZE,
    WATCHED,
    GuardBytesDamaged,
    decode_watch,
    encode_answer,
    encode_hello,
)

# A group has few members. Beyond this the oldest connection goes: those that have not logged in first.
CONNECTIONS_MAX = 32
HANDSHAKE_S = 5.0
# After this silence the system asks whether the host of a backup is still there.
KEEPALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class GuardConnection:
    """One connection. `nonce` is the backup's random number after it has logged in, empty before."""

    def __init__(self, connection: socket.socket, guard_nonce: bytes) -> None:
        self.connection = connection
        self.guard_nonce = guard_nonce
        self.nonce = b""
        self.received = b""
        self.deadline = time.monotonic() + HANDSHAKE_S


class GuardConnections:
    """All connections of a guard. `select` registers a socket with what is called when it can be read."""

    def __init__(self, selector: BaseSelector) -> None:
        self.epoch = 0
        self._secret = b""
        self._selector = selector
        self._listeners: list[socket.socket] = []
        self._all: list[GuardConnection] = []
        self._ended = False

    def listen(self, listener: socket.socket) -> None:
        """Accepts the connections of one more listener."""
        listener.setblocking(False)
        self._listeners.append(listener)
        self._register(listener, partial(self._accept, listener))

    def listen_no_more(self) -> None:
        """Closes the listeners: another process may want their ports."""
        for listener in self._listeners:
            self._selector.unregister(listener)
            listener.close()
        self._listeners.clear()

    def activate(self, epoch: int, secret: bytes) -> None:
        """The broker is active in this epoch. Who watches an earlier one has to ask again."""
        for watcher in list(self._all):
            self._close(watcher)
        self.epoch = epoch
        self._secret = secret

    def end(self) -> int:
        """Tells everybody that the broker has ended, and whoever logs in from now on. Returns how many were told."""
        for listener in self._listeners:
            self._accept(listener)
        self._ended = True
        for watcher in list(self._all):
            if watcher.nonce:
                self._send(watcher, ENDED)
        return self.watching

    @property
    def watching(self) -> int:
        """Returns the number of backups that have logged in. A told one closes its connection after its takeover."""
        return sum(1 for watcher in self._all if watcher.nonce)

    @property
    def pending(self) -> int:
        """Returns the number of connections that have not logged in."""
        return len(self._all) - self.watching

    def timeout_s(self) -> float | None:
        """Returns the seconds until a handshake takes too long, None if there is none. Closes those that do."""
        now = time.monotonic()
        waiting = [watcher for watcher in self._all if not watcher.nonce]
        for watcher in waiting:
            if watcher.deadline <= now:
                self._close(watcher)
        return min((each.deadline - now for each in waiting if each.deadline > now), default=None)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError:  # the peer has gone, or there is no free descriptor: the next one, or the next time
                return
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            keep_alive(connection)
            if len(self._all) == CONNECTIONS_MAX:
                self._close(min(self._all, key=lambda each: bool(each.nonce)))
            watcher = GuardConnection(connection, os.urandom(NONCE_SIZE))
            self._all.append(watcher)
            self._register(connection, partial(self._read, watcher))
            self._write(watcher, encode_hello(watcher.guard_nonce))

    def _read(self, watcher: GuardConnection) -> None:
        """Reads the one frame that a backup sends. Anything after it, and its end, closes the connection."""
        try:
            data = watcher.connection.recv(max(1, WATCH_SIZE - len(watcher.received)))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or watcher.nonce:
            self._close(watcher)
            return
        watcher.received += data
        if len(watcher.received) == WATCH_SIZE:
            self._log_in(watcher)

    def _log_in(self, watcher: GuardConnection) -> None:
        try:
            if not self._secret:
                raise GuardBytesDamaged("the broker was never active")
            watcher.nonce = decode_watch(watcher.received, self._secret, self.epoch, watcher.guard_nonce)
        except GuardBytesDamaged:
            self._close(watcher)  # the backup says why it is not watched, and tries again
            return
        self._send(watcher, WATCHED)
        if self._ended:
            self._send(watcher, ENDED)

    def _send(self, watcher: GuardConnection, kind: int) -> None:
        answer = encode_answer(kind, self._secret, self.epoch, watcher.guard_nonce, watcher.nonce)
        self._write(watcher, answer)

    def _write(self, watcher: GuardConnection, frame: bytes) -> None:
        """Writes a frame. The buffer of a socket takes all frames of a connection: one that does not is broken."""
        try:
            whole = watcher.connection.send(frame) == len(frame)
        except OSError:
            whole = False
        if not whole:
            self._close(watcher)

    def _close(self, watcher: GuardConnection) -> None:
        if watcher in self._all:
            self._all.remove(watcher)
            self._selector.unregister(watcher.connection)
            watcher.connection.close()

    def _register(self, source: socket.socket, act: Callable[[], None]) -> None:
        self._selector.register(source, EVENT_READ, act)


def keep_alive(connection: socket.socket) -> None:
    """Lets the system close the connection if the other host is lost."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE:
        option = getattr(socket, name, None)
        if option is not None:  # not every system has all of them
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
