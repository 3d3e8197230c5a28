"""References: the state of one message in one queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i16, i32

from atalanta.message.stored_reference import StoredReference

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.message import Message

READY: Final = 0
DELIVERING: Final = 1
DONE: Final = 2
SCHEDULED: Final = 3  # until its delivery time: kernel/queue/delivery/scheduled.py


class Reference(StoredReference):
    """State of `message` in `queue`; `sequence` is its position there and never changes once assigned.

    Sequence 0: a message sent with a delivery time, which gets its sequence when that time comes.

    `route_to` is used in store-and-forward queues only: the concatenated 8-byte binding ids on the peer
    (`_AMQ_ROUTE_TO` on the wire). The ids are kept in the reference and not in the message, so that one message can
    wait for several peers without a copy.
    """

    def __init__(self, message: Message, queue: Queue, sequence: int, route_to: bytes) -> None:
        self.message = message
        self.queue = queue
        self.sequence = sequence
        self.route_to = route_to
        self.consumer: QueueConsumer | None = None
        # The size at the message's arrival: the same value is counted in and counted out.
        self.size: int = message.size
        self.delivery_count: i32 = 0
        self.state: i16 = READY
        # A log view shows durable messages only: a queue with a log view keeps all.
        self.durable: bool = queue.durable and (message.durable or queue.leased)

    def make_durable(self) -> None:
        """Makes the reference one that the journal keeps."""
        self.durable = True

    def uncount_delivery(self) -> None:
        """Takes the latest delivery back: no client has seen the message."""
        self.delivery_count -= 1
