"""Replicated groups."""

from __future__ import annotations

from atalanta.cluster.replication.active.file_changes import OutgoingFiles
from atalanta.cluster.replication.active.follower_stream import FollowerStream
from atalanta.cluster.replication.active.replicator import Replicator
from atalanta.cluster.replication.passive.backup import Backup
from atalanta.cluster.replication.passive.follower_files import FollowerFiles
from atalanta.ha.lease import ActiveLease
from atalanta.ha.register import Register, RegisterView, take_over
from atalanta.ha.replication.active import Active
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import Action, Answer, Confirm, Cut, Offer, Send
from atalanta.node.node import Node
from tests.sim.mutants.patching import Patch

GROUPED = True  # the worlds are one node that is a group


def follower_answers_before_its_sync(patch: Patch) -> None:
    def answer(follower: Follower, sent_ns: int) -> Send:
        return Send(follower.active, Answer(follower.epoch, follower.last, follower.last, sent_ns))

    patch.setattr(Follower, "_answer", answer)


def confirmed_without_followers(patch: Patch) -> None:
    def advance(active: Active) -> list[Action]:
        active.commit = max(active.commit, active.durable)
        if active.stopped or active.commit <= active.confirmed:
            return []
        active.confirmed = active.commit
        return [Confirm(active.commit)]

    patch.setattr(Active, "_advance", advance)


def lease_never_ends(patch: Patch) -> None:
    def holds(lease: ActiveLease, now: int, members: list[str]) -> bool:
        return all(member in lease.sent_ns for member in members)

    patch.setattr(ActiveLease, "holds", holds)


def tail_is_not_cut(patch: Patch) -> None:
    on_offer = Follower.on_offer

    def keep(follower: Follower, now: int, sender: str, offer: Offer) -> list[Action]:
        last, durable = follower.last, follower.durable
        actions = on_offer(follower, now, sender, offer)
        if any(isinstance(action, Cut) for action in actions):
            follower.last, follower.durable = last, durable
            return [follower._answer(-1)]
        return actions

    patch.setattr(Follower, "on_offer", keep)


def unknown_write_counts_as_failed(patch: Patch) -> None:
    """The answer to a write is lost, and the active node goes on as if it had never been sent."""
    uncertain = Replicator.on_register_uncertain

    def forget(replicator: Replicator, now: int, why: str) -> None:
        replicator.active.view.pending = None
        uncertain(replicator, now, why)

    patch.setattr(Replicator, "on_register_uncertain", forget)


def dropped_before_the_register_says_so(patch: Patch) -> None:
    def members(view: RegisterView) -> list[str]:
        value = view.pending or view.known
        return sorted(value.in_sync) if value is not None else []

    patch.setattr(RegisterView, "possible_members", members)


def joins_without_being_required(patch: Patch) -> None:
    def required(active: Active) -> list[str]:
        known = active.view.known
        return [] if known is None else [name for name in known.in_sync if name != active.name]

    patch.setattr(Active, "required", required)


def taken_over_out_of_sync(patch: Patch) -> None:
    def may_take_over(backup: Backup, now: int, follower: Follower) -> bool:
        return follower.durable == follower.last and follower.promise.is_over(now)

    def take(follower: Follower, now: int) -> list[Action]:
        known = follower.view.known
        if known is None or follower.asked is not None:
            return []
        value = Register(known.epoch + 1, follower.name, (follower.name,), 0, follower.view.token())
        return follower._ask(value)

    patch.setattr(Backup, "_may_take_over", may_take_over)
    patch.setattr(Follower, "take_over", take)


def promise_is_broken(patch: Patch) -> None:
    """A member in sync takes over as soon as it has no connection to the active node."""

    def may_take_over(backup: Backup, now: int, follower: Follower) -> bool:
        known = follower.view.known
        if known is None or follower.name not in known.in_sync or follower.durable < follower.last:
            return False
        return backup.search.link is None

    def take(follower: Follower, now: int) -> list[Action]:
        known = follower.view.known
        if known is None or follower.asked is not None:
            return []
        return follower._ask(take_over(known, follower.name, follower.view.token()))

    patch.setattr(Backup, "_may_take_over", may_take_over)
    patch.setattr(Follower, "take_over", take)


def page_files_follow_their_records(patch: Patch) -> None:
    send_next = FollowerStream._send_next

    def journal_first(stream: FollowerStream, files: OutgoingFiles) -> int:
        return stream._send_journal() or send_next(stream, files)

    patch.setattr(FollowerStream, "_send_next", journal_first)


def records_do_not_wait_for_bodies(patch: Patch) -> None:
    """A follower stores the record of a large body that is not synced."""
    patch.setattr(FollowerFiles, "is_complete", lambda files, file: True)


def output_is_not_held(patch: Patch) -> None:
    patch.setattr(Node, "may_send", lambda node, now: node.failed is None)
