"""A JVM whose JMS clients send and receive with duplicate ids (Failover.java) while their nodes come and go."""

from __future__ import annotations

from dataclasses import dataclass

from .jms import PASSWORD, USER
from .load import Load


@dataclass(frozen=True)
class Counts:
    """Counts of messages, then of transactions that the client was told were rolled back, and of other failed calls."""

    confirmed: int
    lost: int
    doubled: int
    rolled_back: int
    failed: int


class Failover(Load[Counts]):
    """`pairs` of a sender and a receiver at `url`; every second pair works in transactions."""

    def __init__(
        self, url: str, queue: str, pairs: int = 4, pause_ms: int = 20, classes: str | None = None
    ) -> None:
        arguments = (url, USER, PASSWORD, queue, str(pairs), str(pause_ms))
        super().__init__(Counts, "Failover", *arguments, classes=classes)

    def pause(self) -> Counts:
        """Lets no sender begin a message. Returns the counts when all that was begun is confirmed."""
        return self._asked("pause")

    def go(self) -> Counts:
        """Ends a pause."""
        return self._asked("go")

    def over(self) -> None:
        """Ends the load. Nothing is lost, nothing came again after it was taken."""
        counts = self.ended()
        assert counts.doubled == 0, counts
