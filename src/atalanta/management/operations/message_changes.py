"""Removal, move, expiry and retry of messages by an operator (QueueControlImpl, QueueImpl.iterQueue).

Messages in delivery are not touched. The changes of one step to durable messages are one journal record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.publish.message_mover import moved_copy
from atalanta.kernel.queue.delivery.plan import RoutingPlan
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.registry import queues
from atalanta.kernel.registry.duplicate_spaces import application_id
from atalanta.kernel.routing.router import Route
from atalanta.management.request.call import (
    Call,
    Operations,
    Parameters,
    flag_of,
    number_of,
    optional_text,
    text_of,
)
from atalanta.management.request.jobs import MessageJob
from atalanta.message.properties import Byte

if TYPE_CHECKING:
    from atalanta.kernel.publish.dead_letters import DeadLetters
    from atalanta.kernel.publish.expiry import Expiry
    from atalanta.kernel.publish.plan_writer import PlanWriter
    from atalanta.kernel.queue.delivery.bridge_origin import Origins
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.management.request.jobs import Jobs
    from atalanta.message.selector.selector import Filter


class Removal(MessageJob):
    """The removal of messages, which count as killed."""

    acts_max = 1_000
    with_scheduled = True
    why = "removed by an operator"

    def __init__(
        self, plans: PlanWriter, call: Call, queue: Queue, selector: Filter | None
    ) -> None:
        super().__init__(plans.store, call, queue, selector)
        self.plans = plans

    def act(self, now: int, chosen: list[Reference]) -> None:
        batch = records.Batch()
        self.remove(chosen, batch)
        self.queue.count_killed(len(chosen))
        self.plans.append(batch, [], [], None, 0)

    def remove(self, references: list[Reference], batch: records.Batch) -> None:
        """Removes messages from their queue, in the same record as their replacements."""
        message_ids: list[int] = []
        for reference in references:
            if reference.durable:
                message_ids.append(reference.message.id)
            self.store.note_lost(reference, self.why, batch)
            self.store.drop_from_queue_or_page(reference)
        if message_ids:
            batch.add(records.ACKS, records.encode_acks(self.queue.id, message_ids))

    def result(self) -> object:
        return self.taken > 0 if self.message_id >= 0 else self.taken


class Replacement(Removal):
    """A job that replaces each message by the result of `plan_for`; None leaves the message in its queue."""

    acts_max = 100
    keep_original = False
    counts = True

    def plan_for(self, now: int, reference: Reference) -> RoutingPlan | None:
        raise NotImplementedError

    def act(self, now: int, chosen: list[Reference]) -> None:
        batch = records.Batch()
        plans: list[RoutingPlan] = []
        references: list[Reference] = []
        gone: list[Reference] = []
        for reference in chosen:
            plan = self.plan_for(now, reference)
            if plan is None:  # it stays, and does not count
                self.taken -= 1
                if self.left >= 0:
                    self.left += 1
                continue
            gone.append(reference)
            if plan.routes:
                plans.append(plan)
                references.extend(self.plans.add(plan, batch))
        if not self.keep_original:
            self.remove(gone, batch)
            if self.counts:
                self.queue.count_acknowledged(len(gone))
        self.plans.append(batch, plans, references, None, 0)


class Move(Replacement):
    """The move to another queue, under a new id and with `_AMQ_ORIG_*` (QueueImpl.moveReferences)."""

    why = "moved by an operator"

    def __init__(
        self,
        plans: PlanWriter,
        call: Call,
        selector: Filter | None,
        target: Queue,
        reject_duplicates: bool,
    ) -> None:
        super().__init__(plans, call, call.queue, selector)
        self.target = target
        self.reject_duplicates = reject_duplicates

    def plan_for(self, now: int, reference: Reference) -> RoutingPlan | None:
        target = self.target
        if target.deleted:
            raise BrokerError(ILLEGAL_STATE, f"queue {target.name} was deleted meanwhile")
        plan = RoutingPlan(moved_copy(reference, target.spec.address, now, False))
        duplicate_id = reference.message.duplicate_id if self.reject_duplicates else None
        if duplicate_id is not None:
            duplicate_id = application_id(target.spec.address, duplicate_id)
            cache = self.plans.duplicates.cache_of(target.spec.address)
            if cache.first_lsn_of(duplicate_id) >= 0:
                return plan  # is removed: the target already has it
            plan.duplicates.append((target.spec.address, duplicate_id))
        plan.routes = [Route(target, b"")]
        return plan


class Copy(Move):
    """The copy to another queue; the original stays."""

    keep_original = True


class Retry(Replacement):
    """The return to the original queue (`_AMQ_ORIG_ADDRESS`, `_AMQ_ORIG_QUEUE`), if it exists."""

    why = "retried by an operator"

    def __init__(
        self,
        plans: PlanWriter,
        call: Call,
        selector: Filter | None,
        queues: dict[str, Queue],
        addresses: dict[str, Address],
    ) -> None:
        super().__init__(plans, call, call.queue, selector)
        self.queues = queues
        self.addresses = addresses

    def plan_for(self, now: int, reference: Reference) -> RoutingPlan | None:
        properties = reference.message.properties
        address = properties.get("_AMQ_ORIG_ADDRESS")
        name = properties.get("_AMQ_ORIG_QUEUE")
        if not isinstance(address, str) or not isinstance(name, str):
            return None
        target = self.queues.get(name)
        if target is None or target is self.queue:
            return None
        copy = moved_copy(reference, address, now, False)
        original_type = properties.get("_AMQ_ORIG_ROUTING_TYPE")
        if isinstance(original_type, int) and not isinstance(original_type, bool):
            copy.put_property("_AMQ_ROUTING_TYPE", Byte(ANYCAST if original_type == ANYCAST else 0))
        plan = RoutingPlan(copy)
        plan.routes = [Route(target, b"")]
        self.addresses[target.spec.address].routed += 1
        return plan


class PriorityChange(Replacement):
    """A new priority: the message gets a new id and moves to the end of its queue (Artemis adds at the tail, too)."""

    why = "priority changed by an operator"
    counts = False

    def __init__(
        self,
        plans: PlanWriter,
        call: Call,
        selector: Filter | None,
        priority: int,
        origins: Origins,
    ) -> None:
        super().__init__(plans, call, call.queue, selector)
        self.priority = priority
        self.origins = origins

    def plan_for(self, now: int, reference: Reference) -> RoutingPlan | None:
        copy = reference.message.copy(0)
        copy.priority = self.priority
        if self.origins.attach(copy, int(reference.message.id), self.queue.name):
            self.origins.note()
        plan = RoutingPlan(copy)
        plan.routes = [Route(self.queue, b"")]
        return plan


class MessageExpiry(Removal):
    """The move to the expiry address; without one the message is removed."""

    acts_max = 100
    with_scheduled = False

    def __init__(
        self, plans: PlanWriter, call: Call, selector: Filter | None, expiry: Expiry
    ) -> None:
        super().__init__(plans, call, call.queue, selector)
        self.expiry = expiry

    def act(self, now: int, chosen: list[Reference]) -> None:
        self.expiry.expire(now, chosen)


class DeadLetterMove(Removal):
    """The move to the dead-letter address; without one the message is removed."""

    acts_max = 100

    def __init__(
        self, plans: PlanWriter, call: Call, selector: Filter | None, dead_letters: DeadLetters
    ) -> None:
        super().__init__(plans, call, call.queue, selector)
        self.dead_letters = dead_letters

    def act(self, now: int, chosen: list[Reference]) -> None:
        for reference in chosen:
            self.dead_letters.move(now, reference)


# -- operations -----------------------------------------------------------------------------------
def selector_of(given: Parameters, index: int) -> Filter | None:
    return queues.parse_filter(optional_text(given, index))


def checked_priority(given: Parameters) -> int:
    priority = number_of(given, 1)
    if not 0 <= priority <= 9:
        text = f"AMQ229048: invalid new Priority value: {priority}. It must be between 0 and 9 (both included)"
        raise BrokerError(ILLEGAL_STATE, text)
    return priority


class MessageChangeOperations:
    """The operations of the resource `queue.NAME` that remove, move or change messages."""

    def __init__(
        self,
        plans: PlanWriter,
        queues: dict[str, Queue],
        addresses: dict[str, Address],
        origins: Origins,
        jobs: Jobs,
        expiry: Expiry,
        dead_letters: DeadLetters,
    ) -> None:
        self.plans = plans
        self.queues = queues
        self.addresses = addresses
        self.origins = origins
        self.jobs = jobs
        self.expiry = expiry
        self.dead_letters = dead_letters
        self.operations: Operations = {
            "removeMessage": [("l", self.remove_message)],
            "removeMessages": [
                ("S", self.remove_messages), ("iS", self.remove_messages), ("iSi", self.remove_messages),
            ],
            "removeAllMessages": [("", self.remove_all_messages)],
            "expireMessage": [("l", self.expire_message)],
            "expireMessages": [("S", self.expire_messages), ("Si", self.expire_messages)],
            "sendMessageToDeadLetterAddress": [("l", self.dead_letter_message)],
            "sendMessagesToDeadLetterAddress": [
                ("S", self.dead_letter_messages), ("Si", self.dead_letter_messages),
            ],
            "retryMessage": [("l", self.retry_message)],
            "retryMessages": [
                ("", self.retry_messages), ("S", self.retry_messages), ("Si", self.retry_messages),
            ],
            "moveMessage": [("ls", self.move_message), ("lsb", self.move_message)],
            "copyMessage": [("ls", self.copy_message)],
            "moveMessages": [
                ("Ss", self.move_messages),
                ("Ssb", self.move_messages),
                ("iSsb", self.move_messages),
                ("iSsbi", self.move_messages),
            ],
            "changeMessagePriority": [("li", self.change_priority)],
            "changeMessagesPriority": [("Si", self.change_priorities)],
        }

    def other_queue(self, call: Call, name: str) -> Queue:
        """Returns the target of a move, which must not be the queue itself."""
        at = name.find("::")
        target = self.queues.get(name if at < 0 else name[at + 2 :])
        if target is None:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229049: No queue found for {name}")
        if target is call.given_queue:
            raise BrokerError(ILLEGAL_STATE, "Cannot move messages onto itself")
        return target

    def run_for_one(self, call: Call, given: Parameters, job: MessageJob) -> object:
        job.message_id = number_of(given, 0)
        return self.jobs.run(job)

    def run_for_some(self, given: Parameters, index: int, job: MessageJob) -> object:
        """Runs a job for as many messages as the parameter says; -1, or none given: all."""
        if len(given) > index:
            job.left = max(-1, number_of(given, index))
        return self.jobs.run(job)

    def remove_message(self, call: Call, given: Parameters) -> object:
        return self.run_for_one(call, given, Removal(self.plans, call, call.queue, None))

    def remove_messages(self, call: Call, given: Parameters) -> object:
        """(filter) or (flushLimit, filter [, messageCount]); the flush limit is ignored."""
        rest = given if not isinstance(given[0], int) else given[1:]
        return self.run_for_some(rest, 1, Removal(self.plans, call, call.queue, selector_of(rest, 0)))

    def remove_all_messages(self, call: Call, given: Parameters) -> object:
        return self.jobs.run(Removal(self.plans, call, call.queue, None))

    def expire_message(self, call: Call, given: Parameters) -> object:
        return self.run_for_one(call, given, MessageExpiry(self.plans, call, None, self.expiry))

    def expire_messages(self, call: Call, given: Parameters) -> object:
        """(filter [, messageCount])."""
        return self.run_for_some(given, 1, MessageExpiry(self.plans, call, selector_of(given, 0), self.expiry))

    def dead_letter_message(self, call: Call, given: Parameters) -> object:
        return self.run_for_one(call, given, DeadLetterMove(self.plans, call, None, self.dead_letters))

    def dead_letter_messages(self, call: Call, given: Parameters) -> object:
        """(filter [, messageCount])."""
        job = DeadLetterMove(self.plans, call, selector_of(given, 0), self.dead_letters)
        return self.run_for_some(given, 1, job)

    def retry(self, call: Call, selector: Filter | None) -> Retry:
        return Retry(self.plans, call, selector, self.queues, self.addresses)

    def retry_message(self, call: Call, given: Parameters) -> object:
        return self.run_for_one(call, given, self.retry(call, None))

    def retry_messages(self, call: Call, given: Parameters) -> object:
        """([filter [, messageCount]])."""
        selector = selector_of(given, 0) if given else None
        return self.run_for_some(given, 1, self.retry(call, selector))

    def move_message(self, call: Call, given: Parameters) -> object:
        rejects = len(given) > 2 and flag_of(given, 2)
        target = self.other_queue(call, text_of(given, 1))
        return self.run_for_one(call, given, Move(self.plans, call, None, target, rejects))

    def copy_message(self, call: Call, given: Parameters) -> object:
        target = self.other_queue(call, text_of(given, 1))
        return self.run_for_one(call, given, Copy(self.plans, call, None, target, False))

    def move_messages(self, call: Call, given: Parameters) -> object:
        """([flushLimit,] filter, otherQueue [, rejectDuplicates [, messageCount]])."""
        rest = given if not isinstance(given[0], int) else given[1:]
        target = self.other_queue(call, text_of(rest, 1))
        rejects = len(rest) > 2 and flag_of(rest, 2)
        return self.run_for_some(rest, 3, Move(self.plans, call, selector_of(rest, 0), target, rejects))

    def priority_change(
        self, call: Call, selector: Filter | None, priority: int
    ) -> PriorityChange:
        return PriorityChange(self.plans, call, selector, priority, self.origins)

    def change_priority(self, call: Call, given: Parameters) -> object:
        job = self.priority_change(call, None, checked_priority(given))
        return self.run_for_one(call, given, job)

    def change_priorities(self, call: Call, given: Parameters) -> object:
        priority = checked_priority(given)
        return self.jobs.run(self.priority_change(call, selector_of(given, 0), priority))
