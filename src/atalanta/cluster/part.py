"""A part of a node that dials, listens or has timers: cluster connections, bridges and others.

Keys of dials and timers are `"<part>.<rest>"`, for example "cluster.bridge.<node id>". The node passes every input
to the part in the first segment of its key. Parts are called in the order in which the node created them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.wire.connection import TransportConnection


class Part:
    """Base of all parts. Overriding a method is optional. The node calls them one at a time, with its `now`.

    `wants_turn`: it has work in each event-loop iteration, so `flush` is called.
    """

    wants_turn: bool = False

    def start(self, now: int) -> None:
        """Starts the part. The journal is read, and the configured queues exist."""

    def stop(self, now: int) -> None:
        """Stops the part: it dials no more. Connections send their own DISCONNECT."""

    def on_dialed(self, now: int, conn: int, key: str) -> TransportConnection | None:
        """Handles a successful dial. Returns its TransportConnection, None if it is not needed any more."""
        return None

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        """Handles a failed dial."""

    def on_timer(self, now: int, key: str) -> None:
        """Handles a timer of this part that is due."""

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        """Handles a datagram. Every part gets it and selects those of its own groups."""

    def on_resolved(self, now: int, key: str, places: list[tuple[str, int]], why: str) -> None:
        """Handles an answer of the DNS. `why` is the error, "" if there is none."""

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        """Handles the files of a shared folder. `why` is the error, "" if there is none."""

    def on_settings_stored(self) -> None:
        """Handles that a management request has changed the stored settings. It is answered when what the part appends
        to the journal now is durable."""

    def on_accepted(self, now: int, conn: int, key: str, remote: str) -> TransportConnection | None:
        """Handles a connection of `remote`, host:port, accepted by a listener of `Links.listen`. Returns None to
        refuse it."""
        return None

    def flush(self, now: int) -> None:
        """Runs once per event-loop iteration while the part wants a turn, before the connections write."""
