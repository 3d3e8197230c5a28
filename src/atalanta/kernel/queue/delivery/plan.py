"""The plan of one message: its routes and duplicate ids, before any record is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.routing.router import Route
    from atalanta.message.message import Message


class RoutingPlan:
    """Result of preparing a message: its routes and its duplicate ids.

    `repeats_lsn` >= 0: the message is a repeat, and its reply waits for that lsn. `after_lsn`: for a non-durable
    message that depends on a record, the lsn that must be durable before the message is delivered.
    """

    def __init__(self, message: Message) -> None:
        self.message = message
        self.routes: list[Route] = []
        self.duplicates: list[tuple[str, bytes]] = []
        self.repeats_lsn: int = -1
        self.unrouted: bool = False  # no queue takes the message, though it is not one for any number of subscribers
        self.after_lsn: int = 0
        self.origin: RoutingPlan | None = None  # the original: gives its id to the copy's headers (origin_headers.py)
        self.acknowledged: list[Route] | None = None  # by a transaction in doubt: kernel/publish/scale_down_target.py
        self.diverted: list[RoutingPlan] | None = None  # copies made by diverts, written with the message

    def is_routed(self) -> bool:
        """Returns True if a queue takes the message, or one of the copies that diverts made of it."""
        if self.routes or self.diverted is None:
            return bool(self.routes)
        return any(copy.routes for copy in self.diverted)
