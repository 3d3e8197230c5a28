"""A part of a node that reaches out: cluster connections, bridges, and whatever else dials, listens or has timers.

The node hands every input on by the first segment of its key: keys of dials and timers are `"<part>.<rest>"`, as in
"cluster.bridge.<node id>". Parts are asked in the order in which the node made them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.wire.connection import Connection


class Part:
    """Every method may be left as it is. All are called with the node's `now`, one at a time."""

    def start(self, now: int) -> None:
        """The journal is read, the configured queues exist."""

    def stop(self, now: int) -> None:
        """The node says good-bye: dial nothing any more. Connections say their own."""

    def on_dialed(self, now: int, conn: int, key: str) -> Connection | None:
        """A dial succeeded; None if its connection is not wanted any more."""
        return None

    def on_dial_failed(self, now: int, key: str, why: str) -> None:
        """A dial did not succeed."""

    def on_timer(self, now: int, key: str) -> None:
        """A timer of this part is due."""

    def on_datagram(self, now: int, group: str, data: bytes) -> None:
        """A datagram came; every part hears of it and knows its own groups."""

    def on_resolved(self, now: int, key: str, places: list[tuple[str, int]], why: str) -> None:
        """The DNS answered; `why` tells what went wrong, "" nothing."""

    def on_posted(self, now: int, key: str, files: dict[str, bytes], why: str) -> None:
        """The files of a shared folder; `why` tells what went wrong, "" nothing."""

    def on_accepted(self, now: int, conn: int, key: str) -> Connection | None:
        """Somebody came to what `Links.listen` opened; None if nobody is wanted."""
        return None

    def flush(self, now: int) -> None:
        """Once per turn, before connections write."""
