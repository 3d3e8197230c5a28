"""The ends of peers from which nothing is read at the moment: the event loop finds an end only by reading.

A system without epoll (not Linux) has no watch: there an end is found when the connection is read again.
"""

from __future__ import annotations

import asyncio
import select
from typing import Protocol


class Paused(Protocol):
    """A connection that is not read."""

    def hung_up(self) -> None:
        """Handles the end of the peer, or of its sending side."""


class Socket(Protocol):
    """The socket of a connection, as event loops show it."""

    def fileno(self) -> int:
        """Returns the descriptor, -1 after the close."""


class HangUps:
    """The connections that are not read, in an epoll of their own; the event loop watches that one. Each is reported
    at most once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._epoll: select.epoll | None = None
        self._closed = not hasattr(select, "epoll")
        self._by_file: dict[int, Paused] = {}
        self._files: dict[Paused, int] = {}

    def watch(self, connection: Paused, socket: Socket | None) -> None:
        """Watches a connection until it is read again, or has ended."""
        file = -1 if socket is None else socket.fileno()
        if self._closed or file < 0:
            return
        epoll = self._epoll
        if epoll is None:
            self._epoll = epoll = select.epoll()
            self._loop.add_reader(epoll.fileno(), self._look)
        former = self._by_file.get(file)
        if former is not None:  # it was closed, and the system has used its number again
            self.unwatch(former)
        epoll.register(file, select.EPOLLRDHUP)  # the other kinds of an end need no request
        self._by_file[file] = connection
        self._files[connection] = file

    def unwatch(self, connection: Paused) -> None:
        """Ends the watch, if there is one."""
        file = self._files.pop(connection, -1)
        if file < 0:
            return
        del self._by_file[file]
        if self._epoll is not None:
            try:
                self._epoll.unregister(file)
            except OSError:
                pass  # the descriptor is closed, and so forgotten by the system

    def _look(self) -> None:
        if self._epoll is None:
            return
        for file, _ in self._epoll.poll(0):
            connection = self._by_file.get(file)
            if connection is not None:
                self.unwatch(connection)  # else the event would come again and again
                connection.hung_up()

    def close(self) -> None:
        """Ends all watches."""
        self._closed = True
        self._files.clear()
        self._by_file.clear()
        if self._epoll is not None:
            self._loop.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None
