"""A shared folder as a small world: the holder of the first epoch, and candidates that take the next ones.

Every step of a process that others could see, or that depends on what they did, is a step of its own: the write of a
record and the look after it, the sync of the journal, the look, the confirmation, the making of the next epoch, the
second read, the inheritance, the mark of its end. Processes crash between any two. Time passes at different rates, and
a clock may stand still, as in a virtual machine that is paused.

Checked in every state: the newest complete epoch has everything that was confirmed. As long as no clock stood still, at
most one process may deliver. No id that has left is used by two holders, whatever the clocks say: a holder begins its
ids at the mark that it inherits, and sends none before a mark above is in its journal.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from atalanta.ha.folder_lease import (
    ACTIVE,
    RELEASED,
    EpochUnmarked,
    EpochView,
    FolderCandidate,
    FolderHolder,
    FolderRecord,
    inherited_epoch,
)
from atalanta.ha.lease import LeaseTerms
from tests.ha.explorer import copied, key_of

LENGTH = 8
DRIFT_PPM = 250_000


@dataclass(frozen=True)
class FolderScope:
    """Budgets of steps. `early`: an operator takes the folder from a holder that is alive."""

    messages: int = 0
    writers: int = 3  # so many of the processes get messages
    renewals: int = 0
    ticks: int = 0
    pauses: int = 0  # ticks in which the first holder's clock stands still
    unknown: int = 0  # writes of a record whose outcome the holder does not get to know
    crashes: int = 0
    releases: int = 0
    takes: int = 1
    early: int = 0
    prunes: int = 0
    unmarks: int = 0  # somebody deletes the mark of an epoch that is served
    rates: tuple[int, ...] = (3, 5, 5)
    begun: bool = False  # one message is confirmed already
    behind: int = 0  # how far the clocks of the candidates are behind the first holder's
    proof: bool = False  # the lock of a process that has crashed is seen free
    ids: int = 0  # ids that leave


@dataclass(frozen=True)
class FolderParts:
    """The classes of the world, and faults of the code around them."""

    holder: type[FolderHolder] = FolderHolder
    candidate: type[FolderCandidate] = FolderCandidate
    wait_ns: int = -1  # of the terms; -1: as computed
    checks: str = "after the sync"
    completes_early: bool = False
    inherits_incomplete: bool = False
    passes_over_served: bool = False
    ids_from_the_clock: bool = False
    ids_without_a_mark: bool = False
    removes_epochs: bool = False
    prunes_early: bool = False
    trusts_free_lock: bool = False
    reads_no_more: bool = False


@dataclass(frozen=True)
class Epoch:
    """A directory: the record in it, whether it is complete, whether its holder's process has ended, its journal, and
    the mark of the ids in that."""

    record: FolderRecord | None = None
    complete: bool = False
    ended: bool = False
    journal: frozenset[int] = frozenset()
    exists: bool = True
    mark: int = 0


@dataclass(frozen=True)
class Member:
    """A process. `stage` is its next step; `work` that for its newest message; `sent` the clock before its renewal."""

    stage: str = "candidate"  # then "begin", "again", "inherit", "complete", "serve"; "ended"
    work: str = ""
    renewal: str = ""  # "write", "look"
    sent: int = 0
    number: int = 0
    made: int = 0
    wait: int = 0
    message: int = 0
    first: int = 0  # id of this holder, and whether the mark above it is in its journal
    reserved: bool = False


class FolderWorld:
    def __init__(self, scope: FolderScope, parts: FolderParts) -> None:
        self.terms = LeaseTerms(LENGTH, DRIFT_PPM)
        if parts.wait_ns >= 0:
            self.terms.wait_ns = parts.wait_ns
        self.scope = scope
        self.parts = parts
        self.wrong = ""
        count = len(scope.rates)
        self.clocks = (100,) + (100 - scope.behind,) * (count - 1)
        first = parts.holder(self.terms, 1, "0")
        first.next_record(self.clocks[0])
        first.on_renewed(self.clocks[0], False)
        self.confirmed: frozenset[int] = frozenset({0} if scope.begun else ())
        own = self.clocks[0] if parts.ids_from_the_clock else 0
        self.epochs: tuple[Epoch, ...] = (Epoch(first.record, True, journal=self.confirmed, mark=own + 1),)
        self.members = (Member("serve", number=1, first=own, reserved=True),) + (Member(),) * (count - 1)
        self.holders: tuple[FolderHolder | None, ...] = (first,) + (None,) * (count - 1)
        self.candidates = tuple(parts.candidate(self.terms) for _ in scope.rates)
        self.used: frozenset[tuple[int, int]] = frozenset()  # epochs and their ids that have left
        self.stood_still = False

    def key(self) -> Hashable:
        return (
            self.scope, self.wrong, self.clocks, self.epochs, self.members,
            tuple(key_of(holder) if holder else None for holder in self.holders),
            tuple(map(key_of, self.candidates)), self.confirmed, self.used, self.stood_still,
        )  # fmt: skip

    def copied(self) -> FolderWorld:
        fresh = object.__new__(FolderWorld)
        fresh.__dict__.update(self.__dict__)
        return fresh

    def healed(self) -> str:
        return ""

    # --- changes -----------------------------------------------------------------------------------

    def spend(self, name: str) -> None:
        self.scope = replace(self.scope, **{name: getattr(self.scope, name) - 1})

    def change(self, index: int, **values: object) -> None:
        members = list(self.members)
        members[index] = replace(members[index], **values)  # type: ignore[arg-type]
        self.members = tuple(members)

    def change_epoch(self, number: int, **values: object) -> None:
        epochs = list(self.epochs)
        epochs[number - 1] = replace(epochs[number - 1], **values)  # type: ignore[arg-type]
        self.epochs = tuple(epochs)

    def own_holder(self, index: int) -> FolderHolder:
        """Returns the process' holder to change it: a copy, since worlds share their objects."""
        found = self.holders[index]
        assert found is not None
        fresh = copied(found)
        self.holders = self.holders[:index] + (fresh,) + self.holders[index + 1 :]
        return fresh

    # --- what a process sees -------------------------------------------------------------------------

    def exists(self, number: int) -> bool:
        return number <= len(self.epochs) and self.epochs[number - 1].exists

    def view(self, number: int) -> EpochView:
        epoch = self.epochs[number - 1]
        content = b"" if epoch.record is None else repr(epoch.record.renewals).encode() + epoch.record.state.encode()
        gone = self.parts.trusts_free_lock or (self.scope.proof and epoch.ended)
        return EpochView(number, epoch.complete, epoch.record, content, gone)

    # --- steps -----------------------------------------------------------------------------------------

    def steps(self) -> Iterator[tuple[str, FolderWorld]]:
        if self.wrong:
            return
        for index, member in enumerate(self.members):
            if member.stage == "ended":
                continue
            if member.stage == "candidate":
                yield from self.candidate_steps(index)
                continue
            yield from self.holder_steps(index, member)
            if self.scope.crashes:
                yield f"{index} crashes", self.ended(index, "crashes", ACTIVE)
            if self.scope.releases and member.stage == "serve" and not member.renewal:
                yield f"{index} releases the folder", self.ended(index, "releases", RELEASED)
        if self.scope.unmarks:
            for number, epoch in enumerate(self.epochs, 1):
                if epoch.complete and epoch.record is not None and epoch.record.has_served:
                    world = self.copied()
                    world.spend("unmarks")
                    world.change_epoch(number, complete=False)
                    world.check()
                    yield f"somebody deletes the mark of epoch {number}", world
        if self.scope.ticks:
            yield "time passes", self.ticked(self.scope.rates)
            if self.scope.pauses:
                world = self.ticked((0, *self.scope.rates[1:]))
                world.spend("pauses")
                world.stood_still = True
                yield "time passes, and the clock of 0 stands still", world

    def candidate_steps(self, index: int) -> Iterator[tuple[str, FolderWorld]]:
        now = self.clocks[index]
        newest = max(number for number in range(1, len(self.epochs) + 1) if self.exists(number))
        candidate = copied(self.candidates[index])
        candidate.on_look(now, self.view(newest))
        if key_of(candidate) != key_of(self.candidates[index]):
            world = self.copied()
            world.candidates = self.candidates[:index] + (candidate,) + self.candidates[index + 1 :]
            yield f"{index} looks", world
        seen = self.candidates[index].seen
        if seen is None or not self.scope.takes:
            return
        if self.source(seen.epoch + 1) is None:
            return
        allowed = bool(self.candidates[index].may_take(now, True))
        if (allowed or self.scope.early) and not self.exists(seen.epoch + 1):
            world = self.copied()
            world.spend("takes")
            if not allowed:
                world.spend("early")
            number = seen.epoch + 1
            if number > len(self.epochs):
                world.epochs = (*self.epochs, Epoch())
            else:
                world.change_epoch(number, exists=True, ended=False, record=None)
            world.change(index, stage="begin", number=number, made=now)
            yield f"{index} makes epoch {number}", world

    def ended(self, index: int, budget: str, state: str) -> FolderWorld:
        world = self.copied()
        world.spend(budget)
        member = self.members[index]
        world.change(index, stage="ended", work="", renewal="")
        world.change_epoch(member.number, ended=True)
        if state == RELEASED:
            holder = world.own_holder(index)
            if holder.lost:
                return world
            world.change_epoch(member.number, record=holder.next_record(self.clocks[index], RELEASED))
        return world

    def holder_steps(self, index: int, member: Member) -> Iterator[tuple[str, FolderWorld]]:
        if member.renewal == "write":
            for known in (True, False) if self.scope.unknown else (True,):
                world = self.copied()
                world.change_epoch(member.number, record=world.holder(index).record)
                if known:
                    world.change(index, renewal="look")
                else:
                    world.spend("unknown")
                    world.change(index, renewal="")
                yield f"{index} writes its record{'' if known else ', without an answer'}", world
        elif member.renewal == "look":
            world = self.copied()
            world.own_holder(index).on_renewed(member.sent, self.exists(member.number + 1))
            world.change(index, renewal="")
            world.check()
            yield f"{index} looks after its record", world
        elif member.stage == "begin" or (self.scope.renewals and not self.holder(index).lost):
            world = self.copied()
            world.begin_renewal(index, member)
            yield f"{index} reads its clock to renew", world
        if member.stage in ("again", "inherit", "complete") and not (member.stage == "again" and member.renewal):
            step = self.taking_step(index, member)
            if step is not None:
                yield step
        if member.stage == "serve":
            yield from self.serving_steps(index, member)

    def holder(self, index: int) -> FolderHolder:
        found = self.holders[index]
        if found is None:
            raise AssertionError("not a holder")
        return found

    def begin_renewal(self, index: int, member: Member) -> None:
        if member.stage == "begin":
            fresh = self.parts.holder(self.terms, member.number, str(index), patience_ns=1)
            self.holders = self.holders[:index] + (fresh,) + self.holders[index + 1 :]
            self.change(index, stage="again")
        else:
            self.spend("renewals")
        self.own_holder(index).next_record(self.clocks[index])
        self.change(index, renewal="write", sent=self.clocks[index])

    def source(self, number: int) -> int | None:
        """Returns the epoch that `number` inherits from, 0 for none; None if it must not be taken."""
        if self.parts.inherits_incomplete:
            return number - 1
        below = [each for each in range(1, number) if self.epochs[each - 1].complete]
        if self.parts.passes_over_served:
            return below[-1] if below else 0
        try:
            return inherited_epoch(number, self.view)
        except EpochUnmarked:
            return None

    def journal(self, number: int) -> frozenset[int]:
        """Returns the messages of an epoch; none for 0."""
        return self.epochs[number - 1].journal if number else frozenset()

    def taking_step(self, index: int, member: Member) -> tuple[str, FolderWorld] | None:
        world = self.copied()
        if member.stage == "again":
            candidate = self.candidates[index]
            again = candidate.seen if self.parts.reads_no_more else self.view(member.number - 1)
            assert again is not None
            world.change(index, stage="inherit", wait=candidate.wait_ns(member.made, again))
            return f"{index} reads the record of epoch {member.number - 1} again", world
        if member.stage == "inherit":
            source = self.source(member.number)
            if source is None:
                world.change(index, stage="ended")
                return f"{index} finds an epoch without its mark", world
            mark = self.epochs[source - 1].mark if source else 0
            world.change_epoch(member.number, journal=self.journal(source), mark=mark)
            if self.parts.prunes_early:
                world.change_epoch(source, complete=False, journal=frozenset(), record=None)
            if self.parts.completes_early:
                world.change_epoch(member.number, complete=True)
            world.change(index, stage="complete")
            return f"{index} inherits from epoch {source}", world
        if self.clocks[index] < member.made + member.wait:
            return None
        world.own_holder(index).on_look(self.exists(member.number + 1))
        if world.holder(index).lost:
            world.change(index, stage="ended")
            return f"{index} finds its epoch lost", world
        world.change_epoch(member.number, complete=True)
        world.own_holder(index).serves()
        mark = self.epochs[member.number - 1].mark
        world.change(index, stage="serve", first=self.clocks[index] if self.parts.ids_from_the_clock else mark)
        if self.parts.removes_epochs:
            world.remove_files(member.number)
        world.check()
        return f"{index} completes epoch {member.number}", world

    def serving_steps(self, index: int, member: Member) -> Iterator[tuple[str, FolderWorld]]:
        if member.work or (index < self.scope.writers and self.scope.messages and not self.holder(index).lost):
            world = self.copied()
            world.do_work(index, member)
            yield f"{index}: {member.work or 'append'}", world
        if self.scope.ids and not member.reserved:
            world = self.copied()
            world.change_epoch(member.number, mark=member.first + 1)
            world.change(index, reserved=True)
            yield f"{index} reserves its ids", world
        if self.scope.ids and (member.reserved or self.parts.ids_without_a_mark):
            if self.holder(index).may_deliver(self.clocks[index]):
                world = self.copied()
                world.spend("ids")
                world.used |= {(member.number, member.first)}
                world.check()
                yield f"{index} sends id {member.first}", world
        if self.scope.prunes and any(each.exists and each.record for each in self.epochs[: member.number - 1]):
            world = self.copied()
            world.spend("prunes")
            world.remove_files(member.number)
            yield f"{index} removes the files of earlier epochs", world

    def remove_files(self, below: int) -> None:
        """Removes the files of earlier epochs; their directories stay, unless that is the fault."""
        for number in range(1, below):
            self.change_epoch(
                number, record=None, complete=False, journal=frozenset(), exists=not self.parts.removes_epochs
            )

    def do_work(self, index: int, member: Member) -> None:
        """Does the next step for a message: sync, look, confirm."""
        early = self.parts.checks == "before the sync"
        holder = self.own_holder(index)
        if not member.work:
            self.spend("messages")
            self.change(index, work="look" if early else "sync", message=10 * index + self.scope.messages)
        elif member.work == "sync":
            journal = self.epochs[member.number - 1].journal | {member.message}
            self.change_epoch(member.number, journal=journal)
            self.change(index, work="confirm" if early else "look")
        elif member.work == "look":
            if self.parts.checks == "by clock":
                allowed = holder.may_deliver(self.clocks[index])
            elif self.parts.checks == "never":
                allowed = True
            else:
                allowed = holder.may_confirm(self.exists(member.number + 1))
            follows = "sync" if early else "confirm"
            self.change(index, work=follows if allowed else "")
            if not allowed:
                self.scope = replace(self.scope, messages=0)
        else:
            self.confirmed |= {member.message}
            self.change(index, work="")
            self.check()

    def ticked(self, rates: tuple[int, ...]) -> FolderWorld:
        world = self.copied()
        world.spend("ticks")
        world.clocks = tuple(clock + rate for clock, rate in zip(self.clocks, rates, strict=True))
        world.check()
        return world

    def check(self) -> None:
        newest = self.source(len(self.epochs) + 1)
        if newest is not None and not self.confirmed <= self.journal(newest):
            self.wrong = "the newest epoch lacks what was confirmed"
        serving = [
            index
            for index, member in enumerate(self.members)
            if member.stage == "serve" and self.holder(index).may_deliver(self.clocks[index])
        ]
        if not self.stood_still and len(serving) > 1:
            self.wrong = "both deliver"
        if len({number for _, number in self.used}) < len(self.used):
            self.wrong = "an id is used twice"


# --- planted faults ------------------------------------------------------------------------------------


class RenewsWithoutLook(FolderHolder):
    def on_renewed(self, sent_ns: int, next_exists: bool) -> None:
        super().on_renewed(sent_ns, False)


class RenewsFromTheEnd(FolderHolder):
    """The lease counts from far later than the clock was read."""

    def on_renewed(self, sent_ns: int, next_exists: bool) -> None:
        super().on_renewed(sent_ns + 6, next_exists)


class UnknownRenews(FolderHolder):
    """The lease is extended when a renewal begins, not when it has succeeded."""

    def next_record(self, clock_ns: int, state: str = ACTIVE) -> FolderRecord:
        self.until_ns += self.terms.length_ns if self.record.renewals else 0
        return super().next_record(clock_ns, state)


class RepeatsRecords(FolderHolder):
    """A second attempt writes what the first one had written, perhaps."""

    def next_record(self, clock_ns: int, state: str = ACTIVE) -> FolderRecord:
        if self.record.renewals == 2:
            return self.record
        return super().next_record(clock_ns, state)


class WaitsNever(FolderCandidate):
    def wait_ns(self, made_ns: int, again: EpochView) -> int:
        return 0


class TrustsIncomplete(FolderCandidate):
    """The end of a taker is taken for the end of the holder before it."""

    def wait_ns(self, made_ns: int, again: EpochView) -> int:
        return super().wait_ns(made_ns, replace(again, complete=True))


class CountsFromFirstLook(FolderCandidate):
    """The candidate waits from its first look, also when the holder has renewed since."""

    def on_look(self, now: int, view: EpochView) -> None:
        since, seen = self.since_ns, self.seen
        super().on_look(now, view)
        if seen is not None:
            self.since_ns = since


LEASES = FolderScope(renewals=2, ticks=5, rates=(3, 5))


@dataclass(frozen=True)
class FolderFault:
    """A planted fault, a scope in which it does harm, and the word of the promise that it breaks."""

    parts: FolderParts
    finds: str
    scope: FolderScope = LEASES


COMMITS = FolderScope(messages=1, early=1, ticks=2, rates=(8, 8))
UNKNOWN = FolderScope(renewals=2, ticks=3, unknown=1, rates=(4, 5))
TAKERS = FolderScope(takes=2, early=1, crashes=1, ticks=1, begun=True, proof=True, rates=(16, 16, 16))
CLOCKS = FolderScope(ticks=5, rates=(4, 4), behind=20, crashes=1, proof=True, ids=2)
MARKS = FolderScope(takes=2, crashes=2, proof=True, ids=3, rates=(4, 4, 4))

FOLDER_FAULTS = {
    "looks before the sync": FolderFault(FolderParts(checks="before the sync"), "lacks", COMMITS),
    "does not look": FolderFault(FolderParts(checks="never"), "lacks", COMMITS),
    "looks at the clock, which stands still": FolderFault(
        FolderParts(checks="by clock"), "lacks", FolderScope(messages=1, ticks=2, pauses=2, rates=(8, 8))
    ),
    "renews without a look": FolderFault(FolderParts(holder=RenewsWithoutLook), "both deliver"),
    "counts from the end of a renewal": FolderFault(FolderParts(holder=RenewsFromTheEnd), "both deliver"),
    "takes an unknown renewal for done": FolderFault(FolderParts(holder=UnknownRenews), "both deliver", UNKNOWN),
    "repeats a record": FolderFault(FolderParts(holder=RepeatsRecords), "both deliver", UNKNOWN),
    "serves at once": FolderFault(
        FolderParts(candidate=WaitsNever), "both deliver", FolderScope(ticks=1, early=1, rates=(4, 4))
    ),
    "does not read the record again": FolderFault(FolderParts(reads_no_more=True), "both deliver"),
    "waits from the first look": FolderFault(
        FolderParts(candidate=CountsFromFirstLook), "both deliver", replace(LEASES, renewals=1)
    ),
    "clock rates forgotten": FolderFault(FolderParts(wait_ns=LENGTH), "both deliver"),
    "takes the end of a taker for that of the holder": FolderFault(
        FolderParts(candidate=TrustsIncomplete), "both deliver",
        FolderScope(takes=2, early=1, crashes=1, ticks=1, proof=True, rates=(4, 4, 4)),
    ),
    "completes before the wait": FolderFault(
        FolderParts(completes_early=True), "both deliver",
        FolderScope(takes=2, early=1, crashes=1, ticks=1, proof=True, rates=(4, 4, 4)),
    ),
    "a free lock for a dead holder": FolderFault(FolderParts(trusts_free_lock=True), "both deliver"),
    "inherits from an incomplete epoch": FolderFault(FolderParts(inherits_incomplete=True), "lacks", TAKERS),
    "passes over an epoch that was served": FolderFault(
        FolderParts(passes_over_served=True), "lacks",
        FolderScope(crashes=1, begun=True, unmarks=1, proof=True, rates=(16, 16)),
    ),
    "removes files before it is complete": FolderFault(FolderParts(prunes_early=True), "lacks", TAKERS),
    "removes directories of epochs": FolderFault(
        FolderParts(removes_epochs=True), "lacks",
        replace(TAKERS, messages=1, writers=1, begun=False),
    ),
    "ids begin at the clock": FolderFault(FolderParts(ids_from_the_clock=True), "used twice", CLOCKS),
    "ids leave before their mark is durable": FolderFault(FolderParts(ids_without_a_mark=True), "used twice", MARKS),
}  # fmt: skip
