"""The messages that another broker has refused, over all connections of one bridge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.server.sessions.errors import FINAL_FOR_BRIDGES

if TYPE_CHECKING:
    from atalanta.wire.openwire.encoding.throwable import Throwable

REFUSALS_MAX: Final = 6  # maximumRedeliveries of activemq-client
MESSAGES_MAX: Final = 10_000
# Refusals that say something about the other broker, not about the message: an operator can change it.
PASSING: Final = ("SecurityException", "ResourceAllocationException", "IOException", "Stopp", "Shutdown", "Disposed")


class Refusals:
    """The counts by id of the message."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def is_final(self, message_id: str, cause: Throwable | None) -> bool:
        """Counts a refusal. Returns True if the message was refused too often to be sent again."""
        name = "" if cause is None else cause.class_name or ""
        if name == FINAL_FOR_BRIDGES:
            return True
        if any(word in name for word in PASSING):
            return False
        count = self.counts.pop(message_id, 0) + 1
        if count >= REFUSALS_MAX:
            return True
        if len(self.counts) >= MESSAGES_MAX:
            self.counts.clear()
        self.counts[message_id] = count
        return False

    def accepted(self, message_id: str) -> None:
        """Forgets a message that was accepted."""
        if self.counts:
            self.counts.pop(message_id, None)
