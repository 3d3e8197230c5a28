"""Replies to senders, and messages for their queues, that wait until the journal is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.endpoint import Reply

if TYPE_CHECKING:
    from atalanta.kernel.errors import BrokerError
    from atalanta.kernel.queue.reference import Reference


class Awaiting:
    """An entry that waits for `lsn`: the `references` enter their queues in this order, then `endpoint.done(token)`."""

    def __init__(
        self, lsn: int, references: list[Reference], endpoint: Reply | None, token: int
    ) -> None:
        self.lsn = lsn
        self.references = references
        self.endpoint = endpoint
        self.token = token

    def take(self, count: int) -> list[Reference]:
        """Removes the first `count` references, and returns them."""
        taken = self.references[:count]
        self.references = self.references[count:]
        return taken


class DeferredRefusal(Reply):
    """A refusal that waits for the journal as a reply does."""

    def __init__(self, endpoint: Reply, error: BrokerError) -> None:
        self.endpoint = endpoint
        self.error = error

    def done(self, token: int) -> None:
        self.endpoint.failed(token, self.error)
