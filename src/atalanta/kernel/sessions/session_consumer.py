"""The consumer of a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.consumer import Consumer

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.sessions.session import Session
    from atalanta.message.selector.selector import Filter


class SessionConsumer(Consumer):
    """A consumer that a client has in its session; the consumer of a bridge has no session."""

    def __init__(
        self,
        session: Session,
        consumer_id: int,
        queue: Queue,
        selector: Filter | None,
        browse_only: bool,
        priority: int,
    ) -> None:
        super().__init__(consumer_id, queue, session.endpoint, selector, browse_only, priority)
        self.session = session
