"""Assertions about bodies of large messages, for tests and the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.reference import DONE, PagedReference

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker


def validate_large(broker: Broker) -> None:
    """Every body that something refers to is known, and held at least as often as that."""
    large = broker.large
    waiting = [reference for parked in broker.parked for reference in parked.references]
    for queue in broker.queues.values():
        waiting.extend(queue.references)
        for _, reference in broker.scheduled.of_queue(queue):
            if reference.sequence == 0:
                waiting.append(reference)
        if queue.paged is not None:
            waiting.extend(queue.paged.tail)
    held: dict[int, int] = {}
    for reference in waiting:
        body = reference.message.large
        if body is None or reference.state == DONE or isinstance(reference, PagedReference):
            continue
        held[body.file] = held.get(body.file, 0) + 1
    for page in broker.paging.pages.values():
        for body in page.bodies.values():
            held[body.file] = held.get(body.file, 0) + 1
    for file, count in held.items():
        known = large.bodies.get(file)
        assert known is not None, f"large message file {file} is gone"
        assert known.holders >= count, f"file {file}: {known.holders} holders, {count} seen"
    assert large.unwritten == sum(body.unwritten for body in large.bodies.values())
