"""Faults of a replicated group, planted by exchanging one method, and the scope in which the search must find each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from atalanta.ha.lease import ActiveLease, LeaseTerms
from atalanta.ha.register import Read, Register, RegisterView, hand_over
from atalanta.ha.replication.active import Active
from atalanta.ha.replication.epoch_table import EpochTable, cut_table
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import (
    Action,
    Answer,
    Block,
    Cut,
    HandOver,
    Heartbeat,
    Offer,
    Send,
)
from tests.ha.small_group import Parts, Scope


@dataclass(frozen=True)
class Fault:
    """A broken group; `finds` is a part of the broken promise."""

    parts: Parts
    scope: Scope
    finds: str


# --- confirmations -------------------------------------------------------------------------------------


class ConfirmsBeforeSync(Active):
    def on_append(self, now: int, lsn: int) -> None:
        super().on_append(now, lsn)
        self.durable = lsn


class AnswersBeforeSync(Follower):
    def on_block(self, now: int, sender: str, block: Block) -> list[Action]:
        actions = super().on_block(now, sender, block)
        self.durable = self.last
        return [*actions, self._answer(-1)]


class RequiresNobody(Active):
    def required(self) -> list[str]:
        return []


class IgnoresMinimum(Active):
    def _advance(self) -> list[Action]:
        self.min_in_sync = 1
        return super()._advance()


# --- the in-sync set -----------------------------------------------------------------------------------


class AddsBeforeCaughtUp(Active):
    def _admit(self, now: int) -> list[Action]:
        kept, self.commit = self.commit, 0
        actions = super()._admit(now)
        self.commit = kept
        return actions


class RequiresWhenAdded(Active):
    """A member is required once the register has it, not before."""

    def required(self) -> list[str]:
        known = self.view.known
        assert known is not None
        return [name for name in known.in_sync if name != self.name]


class RemovesBeforeAnswer(Active):
    """A member is required until the write that removes it is sent."""

    def required(self) -> list[str]:
        value = self.view.pending or self.view.known
        assert value is not None
        return [name for name in value.in_sync if name != self.name]


class UnknownIsFailed(RegisterView):
    def on_uncertain(self) -> Read:
        self.pending = None
        return Read()


class UnknownIsDone(RegisterView):
    def on_uncertain(self) -> Read:
        if self.pending is not None:
            self.known, self.pending = self.pending, None
        return Read()


# --- takeovers -----------------------------------------------------------------------------------------


class TakesOverOutOfSync(Follower):
    def take_over(self, now: int) -> list[Action]:
        known = self.view.known
        if self.asked is None and known is not None and self.name not in known.in_sync:
            value = Register(known.epoch + 1, self.name, (self.name,), 0, self.view.token())
            return self._ask(value)
        return super().take_over(now)


class KeepsEpoch(Follower):
    """A process that starts again goes on in the epoch of its earlier life."""

    def take_over(self, now: int) -> list[Action]:
        known = self.view.known
        if known is not None and known.active == self.name and self.asked is None:
            return self._ask(Register(known.epoch, self.name, known.in_sync, 0, self.view.token()))
        return super().take_over(now)


class NoFencing(Follower):
    """A member follows whoever offers, also one of an epoch that has ended."""

    def on_offer(self, now: int, sender: str, offer: Offer) -> list[Action]:
        self.seen = 0
        return super().on_offer(now, sender, offer)


class DoesNotCut(Follower):
    def on_offer(self, now: int, sender: str, offer: Offer) -> list[Action]:
        last, durable = self.last, self.durable
        actions = super().on_offer(now, sender, offer)
        if any(isinstance(action, Cut) for action in actions):
            self.last, self.durable = last, durable
            return [self._answer(-1)]
        return actions


class CutsByLength(Follower):
    """A returning member cuts what is longer than the journal of the active node, whatever its epochs are."""

    def on_offer(self, now: int, sender: str, offer: Offer) -> list[Action]:
        self.table = cut_table(offer.table, self.last)
        return super().on_offer(now, sender, offer)


class HandsOverTooEarly(Active):
    """The active node hands over before everybody has everything."""

    def hand_over(self, now: int, successor: str) -> list[Action]:
        actions = super().hand_over(now, successor)
        known = self.view.known
        if self.stopped or not self.successor or known is None:
            return actions
        message = HandOver(self.epoch, self.answered.get(successor, 0), self.view.version, known)
        return [*actions, Send(successor, message), self._stop("handed over")]


class HandsOverToTheFirst(Follower):
    """The successor keeps the in-sync set also when it was not asked to take over."""

    def take_over(self, now: int) -> list[Action]:
        known = self.view.known
        if self.asked is not None or known is None or self.durable < self.last:
            return []
        if self.name in known.in_sync:
            return self._ask(hand_over(known, self.name, self.view.token()))
        return []


# --- leases ----------------------------------------------------------------------------------------------


class CountsFromArrival(Active):
    def on_answer(self, now: int, member: str, answer: Answer) -> list[Action]:
        if answer.sent_ns >= 0:
            answer = Answer(answer.epoch, answer.last, answer.durable, now)
        return super().on_answer(now, member, answer)


class NeverExpires(ActiveLease):
    def holds(self, now: int, members: list[str]) -> bool:
        return all(member in self.sent_ns for member in members)


class AsksKnownMembersOnly(Active):
    """The lease of a member that is about to be added is not asked for."""

    def serves(self, now: int) -> bool:
        known = self.view.known
        assert known is not None
        return not self.stopped and self.lease.holds(now, [n for n in known.in_sync if n != self.name])


class ForgetsPromise(Follower):
    """A process that has started does not wait for the lease that an earlier life gave."""

    def on_register(self, now: int, version: int, register: Register) -> list[Action]:
        self.promise.release()
        return super().on_register(now, version, register)

    def take_over(self, now: int) -> list[Action]:
        if self.epoch == 0:
            self.promise.release()
        return super().take_over(now)


class BreaksPromise(Follower):
    def take_over(self, now: int) -> list[Action]:
        self.promise.release()
        return super().take_over(now)


class PromisesOwnLength(Follower):
    """A member waits for the lease that it would have itself, whatever the active node counts."""

    def on_offer(self, now: int, sender: str, offer: Offer) -> list[Action]:
        return super().on_offer(now, sender, replace(offer, lease_ns=0))


class ForgetsLength(Follower):
    """A process that has started waits for the lease that it would have itself."""

    def __init__(
        self, name: str, view: RegisterView, terms: LeaseTerms, now: int, table: EpochTable, last: int,
        granted_ns: int = 0,
    ) -> None:
        super().__init__(name, view, terms, now, table, last)


class AnswersWhileAsking(Follower):
    """A member that has asked to take over still answers heartbeats."""

    def on_heartbeat(self, now: int, sender: str, heartbeat: Heartbeat) -> list[Action]:
        if self.asked is None:
            return super().on_heartbeat(now, sender, heartbeat)
        return [Send(sender, Answer(heartbeat.epoch, self.last, self.durable, heartbeat.sent_ns))]


def no_drift() -> LeaseTerms:
    """Returns terms whose granter waits as long as its holder serves, by clocks of different rates."""
    terms = LeaseTerms(8, 250_000)
    terms.wait_ns = terms.length_ns
    return terms


LACKS = "lacks what was confirmed"
TIMED = Scope(messages=0, versions=1, ticks=5, joins=False, drops=False, heartbeats=1)

FAULTS = {
    "confirms before its own sync": Fault(Parts(active=ConfirmsBeforeSync), Scope(alone=True), "on 0 disks"),
    "answers before its sync": Fault(Parts(follower=AnswersBeforeSync), Scope(), LACKS),
    "confirms before the answers": Fault(Parts(active=RequiresNobody), Scope(), LACKS),
    "ignores min-in-sync": Fault(
        Parts(active=IgnoresMinimum), Scope(min_in_sync=2), "which is on 1 disks"
    ),
    "adds before caught up": Fault(Parts(active=AddsBeforeCaughtUp), Scope(behind=True), LACKS),
    "adds without requiring first": Fault(
        Parts(active=RequiresWhenAdded), Scope(alone=True, lost_answers=1, versions=1), LACKS
    ),
    "removes before the answer": Fault(Parts(active=RemovesBeforeAnswer), Scope(), LACKS),
    "unknown taken for failed": Fault(
        Parts(view=UnknownIsFailed), Scope(alone=True, lost_answers=1, versions=1), LACKS
    ),
    "unknown taken for done": Fault(
        Parts(view=UnknownIsDone), Scope(lost_answers=1, versions=1), LACKS
    ),
    "takes over out of sync": Fault(Parts(follower=TakesOverOutOfSync), Scope(behind=True), LACKS),
    "epoch used twice": Fault(Parts(follower=KeepsEpoch), Scope(crashes=1), "has begun twice"),
    "no fencing": Fault(
        Parts(follower=NoFencing), Scope(crashes=1, versions=1, joins=False, drops=False), LACKS
    ),
    "tail not cut": Fault(Parts(follower=DoesNotCut), Scope(messages=2, versions=2, drops=False), LACKS),
    "tail cut by length": Fault(
        Parts(follower=CutsByLength), Scope(messages=2, versions=2, drops=False), LACKS
    ),
    "deletes above the commit point": Fault(
        Parts(purge_everything=True), Scope(deletions=1, versions=1, drops=False), "without its file"
    ),
    "hands over before all have all": Fault(
        Parts(active=HandsOverTooEarly), Scope(members=3, handovers=1, versions=1, drops=False), LACKS
    ),
    "takes over and keeps the others": Fault(
        Parts(follower=HandsOverToTheFirst), Scope(members=3, versions=1, drops=False), LACKS
    ),
    "lease counted from the arrival": Fault(Parts(active=CountsFromArrival), TIMED, "serve"),
    "stale lease": Fault(Parts(lease=NeverExpires), TIMED, "serve"),
    "lease without the member to be added": Fault(
        Parts(active=AsksKnownMembersOnly),
        Scope(messages=0, alone=True, versions=2, ticks=5, drops=False, late_answers=1, heartbeats=1), "serve",
    ),
    "promise forgotten at a start": Fault(
        Parts(follower=ForgetsPromise),
        Scope(messages=0, crashes=1, versions=1, ticks=4, joins=False, drops=False), "serve",
    ),
    "broken connection taken for a proof of death": Fault(
        Parts(break_is_proof=True), replace(TIMED, breaks=1), "serve"
    ),
    "promise broken": Fault(Parts(follower=BreaksPromise), TIMED, "serve"),
    "promise by the own length": Fault(
        Parts(follower=PromisesOwnLength), replace(TIMED, lengths=(12, 4, 4)), "serve"
    ),
    "longer lease forgotten at a start": Fault(
        Parts(follower=ForgetsLength), replace(TIMED, lengths=(12, 4, 4), crashes=1), "serve"
    ),
    "answers while it asks": Fault(Parts(follower=AnswersWhileAsking), TIMED, "serve"),
    "clock rates forgotten": Fault(
        Parts(terms=no_drift()),
        Scope(messages=0, versions=1, ticks=4, joins=False, drops=False, rates=("slow", "fast", "even")),
        "serve",
    ),
}  # fmt: skip
