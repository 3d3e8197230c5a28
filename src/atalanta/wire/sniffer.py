"""The connection of a peer whose protocol is not known yet: its first bytes decide.

CORE may also follow an HTTP upgrade (wire/http_upgrade.py), if the acceptor allows that. In a WebSocket the carried
bytes decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.connection import ARRIVAL_NS, DEFAULT_TTL_NS, ClientConnection
from atalanta.wire.detect import FIRST_BYTES_MAX, HTTP, NEED_MORE, TLS, UNKNOWN, detect, protocol_of
from atalanta.wire.http_upgrade import UpgradeAnswer
from atalanta.wire.protocol import MORE, YES
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.wire.endpoint import AcceptorConfig
    from atalanta.wire.protocol import Peer, Protocol
    from atalanta.wire.server import WireServer
    from atalanta.wire.web_socket import WebSocket


class Sniffer(ClientConnection):
    """A connection before its protocol is known. The connection of the protocol replaces it in `host.connections`.

    At most 16 bytes wait for a decision. `held` are bytes that arrived during `hold_input`.
    """

    def __init__(
        self, host: WireServer, conn: int, peer: Peer, now: int, acceptor: AcceptorConfig | None
    ) -> None:
        super().__init__(conn, peer.remote, now, acceptor)
        self.host = host
        self.from_peer = peer
        self.first_bytes: bytes = b""
        self.upgrade: UpgradeAnswer | None = None
        self.web_socket: WebSocket | None = None
        self.holds: int = 0
        self.held: list[bytes] = []

    # -- bytes in -------------------------------------------------------------------------------
    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        if self.holds > 0 or self.held:  # released, but `resume` is still to come
            self.held.append(data)
        else:
            self._take(now, data)

    def _take(self, now: int, data: bytes) -> None:
        """Detects the protocol. ProtocolError if the acceptor does not serve it."""
        if self.upgrade is not None:
            data = self._answer_upgrade(self.upgrade, data)
        elif self.web_socket is not None:
            data = self._from_web_socket(self.web_socket, data)
        data = self.first_bytes + data
        first = data[:FIRST_BYTES_MAX]
        if first and self.web_socket is None and detect(first) == HTTP and self._upgrades(first):
            core = self.acceptor is not None and self.acceptor.http_upgrade_enabled
            self.upgrade = UpgradeAnswer(core, self._subprotocols() if self._has_web_sockets() else None)
            data = self._answer_upgrade(self.upgrade, data)
            first = data[:FIRST_BYTES_MAX]
        if not first:
            return
        undecided = False
        for protocol in self.host.protocols:
            answer = protocol.recognises(first)
            if answer == YES:
                self._replace(now, protocol, data)
                return
            undecided = undecided or answer == MORE
        if len(first) < FIRST_BYTES_MAX and (undecided or detect(first) == NEED_MORE):
            self.first_bytes = data
            return
        raise ProtocolError(self._refusal(detect(first)))

    def _upgrades(self, first: bytes) -> bool:
        """Returns True if this may be a request that is answered."""
        if self.acceptor is not None and self.acceptor.http_upgrade_enabled:
            return True
        return first.startswith(b"GET ") and self._has_web_sockets()

    def _has_web_sockets(self) -> bool:
        """Returns True if a protocol of the node uses WebSockets: at an acceptor without it they are refused by name.
        """
        return any([protocol.subprotocols for protocol in self.host.protocols])

    def _subprotocols(self) -> tuple[str, ...]:
        """Returns the names in a WebSocket of all protocols that the acceptor serves."""
        found: list[str] = []
        for protocol in self.host.protocols:
            if self.acceptor is None or self.acceptor.serves(protocol.name):
                found.extend(protocol.subprotocols)
        return tuple(found)

    def _from_web_socket(self, socket: WebSocket, data: bytes) -> bytes:
        """Returns what the WebSocket carries, and writes its answers."""
        carried = socket.receive(data)
        answers = socket.take_answers()
        if answers:
            self.host.wire.write(self.conn, answers)
        if socket.closed:
            self.host.closing.append((self.conn, "the peer closed its WebSocket"))
        return bytes(carried)

    def _answer_upgrade(self, upgrade: UpgradeAnswer, data: bytes) -> bytes:
        """Returns the bytes behind a complete HTTP upgrade, which is answered; b"" before its end."""
        try:
            upgrade.feed(data)
        except ProtocolError as error:
            for offered in upgrade.offered:
                name = protocol_of(offered)
                if name and offered not in (upgrade.subprotocols or ()):
                    raise ProtocolError(f"{self._refusal(name)}; it came in a WebSocket") from error
            if upgrade.core:
                raise
            raise ProtocolError(f"{error}: {self._refusal(HTTP)}") from error
        self.first_bytes = b""
        if not upgrade.done:
            return b""
        self.upgrade = None
        self.host.wire.write(self.conn, upgrade.answer)
        rest: bytes = upgrade.rest
        self.web_socket = upgrade.web_socket
        if self.web_socket is not None:
            rest = self._from_web_socket(self.web_socket, rest)
        return rest

    def _replace(self, now: int, protocol: Protocol, data: bytes) -> None:
        """Hands the connection over to its protocol, with all bytes so far and in the same state."""
        acceptor = self.acceptor
        if acceptor is not None and not acceptor.serves(protocol.name):
            raise ProtocolError(self._refusal(protocol.name))
        connection = protocol.open(self.conn, self.from_peer, self.opened, acceptor)
        self.gone = True
        self.host.connections[self.conn] = connection
        if self.reconnecting and isinstance(connection, ClientConnection):
            connection.refuse_requests(not self.disconnect_delayed)
        if self.web_socket is not None and isinstance(connection, ClientConnection):
            connection.use_web_socket(now, self.web_socket, data)
        else:
            connection.feed(now, data)

    def _refusal(self, name: str) -> str:
        """Returns the text for a protocol that is not served: protocol, acceptor and remedy."""
        at = "" if self.acceptor is None else f" at acceptor {self.acceptor.name}"
        if name == TLS:
            return f"the peer speaks TLS, which is not enabled{at}: set sslEnabled=true at both, or at neither"
        served = list(dict.fromkeys(protocol.name for protocol in self.host.protocols))
        here = [each for each in served if self.acceptor is None or self.acceptor.serves(each)]
        clients = f"use a client of {', '.join(here or served)}"
        if name == UNKNOWN or name == NEED_MORE:
            return f"the peer speaks an unknown protocol{at}: {clients}"
        if name in served:
            return (
                f"the peer speaks {name}, which is not enabled{at}:"
                f" add {name} to the protocols parameter of the acceptor"
            )
        if name == HTTP:
            return (
                f"the peer speaks HTTP, which is not implemented{at}: {clients},"
                " without httpEnabled=true; for a WildFly client set httpUpgradeEnabled at the acceptor"
            )
        return f"the peer speaks {name}, which is not implemented{at}: {clients}"

    def hold_input(self) -> None:
        self.holds += 1
        if self.holds == 1:
            self.host.wire.pause(self.conn)

    def release_input(self) -> None:
        self.holds -= 1
        if self.holds == 0:
            self.host.resumed.append(self.conn)

    def resume(self, now: int) -> None:
        if self.holds > 0:
            return
        self.last_seen = now
        data = b"".join(self.held)
        self.held.clear()
        self.host.wire.resume(self.conn)
        if data:
            self._take(now, data)

    # -- life -----------------------------------------------------------------------------------
    def flush(self, now: int) -> None:
        """Does nothing: a sniffer writes at once."""

    def on_blocked(self, now: int, blocked: bool) -> None:
        """Closes the connection: a peer that does not read before login is not served."""
        if blocked:
            self.host.close_unread(now, self)

    def check_alive(self, now: int) -> bool:
        if self.holds > 0:
            return True
        why = self.overdue(now, DEFAULT_TTL_NS, True)
        if why:
            self.host.timed_out(self, why)
        return not why

    def stop(self, now: int) -> None:
        """Waits a moment for a client that reconnects from another node; it gets the address of the next node here.
        """
        self.reconnecting = now - self.opened < ARRIVAL_NS
        if not self.reconnecting:
            self.host.closing.append((self.conn, "the node stops"))

    def disconnect(self, now: int, held_ns: int) -> None:
        super().disconnect(now, held_ns)
        if self.reconnecting:
            self.release_input()

    def closed(self, now: int, why: str) -> None:
        self.gone = True
