"""The open connections of a node at work: their input, the errors of their peers and our own, and their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.connection import ClientConnection
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.server import TOO_MANY_WITHOUT_LOGIN, WireServer

if TYPE_CHECKING:
    from atalanta.kernel.security.directory import DirectoryAnswer

TTL_TIMER: Final = "wire.ttl"
HUNG_UP: Final = "closed by the peer"
SILENT: Final = "silent for longer than its time to live"


class OpenConnections:
    """The connections of `host`, by the event loop's number. An error of a peer ends its connection and nothing else.

    So does an unexpected exception, until the command begins to change the kernel (kernel/command.py); from there on it
    is raised again, and ends the node.
    """

    def __init__(self, host: WireServer) -> None:
        self.host = host
        self.by_number = host.connections
        self.command = host.broker.command

    def receive(self, now: int, conn: int, data: bytes) -> None:
        """Gives the next bytes to their connection."""
        connection = self.by_number.get(conn)
        if connection is None:
            return
        try:
            self.command.begin()
            connection.feed(now, data)
        except (ProtocolError, DecodeError) as error:
            self._break_off(now, conn, str(error))
        except Exception as failure:  # a separate name: mypyc gives each name one type
            self._end_failed(now, conn, failure)

    def resume(self, now: int) -> None:
        """Continues connections that waited, as for the disk, with the input that they hold."""
        while self.host.resumed:
            for conn in self.host.take_resumed():
                connection = self.by_number.get(conn)
                if connection is None:
                    continue
                try:
                    self.command.begin()
                    connection.resume(now)
                except (ProtocolError, DecodeError) as error:
                    self._break_off(now, conn, str(error))
                except Exception as failure:
                    self._end_failed(now, conn, failure)

    def answer_logins(self, now: int, token: int, ok: bool) -> None:
        """Answers all logins that waited for the comparison `token` of the Passwords port."""
        verdict = self.host.logins.finished(now, token, ok)
        for waiter in verdict.waiters:
            try:
                self.command.begin()
                waiter.login_done(now, verdict.identity)
            except ProtocolError as error:
                self._break_off(now, waiter.conn, str(error))
            except Exception as failure:
                self._end_failed(now, waiter.conn, failure)

    def take_answer(self, now: int, token: int, answer: DirectoryAnswer) -> None:
        """Answers all logins that waited for the question `token` to a directory, or asks what they depend on next."""
        verdict = self.host.logins.directories.finished(now, token, answer)
        for asker in verdict.askers:
            try:
                self.command.begin()
                asker.looked_up(now, verdict.answer)
            except ProtocolError as error:
                self._break_off(now, asker.conn, str(error))
            except Exception as failure:
                self._end_failed(now, asker.conn, failure)

    def write(self, now: int) -> None:
        """Writes what connections have to send."""
        for conn in self.host.take_dirty():
            connection = self.by_number.get(conn)
            if connection is not None:
                connection.flush(now)

    def arriving(self) -> bool:
        """Returns whether clients of a stopping node are still connecting, and are told where to go."""
        for connection in self.by_number.values():
            if isinstance(connection, ClientConnection) and connection.reconnecting:
                return True
        return False

    # -- ends -----------------------------------------------------------------------------------
    def hung_up(self, now: int, conn: int) -> None:
        """Ends the connection of a peer that has gone, unless what it has sent is about to be processed."""
        connection = self.by_number.get(conn)
        if connection is not None and connection.hung_up(now):
            del self.by_number[conn]
            connection.lost(now, HUNG_UP)
            self.host.wire.close(conn, HUNG_UP)

    def start(self, now: int) -> None:
        """Sets the timer of `check_alive`."""
        interval_ms = self.host.broker.config.connection_ttl_check_interval_ms
        self.host.broker.timers.set(TTL_TIMER, now + interval_ms * 1_000_000)

    def check_alive(self, now: int) -> None:
        """Ends connections that are silent, and the newest of hosts that have too many without a login."""
        for protocol in self.host.protocols:
            protocol.check(now)
        self.host.unfinished.check(now)
        for conn in list(self.by_number):
            connection = self.by_number.get(conn)
            if connection is not None and not connection.check_alive(now):
                self.close(now, conn, SILENT)
        for conn in self.host.too_many_without_login(now):
            self.close(now, conn, TOO_MANY_WITHOUT_LOGIN)
        self.start(now)

    def end_closing(self, now: int) -> None:
        """Ends the connections that were to end after this batch of inputs."""
        for conn, why in self.host.take_closing():
            self.close(now, conn, why)

    def close(self, now: int, conn: int, why: str) -> None:
        """Ends a connection. What it has to send is written before."""
        connection = self.by_number.pop(conn, None)
        if connection is not None:
            connection.flush(now)
            connection.closed(now, why)
        self.host.wire.close(conn, why)

    def _break_off(self, now: int, conn: int, why: str) -> None:
        """Ends the connection of a peer that violated the protocol. The links of this node's own have no remote
        address: their part reports the end, with the reason."""
        self.command.end()
        connection = self.by_number.get(conn)
        remote = "" if connection is None else connection.peer()
        # A client with the wrong protocol or version tries for ever.
        unknown = isinstance(connection, ClientConnection) and not connection.authenticated
        if remote and (not unknown or self.host.refusals.admits(now, remote, why)):
            self.host.broker.trace.event("protocol_error", {"connection": conn, "remote": remote, "why": why})
        self.close(now, conn, why)

    def _end_failed(self, now: int, conn: int, error: Exception) -> None:
        """Ends the connection whose command failed by a mistake of ours, outside the kernel's state.

        A command that has begun to change the kernel fails the node: the exception is raised again.
        """
        if self.command.changing:
            raise error
        connection = self.by_number.get(conn)
        self.command.end()
        name, protocol, remote = "", "", ""
        if connection is not None:
            name, remote = connection.command_name(), connection.peer()
            protocol = connection.client.protocol if isinstance(connection, ClientConnection) else "link"
        self.close(now, conn, self.host.broker.failures.report(now, protocol, name, remote, error))
