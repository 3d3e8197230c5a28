"""Removal, move, expiry and retry of messages by an operator (QueueControlImpl, QueueImpl.iterQueue).

Messages in delivery are not touched. The changes of one step to durable messages are one journal record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.journal import records
from atalanta.kernel.publish.message_mover import moved_copy
from atalanta.kernel.queue.delivery.plan import Plan
from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.registry import queues
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
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.selector.selector import Filter


class Remove(MessageJob):
    """The removal of messages, which count as killed."""

    acts_max = 1_000
    with_scheduled = True
    why = "removed by an operator"

    def act(self, now: int, chosen: list[Reference]) -> None:
        batch = records.Batch()
        finish(self, chosen, batch, self.why)
        self.queue.count_killed(len(chosen))
        self.broker.plans.append(batch, [], [], None, 0)

    def result(self) -> object:
        return self.taken > 0 if self.message_id >= 0 else self.taken


def finish(job: MessageJob, chosen: list[Reference], batch: records.Batch, why: str) -> None:
    """Removes the originals from their queue, in the same record as their replacements."""
    message_ids: list[int] = []
    for reference in chosen:
        if reference.durable:
            message_ids.append(reference.message.id)
        job.broker.store.note_lost(reference, why, batch)
        job.broker.store.drop_from_queue(reference)
    if message_ids:
        batch.add(records.ACKS, records.encode_acks(job.queue.id, message_ids))


class Copies(Remove):
    """A job that replaces each message by the result of `plan_for`; None leaves the message in its queue."""

    acts_max = 100
    keep_original = False
    counts = True

    def plan_for(self, now: int, reference: Reference) -> Plan | None:
        raise NotImplementedError

    def act(self, now: int, chosen: list[Reference]) -> None:
        batch = records.Batch()
        plans: list[Plan] = []
        references: list[Reference] = []
        gone: list[Reference] = []
        for reference in chosen:
            plan = self.plan_for(now, reference)
            if plan is None:
                self.taken -= 1
                continue
            gone.append(reference)
            if plan.routes:
                plans.append(plan)
                references.extend(self.broker.plans.add(plan, batch))
        if not self.keep_original:
            finish(self, gone, batch, self.why)
            if self.counts:
                self.queue.count_acknowledged(len(gone))
        self.broker.plans.append(batch, plans, references, None, 0)


class Move(Copies):
    """The move to another queue, under a new id and with `_AMQ_ORIG_*` (QueueImpl.moveReferences)."""

    why = "moved by an operator"

    def __init__(
        self, call: Call, selector: Filter | None, target: Queue, reject_duplicates: bool
    ) -> None:
        super().__init__(call, call.queue, selector)
        self.target = target
        self.reject_duplicates = reject_duplicates

    def plan_for(self, now: int, reference: Reference) -> Plan | None:
        target = self.target
        if target.deleted:
            raise BrokerError(ILLEGAL_STATE, f"queue {target.name} was deleted meanwhile")
        plan = Plan(moved_copy(reference, target.spec.address, now, False))
        duplicate_id = reference.message.duplicate_id if self.reject_duplicates else None
        if duplicate_id is not None:
            cache = self.broker.caches.cache_of(target.spec.address)
            if cache.lsn_of(duplicate_id) >= 0:
                return plan  # is removed: the target already has it
            plan.duplicates.append((target.spec.address, duplicate_id))
        plan.routes = [Route(target, b"")]
        return plan


class Copy(Move):
    """The copy to another queue; the original stays."""

    keep_original = True


class Retry(Copies):
    """The return to the original queue (`_AMQ_ORIG_ADDRESS`, `_AMQ_ORIG_QUEUE`), if it exists."""

    why = "retried by an operator"

    def plan_for(self, now: int, reference: Reference) -> Plan | None:
        properties = reference.message.properties
        address = properties.get("_AMQ_ORIG_ADDRESS")
        name = properties.get("_AMQ_ORIG_QUEUE")
        if not isinstance(address, str) or not isinstance(name, str):
            return None
        target = self.broker.queues.get(name)
        if target is None or target is self.queue:
            return None
        copy = moved_copy(reference, address, now, False)
        original_type = properties.get("_AMQ_ORIG_ROUTING_TYPE")
        if isinstance(original_type, int) and not isinstance(original_type, bool):
            copy.put_property("_AMQ_ROUTING_TYPE", Byte(ANYCAST if original_type == ANYCAST else 0))
        plan = Plan(copy)
        plan.routes = [Route(target, b"")]
        self.broker.addresses[target.spec.address].routed += 1
        return plan


class ChangePriority(Copies):
    """A new priority: the message gets a new id and moves to the end of its queue (Artemis adds at the tail, too)."""

    why = "priority changed by an operator"
    counts = False

    def __init__(self, call: Call, selector: Filter | None, priority: int) -> None:
        super().__init__(call, call.queue, selector)
        self.priority = priority

    def plan_for(self, now: int, reference: Reference) -> Plan | None:
        copy = reference.message.copy(0)
        copy.priority = self.priority
        origins = self.broker.origins
        if origins.attach(copy, int(reference.message.id), self.queue.name):
            origins.note()
        plan = Plan(copy)
        plan.routes = [Route(self.queue, b"")]
        return plan


class Expire(Remove):
    """The move to the expiry address; without one the message is removed."""

    acts_max = 100
    with_scheduled = False

    def act(self, now: int, chosen: list[Reference]) -> None:
        self.broker.expiry.expire(now, chosen)


class DeadLetter(Remove):
    """The move to the dead-letter address; without one the message is removed."""

    acts_max = 100

    def act(self, now: int, chosen: list[Reference]) -> None:
        for reference in chosen:
            self.broker.dead_letters.move(now, reference)


# -- operations -----------------------------------------------------------------------------------
def selector_of(given: Parameters, index: int) -> Filter | None:
    return queues.parse_filter(optional_text(given, index))


def other_queue(call: Call, name: str) -> Queue:
    """Returns the target of a move, which must not be the queue itself."""
    at = name.find("::")
    target = call.broker.queues.get(name if at < 0 else name[at + 2 :])
    if target is None:
        raise BrokerError(ILLEGAL_STATE, f"AMQ229049: No queue found for {name}")
    if target is call.given_queue:
        raise BrokerError(ILLEGAL_STATE, "Cannot move messages onto itself")
    return target


def run_for_one(call: Call, given: Parameters, job: MessageJob) -> object:
    job.message_id = number_of(given, 0)
    return call.management.jobs.run(job)


def remove_message(call: Call, given: Parameters) -> object:
    return run_for_one(call, given, Remove(call, call.queue, None))


def remove_messages(call: Call, given: Parameters) -> object:
    """(filter) or (flushLimit, filter); the flush limit is ignored."""
    return call.management.jobs.run(Remove(call, call.queue, selector_of(given, -1)))


def remove_all_messages(call: Call, given: Parameters) -> object:
    return call.management.jobs.run(Remove(call, call.queue, None))


def expire_message(call: Call, given: Parameters) -> object:
    return run_for_one(call, given, Expire(call, call.queue, None))


def expire_messages(call: Call, given: Parameters) -> object:
    return call.management.jobs.run(Expire(call, call.queue, selector_of(given, 0)))


def dead_letter_message(call: Call, given: Parameters) -> object:
    return run_for_one(call, given, DeadLetter(call, call.queue, None))


def dead_letter_messages(call: Call, given: Parameters) -> object:
    return call.management.jobs.run(DeadLetter(call, call.queue, selector_of(given, 0)))


def retry_message(call: Call, given: Parameters) -> object:
    return run_for_one(call, given, Retry(call, call.queue, None))


def retry_messages(call: Call, given: Parameters) -> object:
    selector = selector_of(given, 0) if given else None
    return call.management.jobs.run(Retry(call, call.queue, selector))


def move_message(call: Call, given: Parameters) -> object:
    rejects = len(given) > 2 and flag_of(given, 2)
    return run_for_one(call, given, Move(call, None, other_queue(call, text_of(given, 1)), rejects))


def copy_message(call: Call, given: Parameters) -> object:
    return run_for_one(call, given, Copy(call, None, other_queue(call, text_of(given, 1)), False))


def move_messages(call: Call, given: Parameters) -> object:
    """([flushLimit,] filter, otherQueue [, rejectDuplicates [, messageCount]])."""
    rest = given if not isinstance(given[0], int) else given[1:]
    target = other_queue(call, text_of(rest, 1))
    job = Move(call, selector_of(rest, 0), target, len(rest) > 2 and flag_of(rest, 2))
    if len(rest) > 3:
        job.left = max(-1, number_of(rest, 3))
    return call.management.jobs.run(job)


def checked_priority(given: Parameters) -> int:
    priority = number_of(given, 1)
    if not 0 <= priority <= 9:
        text = f"AMQ229048: invalid new Priority value: {priority}. It must be between 0 and 9 (both included)"
        raise BrokerError(ILLEGAL_STATE, text)
    return priority


def change_priority(call: Call, given: Parameters) -> object:
    return run_for_one(call, given, ChangePriority(call, None, checked_priority(given)))


def change_priorities(call: Call, given: Parameters) -> object:
    priority = checked_priority(given)
    return call.management.jobs.run(ChangePriority(call, selector_of(given, 0), priority))


MOVING_OPERATIONS: Final[Operations] = {
    "removeMessage": [("l", remove_message)],
    "removeMessages": [("S", remove_messages), ("iS", remove_messages)],
    "removeAllMessages": [("", remove_all_messages)],
    "expireMessage": [("l", expire_message)],
    "expireMessages": [("S", expire_messages)],
    "sendMessageToDeadLetterAddress": [("l", dead_letter_message)],
    "sendMessagesToDeadLetterAddress": [("S", dead_letter_messages)],
    "retryMessage": [("l", retry_message)],
    "retryMessages": [("", retry_messages), ("S", retry_messages)],
    "moveMessage": [("ls", move_message), ("lsb", move_message)],
    "copyMessage": [("ls", copy_message)],
    "moveMessages": [
        ("Ss", move_messages),
        ("Ssb", move_messages),
        ("iSsb", move_messages),
        ("iSsbi", move_messages),
    ],
    "changeMessagePriority": [("li", change_priority)],
    "changeMessagesPriority": [("Si", change_priorities)],
}
