"""A client protocol of the broker. The node asks each protocol if it recognises the first bytes of a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.wire.connection import TransportConnection

if TYPE_CHECKING:
    from atalanta.wire.endpoint import AcceptorConfig

# Answers of `Protocol.recognises`.
NO: Final = 0
YES: Final = 1
MORE: Final = 2  # bytes are needed


class Peer:
    """The peer of an accepted connection: `remote` is host:port, `certificate` the subject of its TLS certificate.

    `server_name` is the name that a TLS client asked for, None without one.
    """

    def __init__(self, remote: str, server_name: str | None = None, certificate: str = "") -> None:
        self.remote = remote
        self.server_name = server_name
        self.certificate = certificate


@mypyc_attr(allow_interpreted_subclasses=True)
class Protocol:
    """A protocol of one node. `name` is its name in the `protocols` parameter of acceptors, in capitals.

    `subprotocols` are its names in a WebSocket, the preferred ones first; none if it does not use them.
    """

    name: str = ""
    subprotocols: tuple[str, ...] = ()

    def recognises(self, first: bytes) -> int:
        """Returns YES, NO or MORE for the first bytes of a connection, at most 16."""
        raise NotImplementedError

    def open(
        self, conn: int, peer: Peer, now: int, acceptor: AcceptorConfig | None
    ) -> TransportConnection:
        """Returns the connection that takes all bytes from the first one on. `now`: the time of the accept in ns."""
        raise NotImplementedError

    def check(self, now: int) -> None:
        """Ends sessions that waited too long for their client after its connection was lost."""
        return None

    def on_timer(self, now: int, key: str) -> None:
        """Handles a timer of a protocol; its key begins with `wire.`."""
        return None

    def end(self, now: int, conn: int) -> None:
        """Ends the sessions of a connection that is lost already, as an operator asked for."""
        return None

    def end_all(self, now: int) -> None:
        """Ends the sessions of all lost connections: the node stops or leaves."""
        return None
