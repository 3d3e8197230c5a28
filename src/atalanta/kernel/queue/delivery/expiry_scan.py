"""The search for expired messages in a queue without consumers (message-expiry-scan-period)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.reference import READY, Reference
from atalanta.message.internal_headers import FORWARD_DUPLICATE

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue


class ExpiryScan:
    """Result of one scan step: `found` expired references among `examined` ones; `at_end`: of those in memory."""

    def __init__(self) -> None:
        self.found: list[Reference] = []
        self.examined: int = 0
        self.at_end: bool = True


def may_expire(reference: Reference) -> bool:
    """Returns False for a message that another node may have, too: it would expire twice, or although it arrived.

    A node that left may have sent it, before it handed it over.
    """
    sent_through = reference.queue.log.sent_through
    if sent_through < 0:
        return True
    message = reference.message
    return reference.sequence > sent_through and not (message.special and message.has_property(FORWARD_DUPLICATE))


def scan(queue: Queue, now_ms: int, examined_max: int, found_max: int) -> ExpiryScan:
    """Continues the scan at the sequence `queue.expiry_scan`, which is 0 again when the end is reached."""
    step = ExpiryScan()
    references = queue.references
    start = queue.index_of(queue.expiry_scan)
    index = start
    end = min(start + examined_max, len(references))
    while index < end and len(step.found) < found_max:
        reference = references[index]
        index += 1
        expiration = reference.message.expiration
        if expiration != 0 and expiration <= now_ms and reference.state == READY and may_expire(reference):
            step.found.append(reference)
    step.examined = index - start
    step.at_end = index >= len(references)
    queue.expiry_scan = 0 if step.at_end else references[index - 1].sequence + 1
    return step


def restart(queue: Queue) -> None:
    """Restarts the scan at the first message, because a log view pins the queue."""
    queue.expiry_scan = 0


def resume(queue: Queue) -> None:
    """Continues the scan of a finished round, because messages were read from page files."""
    queue.expiry_scan = 1
