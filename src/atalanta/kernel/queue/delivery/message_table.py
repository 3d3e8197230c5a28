"""The messages of one node by id, with the parts of the node that keep account of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.command_failures import CommandFailures
from atalanta.kernel.queue.delivery.scheduled_messages import ScheduledMessages
from atalanta.kernel.queue.reference import Reference

if TYPE_CHECKING:
    from atalanta.kernel.command import CurrentCommand
    from atalanta.kernel.memory.large_body import LargeBodies
    from atalanta.kernel.memory.memory import Memory
    from atalanta.kernel.ports import JournalPort, Timers, Trace
    from atalanta.kernel.queue.delivery.dispatch_list import DispatchList
    from atalanta.message.message import Message


class MessageTable:
    """Durable messages in memory by id: the base of MessageStore, as far as paging uses it.

    `stored_bytes` are those of `messages`.
    """

    def __init__(
        self,
        journal: JournalPort,
        memory: Memory,
        large: LargeBodies,
        dispatches: DispatchList,
        timers: Timers,
        trace: Trace,
        command: CurrentCommand,
    ) -> None:
        self.command = command
        self.journal = journal
        self.memory = memory
        self.large = large
        self.dispatches = dispatches
        self.trace = trace
        self.failures = CommandFailures(trace)
        self.messages: dict[int, Message] = {}
        self.stored_bytes: int = 0
        self.next_message_id: int = 1
        self.scheduled = ScheduledMessages(timers)

    def take_message_id(self) -> int:
        """Returns the next message id."""
        message_id = self.next_message_id
        self.next_message_id = message_id + 1
        return message_id

    def skip_message_ids(self, next_id: int) -> None:
        """Continues the ids at `next_id`, unless they are higher already."""
        self.next_message_id = max(self.next_message_id, next_id)

    def keep(self, message: Message, stored: list[Reference]) -> None:
        """Keeps a message that the journal holds for these durable references."""
        message.store_for(stored)
        self.messages[message.id] = message
        self.stored_bytes += stored[0].size

    def keep_also(self, reference: Reference) -> None:
        """Keeps a message for one more durable reference; the next record of the message has all of them."""
        message = reference.message
        if message.id not in self.messages:
            self.keep(message, [reference])
            return
        message.store_for([*self.references_of(message), reference])
        self._forget_plain(message)

    def references_of(self, message: Message) -> list[Reference]:
        """Returns the references for which the journal keeps the message."""
        return [each for each in message.references if isinstance(each, Reference)]

    def unstore(self, reference: Reference) -> None:
        """Ends the journal's need to keep the message for this reference."""
        message = reference.message
        if message.unstore(reference) and message.id in self.messages:
            del self.messages[message.id]
            self.stored_bytes -= reference.size
            self._forget_plain(message)

    def _forget_plain(self, message: Message) -> None:
        """Tells the journal that the message's record of the plain kind is obsolete."""
        if message.plain:
            message.plain = False
            self.journal.forget(message.lsn)

    def drop(self, reference: Reference) -> None:
        """Ends the reference's part in its message (the reference may never have entered its queue)."""
        raise NotImplementedError

    def discard(self, references: list[Reference]) -> None:
        """Removes references of one queue from the queue and from the journal, because others replace them."""
        raise NotImplementedError
