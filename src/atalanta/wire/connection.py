"""What every protocol's connection offers to the node that owns it."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from atalanta.kernel.security.authentication import LoginWaiter


class ProtocolError(Exception):
    """The peer broke the protocol: its connection is closed with this text, and nothing else happens."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection(LoginWaiter):
    """One transport connection, accepted or dialled. Bytes in through `feed`, bytes out through the Wire port."""

    def feed(self, now: int, data: bytes) -> None:
        """Bytes in order, in any pieces. ProtocolError: the node closes the connection."""
        raise NotImplementedError

    def resume(self, now: int) -> None:
        """What kept it from taking up more is over. ProtocolError as of `feed`."""
        return None

    def flush(self, now: int) -> None:
        """Give to the Wire port what this turn produced."""
        raise NotImplementedError

    def closed(self, now: int, why: str) -> None:
        """The transport is gone; everything that lived on it must go or be given back."""
        raise NotImplementedError

    def lost(self, now: int, why: str) -> None:
        """The peer, or the way to it, ended the connection; what can wait for the peer to come back may."""
        self.closed(now, why)

    def on_blocked(self, now: int, blocked: bool) -> None:
        """The peer takes our bytes too slowly (or well again): what can wait should."""
        return None

    def peer(self) -> str:
        """Where the peer is, for people: host:port, or "" where nobody knows."""
        return ""

    def check_alive(self, now: int) -> bool:
        """False when the peer was silent for longer than allowed: the node closes the connection."""
        return True

    def stop(self, now: int) -> None:
        """The node stops: say good-bye in the protocol's own way."""
        return None
