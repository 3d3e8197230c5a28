"""Bugs planted on purpose: the simulator must find each of them (test_mutants.py). Interpreted build only.

`python -m tests.sim.mutants [COUNT [NAME...]]` says for each mutant which of the first COUNT seeds find it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.cluster.core_bridge_forwarding import Forwarding
from atalanta.cluster.core_bridge_link import CoreOutgoing
from atalanta.cluster.grouping_local import LocalGrouping
from atalanta.cluster.grouping_remote import RemoteGrouping
from atalanta.cluster.members import Members
from atalanta.cluster.outgoing import Outgoing
from atalanta.cluster.redistribution import Redistribution
from atalanta.cluster.remote_bindings import RemoteBindings
from atalanta.cluster.topology import Topology
from atalanta.kernel import (
    catalogue,
    keeper,
    logview,
    paging,
    preparing,
    records,
    returning,
    router,
    xa,
)
from atalanta.kernel.address import Address
from atalanta.kernel.broker import Broker
from atalanta.kernel.divert import Divert
from atalanta.kernel.duplicates import BRIDGE_DUPLICATE
from atalanta.kernel.endpoint import Endpoint
from atalanta.kernel.groups import Groups
from atalanta.kernel.keeper import Keeper
from atalanta.kernel.large import LargeBodies
from atalanta.kernel.leases import Lease
from atalanta.kernel.message import Message
from atalanta.kernel.paging_page import Page, encode_page
from atalanta.kernel.plan import Plan
from atalanta.kernel.ports import Disk
from atalanta.kernel.queue import Queue
from atalanta.kernel.reference import Reference
from atalanta.kernel.repeats import duplicate_cache
from atalanta.kernel.returning import LAST, Return
from atalanta.kernel.router import Route
from atalanta.kernel.xa import Branches
from atalanta.node import Node
from atalanta.sim.rehearsal import Failure, rehearse
from atalanta.sim.scenario import Scenario
from atalanta.sim.subject import Subject
from atalanta.store.pages import PageFiles
from atalanta.wire.core.packets_session import ReattachSessionResponse
from atalanta.wire.core.reattach import SESSION_RESPONSE_CHANNEL, Reattached
from atalanta.wire.core.replay import Replay

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def confirmed_before_durable(patch: Patch) -> None:
    append_batch = Broker.append_batch

    def hasty(
        self: Broker, batch: records.Batch, plans: list[Plan], references: list[Reference],
        endpoint: Endpoint | None, token: int,
    ) -> int:  # fmt: skip
        if not plans or endpoint is None:
            return append_batch(self, batch, plans, references, endpoint, token)
        endpoint.done(token)
        return append_batch(self, batch, plans, references, None, token)

    patch.setattr(Broker, "append_batch", hasty)


def bridge_forgets_before_the_answer(patch: Patch) -> None:
    take = Outgoing.take

    def forgetful(self: Outgoing, reference: Reference) -> int:
        cost = take(self, reference)
        for correlation in list(self.unanswered):
            self.on_answer(correlation)
        return cost

    patch.setattr(Outgoing, "take", forgetful)


class LateDisk(Disk):
    """Keeps what should be created."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, int, bytes]] = []

    def create(self, name: str, size: int, head: bytes) -> None:
        self.kept.append((name, size, head))


def page_named_before_its_file(patch: Patch) -> None:
    """The record says that messages lie in a file that is written after it."""
    write = PageFiles.write
    late: dict[int, LateDisk] = {}

    def hasty(self: PageFiles, number: int, blocks: list[bytes]) -> int:
        disk = self.disk
        late[number] = LateDisk()
        self.disk = late[number]
        size = write(self, number, blocks)
        self.disk = disk
        return size

    def at_last(self: PageFiles, number: int) -> None:
        for name, size, head in late.pop(number).kept:
            self.disk.create(name, size, head)

    patch.setattr(PageFiles, "write", hasty)
    patch.setattr(PageFiles, "settled", at_last)


def page_forgets_which_messages_it_replaces(patch: Patch) -> None:
    def forgetful(page: Page, message_ids: list[int]) -> bytes:
        return encode_page(page, [])

    patch.setattr(paging, "encode_page", forgetful)


def bridge_sends_no_duplicate_id(patch: Patch) -> None:
    patch.setattr(ClusterConnectionConfig, "use_duplicate_detection", False)
    init = ClusterConnectionConfig.__init__

    def without(self: ClusterConnectionConfig, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        self.use_duplicate_detection = False

    patch.setattr(ClusterConnectionConfig, "__init__", without)


def in_flight_not_given_back(patch: Patch) -> None:
    patch.setattr(Queue, "give_back", lambda self, reference: None)


def repeat_answered_early(patch: Patch) -> None:
    def early(self: Broker, lsn: int, endpoint: Endpoint | None, token: int) -> None:
        if endpoint is not None:
            endpoint.done(token)

    patch.setattr(Broker, "reply_when_durable", early)


def duplicate_id_in_a_record_of_its_own(patch: Patch) -> None:
    commit_plan = Broker.commit_plan

    def two_records(
        self: Broker, now: int, plan: Plan, endpoint: Endpoint | None, token: int
    ) -> None:
        for cache_name, duplicate_id in plan.duplicates:
            record = records.encode_duplicates(cache_name, self.next_message_id, [duplicate_id])
            lsn = self.journal.append(records.DUPLICATES, record)
            duplicate_cache(self, cache_name).add(duplicate_id, lsn)
        plan.duplicates = []
        commit_plan(self, now, plan, endpoint, token)

    patch.setattr(Broker, "commit_plan", two_records)


def transaction_in_several_records(patch: Patch) -> None:
    append_batch = Broker.append_batch

    def torn(
        self: Broker, batch: records.Batch, plans: list[Plan], references: list[Reference],
        endpoint: Endpoint | None, token: int,
    ) -> int:  # fmt: skip
        for kind, payload in zip(batch.kinds[:-1], batch.payloads[:-1], strict=True):
            self.journal.append(kind, payload)
        last = records.Batch()
        if len(batch):
            last.add(batch.kinds[-1], batch.payloads[-1])
        return append_batch(self, last, plans, references, endpoint, token)

    patch.setattr(Broker, "append_batch", torn)


def acknowledged_through_without_fencing(patch: Patch) -> None:
    def anybody(queue: Queue, group: str, epoch: int) -> Lease:
        return queue.leases[group]

    patch.setattr(logview, "check_epoch", anybody)


def epoch_not_durable(patch: Patch) -> None:
    encode = logview._encode_lease

    def older(queue: Queue, held: Lease) -> bytes:
        return encode(queue, Lease(held.group, 1, held.owner, held.ttl_ns))

    patch.setattr(logview, "_encode_lease", older)


def sequence_used_again_after_compaction(patch: Patch) -> None:
    store_queue = catalogue.store_queue

    def from_one(broker: Broker, queue: Queue) -> None:
        kept = queue.next_sequence
        queue.next_sequence = 1
        store_queue(broker, queue)
        queue.next_sequence = kept

    patch.setattr(keeper, "store_queue", from_one)


def compaction_drops_a_message(patch: Patch) -> None:
    message = Keeper._message

    def careless(self: Keeper, lsn: int, payload: bytes) -> None:
        if lsn % 3:
            message(self, lsn, payload)

    patch.setattr(Keeper, "_message", careless)


def compaction_drops_a_duplicate_id(patch: Patch) -> None:
    patch.setattr(Keeper, "_duplicate", lambda self, *fields: None)


def sequences_of_lost_messages_shown(patch: Patch) -> None:
    patch.setattr(logview, "stable_end", lambda queue: queue.next_sequence - 1 - queue.pending)


def late_messages_not_redistributed(patch: Patch) -> None:
    patch.setattr(Redistribution, "on_unattended", lambda self, now, queue: None)


def member_stays_away(patch: Patch) -> None:
    patch.setattr(Members, "back", lambda self, now, record: None)


def group_goes_where_it_was_proposed(patch: Patch) -> None:
    """The race of real Artemis: a decision for somebody else's proposal is taken for one's own."""
    on_response = RemoteGrouping.on_response

    def hasty(
        self: RemoteGrouping, now: int, node_id: str, full_id: str,
        value: str | None, alternative: str | None, distance: int,
    ) -> None:  # fmt: skip
        question = self.questions.get(full_id)
        if question is not None and question.proposed:
            value = alternative = question.proposed
        on_response(self, now, node_id, full_id, value, alternative, distance)

    patch.setattr(RemoteGrouping, "on_response", hasty)


def group_freed_by_a_crash(patch: Patch) -> None:
    """As real Artemis does it after a while."""
    peer_lost = LocalGrouping.peer_lost

    def careless(self: LocalGrouping, now: int, node_id: str) -> None:
        peer_lost(self, now, node_id)
        for cluster_name in [name for name in self.by_queue if name.endswith(node_id)]:
            self.queue_gone(now, cluster_name)

    patch.setattr(LocalGrouping, "peer_lost", careless)


def groups_forgotten_by_a_restart(patch: Patch) -> None:
    start = LocalGrouping.start

    def forgetful(self: LocalGrouping, now: int) -> None:
        start(self, now)
        self.pins.clear()
        self.by_queue.clear()

    patch.setattr(LocalGrouping, "start", forgetful)


def group_read_by_two_consumers(patch: Patch) -> None:
    patch.setattr(Groups, "takes", lambda self, consumer, reference: True)


def member_that_left_is_remembered(patch: Patch) -> None:
    patch.setattr(Topology, "remove", lambda self, node_id, event_id: False)


def message_to_every_queue_of_a_name(patch: Patch) -> None:
    """As if same-named queues of several nodes were several queues."""
    def generous(
        address: Address, message: Message, routing_type: int, only_queue: str
    ) -> list[Route]:
        routes = router.route(address, message, routing_type, only_queue)
        for group in address.groups.values():
            if group.locals and routes and group.locals[0] not in [each.queue for each in routes]:
                routes.append(Route(group.locals[0], b""))
        return routes

    patch.setattr(preparing, "route", generous)


def consumer_counts_drift(patch: Patch) -> None:
    consumer = RemoteBindings._consumer

    def deaf(self: RemoteBindings, now: int, message: Message, created: bool) -> None:
        if created or now % 2:
            consumer(self, now, message, created)

    patch.setattr(RemoteBindings, "_consumer", deaf)


def prepared_branches_not_told(patch: Patch) -> None:
    patch.setattr(Branches, "in_doubt", lambda self: [])


def prepared_branch_loses_a_message(patch: Patch) -> None:
    prepare = xa.prepare

    def careless(
        broker: Broker, now: int, branch: xa.Branch, endpoint: Endpoint, token: int
    ) -> None:
        if len(branch.transaction.messages) > 1:
            branch.transaction.messages.pop()
        prepare(broker, now, branch, endpoint, token)

    patch.setattr(xa, "prepare", careless)


def core_bridge_trusts_the_link(patch: Patch) -> None:
    """What was sent over a lost link is taken to have arrived."""
    detach = CoreOutgoing.detach

    def trusting(self: CoreOutgoing, now: int) -> None:
        for correlation in list(self.unanswered):
            self.on_answer(correlation)
        detach(self, now)

    patch.setattr(CoreOutgoing, "detach", trusting)


def core_bridge_sends_no_duplicate_ids(patch: Patch) -> None:
    """Neither its own nor the sender's."""
    forwarded = Forwarding.forwarded

    def bare(self: Forwarding, reference: Reference) -> Message:
        copy = forwarded(self, reference)
        copy.properties.remove(BRIDGE_DUPLICATE)
        copy.properties.remove("_AMQ_DUPL_ID")
        copy.properties_changed()
        return copy

    patch.setattr(Forwarding, "forwarded", bare)


def core_bridge_overtakes(patch: Patch) -> None:
    def hasty(self: CoreOutgoing, reference: Reference) -> int:
        self.waiting.appendleft(reference)
        self.pump()
        return reference.message.size

    patch.setattr(CoreOutgoing, "take", hasty)


def files_of_large_messages_stay(patch: Patch) -> None:
    patch.setattr(LargeBodies, "_delete", lambda self, body: None)


def pieces_of_large_messages_change(patch: Patch) -> None:
    on_read = LargeBodies.on_read

    def careless(self: LargeBodies, now: int, token: int, data: bytes) -> None:
        on_read(self, now, token, b"?" + data[1:])

    patch.setattr(LargeBodies, "on_read", careless)


def branch_gives_back_what_it_took(patch: Patch) -> None:
    """Committed, but what it has acknowledged is there again for somebody else."""
    commit_prepared = xa.commit_prepared

    def generous(
        broker: Broker, now: int, branch: xa.Branch, outcome: int, endpoint: Endpoint | None, token: int
    ) -> None:
        acknowledged = branch.transaction.acknowledged
        branch.transaction.acknowledged = []
        commit_prepared(broker, now, branch, outcome, endpoint, token)
        for reference in acknowledged:
            reference.queue.give_back(reference)

    patch.setattr(xa, "commit_prepared", generous)


def peers_are_blocked_for_ever(patch: Patch) -> None:
    """Nobody hears that a slow reader has read."""
    patch.setattr(Node, "on_unblocked", lambda self, now, conn: None)


def diverts_take_everything(patch: Patch) -> None:
    patch.setattr(Divert, "takes", lambda self, message: True)


def diverts_take_nothing(patch: Patch) -> None:
    patch.setattr(Divert, "takes", lambda self, message: False)


def exclusive_diverts_leave_a_copy(patch: Patch) -> None:
    init = Divert.__init__

    def shared(self: Divert, *args: Any, **named: Any) -> None:
        init(self, *args, **named)
        self.exclusive = False

    patch.setattr(Divert, "__init__", shared)


def reattached_client_misses_frames(patch: Patch) -> None:
    patch.setattr(Replay, "unconfirmed", lambda self: b"")


def reattached_client_repeats_itself(patch: Patch) -> None:
    """It is told that nothing of what it sent has come."""
    patch.setattr(Reattached, "done", lambda self, token: _answer_too_little(self))


def _answer_too_little(reattached: Reattached) -> None:
    reattached.connection.send(ReattachSessionResponse(-1, True), SESSION_RESPONSE_CHANNEL)


def parked_ones_come_back_behind_everything(patch: Patch) -> None:
    """Under their own ids."""
    patch.setattr(returning, "spot", lambda broker, queue, message_id, newest: LAST)


def parked_ones_come_back_as_new_arrivals(patch: Patch) -> None:
    patch.setattr(Return, "keeps_its_place", lambda self: False)


def seeds_with(subject: type[Subject], first: int, count: int) -> Iterator[int]:
    """Seeds from `first` on whose worlds have it."""
    seed = first
    while count > 0:
        if any(isinstance(each, subject) for each in Scenario(seed, 3, 12.0).subjects):
            yield seed
            count -= 1
        seed += 1


MUTANTS: list[Mutant] = [
    confirmed_before_durable,
    bridge_forgets_before_the_answer,
    bridge_sends_no_duplicate_id,
    in_flight_not_given_back,
    repeat_answered_early,
    duplicate_id_in_a_record_of_its_own,
    transaction_in_several_records,
    acknowledged_through_without_fencing,
    epoch_not_durable,
    sequence_used_again_after_compaction,
    compaction_drops_a_message,
    compaction_drops_a_duplicate_id,
    sequences_of_lost_messages_shown,
    late_messages_not_redistributed,
    member_stays_away,
    group_goes_where_it_was_proposed,
    group_freed_by_a_crash,
    groups_forgotten_by_a_restart,
    group_read_by_two_consumers,
    member_that_left_is_remembered,
    message_to_every_queue_of_a_name,
    consumer_counts_drift,
    prepared_branches_not_told,
    prepared_branch_loses_a_message,
    core_bridge_trusts_the_link,
    core_bridge_sends_no_duplicate_ids,
    core_bridge_overtakes,
    files_of_large_messages_stay,
    pieces_of_large_messages_change,
    branch_gives_back_what_it_took,
    peers_are_blocked_for_ever,
    diverts_take_everything,
    diverts_take_nothing,
    exclusive_diverts_leave_a_copy,
    reattached_client_misses_frames,
    reattached_client_repeats_itself,
    parked_ones_come_back_behind_everything,
    parked_ones_come_back_as_new_arrivals,
]


def survey(count: int, names: list[str]) -> None:
    for mutant in MUTANTS:
        if names and mutant.__name__ not in names:
            continue
        found = []
        first = ""
        for seed in range(1, count + 1):
            with pytest.MonkeyPatch.context() as patch:
                mutant(patch)
                outcome = rehearse(seed, 3, 12.0)
            if isinstance(outcome, Failure):
                found.append(seed)
                first = first or outcome.report.split("\n")[0][:150]
        print(f"{mutant.__name__}: {len(found)} of {count}: {found[:12]} {first}", flush=True)


if __name__ == "__main__":
    survey(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:])
