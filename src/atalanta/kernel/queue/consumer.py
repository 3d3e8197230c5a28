"""A consumer of one queue: credit, selector, position and unacknowledged messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.kernel.endpoint import SenderEndpoint
from atalanta.kernel.queue.unacknowledged_references import Unacknowledged

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeStream
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message
    from atalanta.message.selector.selector import Filter


@mypyc_attr(allow_interpreted_subclasses=True)
class DeliveryEndpoint(SenderEndpoint):
    """The receiver of a consumer's messages: a session of a protocol, or a bridge."""

    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        """Writes the message; returns its cost in credits (CORE: bytes)."""
        raise NotImplementedError

    def drained(self, consumer: QueueConsumer, token: int) -> None:
        """Reports that every message that could be delivered was delivered: the answer to `Session.drain`."""
        raise NotImplementedError

    def top_up(self, consumer: QueueConsumer) -> bool:
        """Gives the consumer the credits that its client's window allows, if some were kept back. Returns true if there
        were any.
        """
        return False

    def consumer_gone(self, consumer: QueueConsumer, why: str) -> None:
        """Reports that the queue of the consumer was deleted."""
        raise NotImplementedError


class ConsumerCounts:
    """The counts of messages that a consumer got and acknowledged (ServerConsumerImpl.ServerConsumerMetrics).

    Times are in ns, 0: never. Browsed messages are not counted. `checked_at` and `checked_taken` are the time of the
    last check of kernel/sessions/slow_consumers.py, and the messages taken by then.
    """

    def __init__(self) -> None:
        self.delivered: int = 0
        self.delivered_bytes: int = 0
        self.delivered_at: int = 0
        self.acknowledged_at: int = 0
        self.checked_at: int = 0
        self.checked_taken: int = 0

    def add_delivered(self, size: int, now: int) -> None:
        """Counts a message of that size in bytes."""
        self.delivered += 1
        self.delivered_bytes += size
        self.delivered_at = now

    def note_checked(self, now: int, taken: int) -> None:
        self.checked_at = now
        self.checked_taken = taken


class QueueConsumer:
    """A consumer's state.

    `credits` are bytes (SESS_FLOWTOKEN of the CORE protocol), or messages with `counts_messages`; `unlimited` when the
    client asked for -1. `position` is the lowest sequence this consumer has not examined yet: a message its selector
    refused is not examined again. `shares`: the consumer takes every message, and moves the queue's own cursor.
    `unacknowledged` is in order of delivery. `marked` goes on the wire instead of the message of this delivery. `id` is
    the client's number for the consumer, `sequential_id` the broker's (0: a bridge). `created_at` is in ns.
    """

    def __init__(
        self,
        consumer_id: int,
        queue: Queue,
        endpoint: DeliveryEndpoint,
        selector: Filter | None,
        browse_only: bool,
        priority: int,
    ) -> None:
        # Fields that every delivery reads or changes come first (see Queue).
        self.endpoint = endpoint
        self.queue = queue
        self.unacknowledged = Unacknowledged()
        self.credits: int = 0
        self.counts = ConsumerCounts()
        self.id = consumer_id
        self.marked: Message | None = None
        self.started: bool = False  # started and not blocked: the one flag that `ready` checks
        self.closed: bool = False
        self.unlimited: bool = False
        self.counts_messages: bool = False
        self.prefetch: int = 0  # with `counts_messages`: the window of the client
        self.browse_only = browse_only
        self.pre_acknowledge: bool = False
        self.shares: bool = True
        self.blocked: bool = False  # the connection takes no more at the moment
        self.selector = selector
        self.priority = priority
        self.position: int = 0
        self.cursors: list[int] = []  # by level, while the queue's priorities are mixed
        self.window: int = 0  # the first credits (bytes); a client without a buffer gives 1
        self.stream: LargeStream | None = None  # a large message being sent: no other message is delivered meanwhile
        self.created_at: int = 0
        self.sequential_id: int = 0

    def open(self, now: int, sequential_id: int, pre_acknowledge: bool) -> None:
        """Records when a client created the consumer, and if delivered messages count as acknowledged.

        Browsers acknowledge nothing (ServerConsumerImpl).
        """
        self.created_at = now
        self.sequential_id = sequential_id
        self.pre_acknowledge = pre_acknowledge and not self.browse_only

    def claims(self) -> bool:
        """Returns true if the consumer wants the queue for itself (`claimed` in consumers.py)."""
        return False

    def count_messages(self, prefetch: int) -> None:
        """Makes the credits count messages; `prefetch`: the window, also of a consumer without flow control."""
        self.counts_messages = True
        self.prefetch = prefetch

    def close(self) -> None:
        """Closes the consumer: it takes no more messages."""
        self.closed = True

    def show_started(self, started: bool, blocked: bool) -> None:
        """Sets the state of the session: started, and blocked by a connection that takes no more.

        Browsers are always started (ServerConsumerImpl.setStarted).
        """
        self.started = (started or self.browse_only) and not blocked
        self.blocked = blocked

    def begin_stream(self, stream: LargeStream) -> None:
        """Starts a large message: until `end_stream` the consumer gets no other message."""
        self.stream = stream
        self.started = False
        self.blocked = True

    def end_stream(self, started: bool, blocked: bool) -> None:
        """Ends a large message, sent or aborted; the arguments are those of `show_started`."""
        self.stream = None
        self.show_started(started, blocked)

    def ready(self) -> bool:
        """Returns true if the consumer can take a message now."""
        return self.started and not self.closed and (self.unlimited or self.credits > 0)

    def add_credits(self, amount: int) -> None:
        """Adds credits in bytes; -1 lifts flow control, 0 resets the credits to none (a client with window 0)."""
        if amount == -1:
            self.unlimited = True
        elif amount == 0:
            self.credits = 0
        else:
            self.credits += amount
            if self.window == 0:
                self.window = amount

    def awaits_credits(self) -> bool:
        """Returns true if the window is used up, and the client gives credits again when it has read its buffer."""
        return self.window > 1 and self.credits <= 0 and not self.unlimited

    def take_credits(self, amount: int) -> None:
        """Takes the cost of a delivery in bytes; without flow control nothing is counted."""
        if not self.unlimited:
            self.credits -= amount

    def taken(self) -> int:
        """Returns the number of messages that were delivered and are not held any more."""
        return self.counts.delivered - len(self.unacknowledged)

    def rewind(self, sequence: int) -> None:
        """Moves the position back: messages from `sequence` on may be for this consumer now."""
        if sequence < self.position:
            self.position = sequence
        cursors = self.cursors
        for level in range(len(cursors)):
            if sequence < cursors[level]:
                cursors[level] = sequence
