"""A shared folder as a small world: a holder of the lease file, and a candidate that takes it.

The holder appends, syncs, reads the lease file and confirms, each in a step of its own. It renews in two steps: it
reads the clock, then it replaces the file. The candidate reads the file, replaces it when it may, then reads the
journal. Time passes at different rates, and the holder's clock may stand still, as in a virtual machine that is
paused.

Checked in every state: the successor has everything that was confirmed; and as long as no clock stood still, at most
one of them may deliver.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from atalanta.ha.lease import FolderCandidate, FolderHolder, FolderRecord, LeaseTerms
from tests.ha.explorer import copied, key_of


@dataclass(frozen=True)
class FolderScope:
    messages: int = 2
    renewals: int = 2
    ticks: int = 6
    pauses: int = 1  # ticks in which the holder's clock stands still
    unknown: int = 1  # renewals whose outcome the holder does not get to know
    rates: tuple[int, int] = (3, 5)


@dataclass(frozen=True)
class FolderParts:
    """The classes of the world, and faults of the shell around them."""

    holder: type[FolderHolder] = FolderHolder
    candidate: type[FolderCandidate] = FolderCandidate
    terms: LeaseTerms | None = None
    checks_before_sync: bool = False
    checks_by_clock: bool = False
    renews_without_compare: bool = False


class FolderWorld:
    def __init__(self, scope: FolderScope, parts: FolderParts) -> None:
        terms = parts.terms or LeaseTerms(8, 250_000)
        self.scope = scope
        self.parts = parts
        self.wrong = ""
        self.clocks = (0, 0)
        self.file = FolderRecord(1, "first", 0)
        self.holder = parts.holder(terms, self.file, 0)
        self.candidate = parts.candidate(terms, "second")
        self.successor: FolderHolder | None = None
        # The holder's renewal on its way: what it writes, and the clock before.
        self.renewal: tuple[FolderRecord, int] | None = None
        self.stages = "append"  # the holder's next step for its newest message
        self.journal = 0  # messages that are synced
        self.inherited = -1  # messages that the successor has read
        self.confirmed = 0
        self.stood_still = False

    def key(self) -> Hashable:
        return (
            self.scope, self.wrong, self.clocks, self.file, key_of(self.holder), key_of(self.candidate),
            key_of(self.successor) if self.successor else None, self.renewal, self.stages, self.journal,
            self.inherited, self.confirmed, self.stood_still,
        )  # fmt: skip

    def copied(self) -> FolderWorld:
        fresh = object.__new__(FolderWorld)
        fresh.__dict__.update(self.__dict__)
        fresh.holder = copied(self.holder)
        fresh.candidate = copied(self.candidate)
        return fresh

    def healed(self) -> str:
        return ""

    def spend(self, name: str) -> None:
        self.scope = replace(self.scope, **{name: getattr(self.scope, name) - 1})

    # --- steps -----------------------------------------------------------------------------------------

    def steps(self) -> Iterator[tuple[str, FolderWorld]]:
        if self.wrong:
            return
        scope = self.scope
        if self.stages != "append" or scope.messages:
            world = self.copied()
            world.work()
            yield f"the holder: {self.stages}", world
        if self.renewal is not None:
            for known in (True, False) if scope.unknown else (True,):
                world = self.copied()
                world.renew(known)
                yield f"the holder replaces the file{'' if known else ', without an answer'}", world
        elif scope.renewals and not self.holder.lost:
            world = self.copied()
            world.spend("renewals")
            world.renewal = (world.holder.renewed(), self.clocks[0])
            yield "the holder reads its clock to renew", world
        yield from self.candidate_steps()
        if scope.ticks:
            yield "time passes", self.ticked(self.scope.rates[0])
            if scope.pauses:
                world = self.ticked(0)
                world.spend("pauses")
                world.stood_still = True
                yield "time passes, and the holder's clock stands still", world

    def candidate_steps(self) -> Iterator[tuple[str, FolderWorld]]:
        if self.successor is None:
            world = self.copied()
            world.candidate.on_read(self.clocks[1], self.file)
            yield "the candidate reads the file", world
            if self.candidate.may_take(self.clocks[1]) and self.candidate.seen == self.file:
                world = self.copied()
                world.file = self.candidate.taken()
                world.successor = FolderHolder(self.candidate.terms, world.file, self.clocks[1])
                world.check()
                yield "the candidate takes the lease", world
        elif self.inherited < 0:
            world = self.copied()
            world.inherited = self.journal
            world.check()
            yield "the successor reads the journal", world

    def work(self) -> None:
        """Does the holder's next step for a message."""
        early = self.parts.checks_before_sync
        if self.stages == "append":
            self.spend("messages")
            self.stages = "check" if early else "sync"
        elif self.stages == "sync":
            self.journal += 1
            self.stages = "confirm" if early else "check"
        elif self.stages == "check":
            if self.parts.checks_by_clock:
                allowed = self.holder.may_deliver(self.clocks[0])
            else:
                allowed = self.holder.may_confirm(self.file)
            self.stages = ("sync" if early else "confirm") if allowed else "append"
            if not allowed:
                self.scope = replace(self.scope, messages=0)
        else:
            self.stages = "append"
            self.confirmed += 1
            self.check()

    def renew(self, known: bool) -> None:
        assert self.renewal is not None
        record, sent = self.renewal
        self.renewal = None
        before = self.file
        done = before == self.holder.record or self.parts.renews_without_compare
        if done:
            self.file = record
        if not known:
            self.spend("unknown")
        elif done:
            self.holder.on_renewed(record, sent)
        else:
            self.holder.on_read(before)
        self.check()

    def ticked(self, rate: int) -> FolderWorld:
        world = self.copied()
        world.spend("ticks")
        world.clocks = (self.clocks[0] + rate, self.clocks[1] + self.scope.rates[1])
        world.check()
        return world

    def check(self) -> None:
        if 0 <= self.inherited < self.confirmed:
            self.wrong = "the successor lacks what was confirmed"
        if (
            not self.stood_still
            and self.successor is not None
            and self.successor.may_deliver(self.clocks[1])
            and self.holder.may_deliver(self.clocks[0])
        ):
            self.wrong = "both deliver"


# --- planted faults ------------------------------------------------------------------------------------


class RenewsFromTheEnd(FolderHolder):
    """The lease counts from the instant after the file was replaced; here, from far later than the clock was read."""

    def on_renewed(self, written: FolderRecord, sent_ns: int) -> None:
        super().on_renewed(written, sent_ns + 6)


class UnknownRenews(FolderHolder):
    """The lease is extended when a renewal begins, not when it has succeeded."""

    def renewed(self) -> FolderRecord:
        self.until_ns += self.terms.length_ns
        return super().renewed()


class CountsRepeats(FolderHolder):
    """A renewal counts though the file had the same content already, from a write of unknown outcome."""

    def on_renewed(self, written: FolderRecord, sent_ns: int) -> None:
        self.record = written
        self.until_ns = max(self.until_ns, sent_ns + self.terms.length_ns)


class TakesAtOnce(FolderCandidate):
    def may_take(self, now: int) -> bool:
        return self.seen is not None


class CountsFromFirstRead(FolderCandidate):
    """The candidate waits from its first read, also when the holder has renewed since."""

    def on_read(self, now: int, record: FolderRecord) -> None:
        since, seen = self.since_ns, self.seen
        super().on_read(now, record)
        if seen is not None:
            self.since_ns = since


def folder_terms_without_drift() -> LeaseTerms:
    """Returns terms whose candidate waits as long as the holder serves, by clocks of different rates."""
    terms = LeaseTerms(8, 250_000)
    terms.wait_ns = terms.length_ns
    return terms


FOLDER_FAULTS = {
    "checks before the sync": (FolderParts(checks_before_sync=True), "lacks"),
    "checks by clock, and the clock stands still": (FolderParts(checks_by_clock=True), "lacks"),
    "renews over another holder": (FolderParts(renews_without_compare=True), "both deliver"),
    "counts from the end of a renewal": (FolderParts(holder=RenewsFromTheEnd), "both deliver"),
    "takes an unknown renewal for done": (FolderParts(holder=UnknownRenews), "both deliver"),
    "counts a renewal that changes nothing": (FolderParts(holder=CountsRepeats), "both deliver"),
    "takes at once": (FolderParts(candidate=TakesAtOnce), "both deliver"),
    "waits from the first read": (FolderParts(candidate=CountsFromFirstRead), "both deliver"),
    "clock rates forgotten": (FolderParts(terms=folder_terms_without_drift()), "both deliver"),
}
