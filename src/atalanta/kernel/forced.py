"""Receiving without waiting: the client is told when everything that could be delivered is on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.queue import Queue


def answer_forced(queue: Queue) -> None:
    """After a round that left nothing; who cannot have got everything yet waits on in `queue.forced`."""
    forced = queue.forced
    queue.forced = []
    for consumer, sequence in forced:
        late = consumer.blocked or (
            queue.counting is not None and queue.counting.waits(consumer)
        )
        if late and not consumer.closed:
            queue.forced.append((consumer, sequence))
        elif not consumer.closed:
            consumer.endpoint.forced(consumer, sequence)
