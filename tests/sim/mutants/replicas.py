"""Replicated groups."""

from __future__ import annotations

from atalanta.ha.lease import Lease
from atalanta.ha.register import Read, Register, RegisterView, take_over
from atalanta.ha.replication import Action, Active, Answer, Confirm, Cut, Follower, Offer, Send
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


def ended_epoch_is_followed(patch: Patch) -> None:
    on_offer = Follower.on_offer

    def follow(follower: Follower, now: int, sender: str, offer: Offer) -> list[Action]:
        follower.seen = 0
        return on_offer(follower, now, sender, offer)

    patch.setattr(Follower, "on_offer", follow)


def lease_never_ends(patch: Patch) -> None:
    def holds(lease: Lease, now: int, members: list[str]) -> bool:
        return all(member in lease.sent_ns for member in members)

    patch.setattr(Lease, "holds", holds)


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
    def forget(view: RegisterView) -> Read:
        view.pending = None
        return Read()

    def no_repeat(view: RegisterView) -> None:
        view.pending = None

    patch.setattr(RegisterView, "on_uncertain", forget)
    patch.setattr(RegisterView, "repeated", no_repeat)


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
    def take(follower: Follower, now: int) -> list[Action]:
        known = follower.view.known
        if follower.asked is not None or known is None or not follower.promise.is_over(now):
            return []
        if follower.durable < follower.last:
            return []
        value = Register(known.epoch + 1, follower.name, (follower.name,), 0, follower.view.token())
        return follower._ask(value)

    patch.setattr(Follower, "take_over", take)


def promise_is_broken(patch: Patch) -> None:
    def take(follower: Follower, now: int) -> list[Action]:
        known = follower.view.known
        if follower.asked is not None or known is None or follower.name not in known.in_sync:
            return []
        if follower.durable < follower.last:
            return []
        return follower._ask(take_over(known, follower.name, follower.view.token()))

    patch.setattr(Follower, "take_over", take)
