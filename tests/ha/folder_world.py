"""A shared folder as a small world: the holder of the first epoch, and candidates that take the next ones. Or equals:
they begin on a new folder, or on one of a node without a pair, and go on with the files of a holder that has ended.

Every step of a process that others could see, or that depends on what they did, is a step of its own: the write of a
record and the look after it, the sync of the journal, the look, the confirmation, the making of the next epoch, the
second read, the inheritance, the mark of its end. Processes crash between any two. Time passes at different rates, and
a clock may stand still, as in a virtual machine that is paused.

A process may be without the folder for a while. Its steps there fail or wait, and when that is longer than a lease, the
file system may take its lock. A taker that fails releases its epoch, or cannot.

Checked in every state: the newest complete epoch has everything that was confirmed. As long as no clock stood still, at
most one process may deliver. Nobody writes to files with which a later epoch goes on. No id that has left is used by
two holders, whatever the clocks say: a holder begins its ids at the mark that it inherits, and sends none before a mark
above is in its journal. `healed`: once all faults have ended, somebody serves.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace

from atalanta.ha.folder_lease import (
    ACTIVE,
    RELEASED,
    FolderHolder,
)
from atalanta.ha.lease import LeaseTerms
from tests.ha.epoch_folder import (
    DRIFT_PPM,
    LENGTH,
    PLAIN,
    SERVED,
    Epoch,
    EpochFolder,
    FolderParts,
    FolderScope,
)
from tests.ha.explorer import copied, key_of

HEAL_ROUNDS = 20
HEAL_STEPS = 8
@dataclass(frozen=True)
class Member:
    """A process. `stage` is its next step; `work` that for its newest message; `sent` the clock before its renewal."""

    # "found" comes before "candidate"; then "begin", "again", "inherit", "complete", "serve"; "ended"
    stage: str = "candidate"
    work: str = ""
    renewal: str = ""  # "write", "look"
    sent: int = 0
    number: int = 0
    made: int = 0
    wait: int = 0
    message: int = 0
    first: int = 0  # id of this holder, and whether the mark above it is in its journal
    reserved: bool = False
    away_since: int = -1  # the own clock when it lost the folder; -1: it has it
    source: int = 0  # the epoch that this one inherits from, and whether that has ended
    after_end: bool = False

    @property
    def away(self) -> bool:
        return self.away_since >= 0


class FolderWorld(EpochFolder):
    def __init__(self, scope: FolderScope, parts: FolderParts) -> None:
        self.terms = LeaseTerms(LENGTH, DRIFT_PPM)
        if parts.wait_ns >= 0:
            self.terms.wait_ns = parts.wait_ns
        super().__init__(scope, parts)
        self.wrong = ""
        count = len(scope.rates)
        self.clocks = (100,) + (100 - scope.behind,) * (count - 1)
        self.confirmed: frozenset[int] = frozenset({0} if scope.begun or scope.start == PLAIN else ())
        if scope.start == PLAIN:
            self.plain = replace(self.plain, journal=self.confirmed)
        self.older = ""  # whether a node of an earlier build runs: then "serves", "synced"
        self.members: tuple[Member, ...] = (Member("found"),) * count
        self.holders: tuple[FolderHolder | None, ...] = (None,) * count
        self.founded = scope.start == SERVED
        if self.founded:
            first = parts.holder(self.terms, 1, "0", self.boot(0))
            first.next_record(self.clocks[0])
            first.on_renewed(self.clocks[0], False)
            own = self.clocks[0] if parts.ids_from_the_clock else 0
            self.epochs = (Epoch(first.record, True, journal=self.confirmed, mark=own + 1, base=1),)
            self.members = (Member("serve", number=1, first=own, reserved=True),) + (Member(),) * (
                count - 1
            )
            self.holders = (first,) + (None,) * (count - 1)
        self.candidates = tuple(parts.candidate(self.terms) for _ in scope.rates)
        self.used: frozenset[tuple[int, int]] = frozenset()  # epochs and their ids that have left
        self.stood_still = False

    def key(self) -> Hashable:
        return (
            self.scope, self.wrong, self.clocks, self.epochs, self.members, self.plain, self.older, self.founded,
            tuple(key_of(holder) if holder else None for holder in self.holders),
            tuple(map(key_of, self.candidates)), self.confirmed, self.used, self.stood_still,
        )  # fmt: skip

    def copied(self, spent: str = "") -> FolderWorld:
        """Returns a copy, in which a step of that budget is spent."""
        fresh = object.__new__(FolderWorld)
        fresh.__dict__.update(self.__dict__)
        if spent:
            fresh.spend(spent)
        return fresh

    # --- changes -----------------------------------------------------------------------------------

    def spend(self, name: str) -> None:
        self.scope = replace(self.scope, **{name: getattr(self.scope, name) - 1})

    def change(self, index: int, **values: object) -> None:
        members = list(self.members)
        members[index] = replace(members[index], **values)  # type: ignore[arg-type]
        self.members = tuple(members)

    def own_holder(self, index: int) -> FolderHolder:
        """Returns the process' holder to change it: a copy, since worlds share their objects."""
        found = self.holders[index]
        assert found is not None
        fresh = copied(found)
        self.holders = self.holders[:index] + (fresh,) + self.holders[index + 1 :]
        return fresh

    def boot(self, index: int) -> str:
        return self.scope.boots[index] if self.scope.boots else str(index)

    # --- steps -----------------------------------------------------------------------------------------

    def steps(self) -> Iterator[tuple[str, FolderWorld]]:
        if self.wrong:
            return
        for index, member in enumerate(self.members):
            yield from self.member_steps(index, member)
            if member.stage == "ended":
                continue
            if self.scope.crashes and member.stage not in ("found", "candidate"):
                yield f"{index} crashes", self.ended(index, "crashes", ACTIVE)
            if (
                self.scope.releases
                and member.stage == "serve"
                and not member.renewal
                and not member.away
            ):
                yield f"{index} releases the folder", self.ended(index, "releases", RELEASED)
            yield from self.outage_steps(index, member)
        yield from self.older_steps()
        if self.scope.unmarks:
            for number, epoch in enumerate(self.epochs, 1):
                if epoch.complete and epoch.record is not None and epoch.record.has_served:
                    world = self.copied("unmarks")
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

    def member_steps(self, index: int, member: Member) -> Iterator[tuple[str, FolderWorld]]:
        """Yields what a process does next in the folder."""
        if member.stage == "found":
            if not member.away and (not self.older or self.founded or self.parts.founds_served):
                world = self.copied()
                world.founded = True
                world.change(index, stage="candidate")
                yield f"{index} makes the folder one of equals", world
        elif member.stage == "candidate":
            if not member.away:
                yield from self.candidate_steps(index)
        elif member.stage != "ended":
            yield from (
                self.away_steps(index, member) if member.away else self.holder_steps(index, member)
            )

    def older_steps(self) -> Iterator[tuple[str, FolderWorld]]:
        """Yields what a node of an earlier build does. It locks the folder, and refuses one that has epochs."""
        if not self.older and self.scope.older and not self.founded:
            world = self.copied("older")
            world.older = "serves"
            yield "a node of an earlier build starts", world
        elif self.older == "serves":
            if self.scope.messages:
                world = self.copied("messages")
                world.older = "synced"
                world.write(0, 90)
                yield "the earlier build writes", world
            world = self.copied()
            world.older = ""
            yield "the earlier build ends", world
        elif self.older == "synced":
            world = self.copied()
            world.confirmed |= {90}
            world.older = "serves"
            world.check()
            yield "the earlier build confirms", world

    def outage_steps(self, index: int, member: Member) -> Iterator[tuple[str, FolderWorld]]:
        """Yields that a process loses the folder, and finds it again; its lock may be lost meanwhile."""
        if not member.away:
            if self.scope.outages:
                world = self.copied("outages")
                world.change(index, away_since=self.clocks[index])
                yield f"{index} is without the folder", world
            return
        world = self.copied()
        world.change(index, away_since=-1)
        yield f"{index} finds the folder again", world
        long = self.clocks[index] >= member.away_since + LENGTH
        if long and self.holders[index] is not None and not self.epochs[member.number - 1].stolen:
            world = self.copied()
            world.change_epoch(member.number, stolen=True)
            yield f"the file system takes the lock of {index}", world

    def away_steps(self, index: int, member: Member) -> Iterator[tuple[str, FolderWorld]]:
        """Yields what a holder does whose steps in the folder fail."""
        if member.stage != "serve":
            yield f"{index} fails to take epoch {member.number}", self.failed(index, member, False)
            return
        counts = self.parts.failed_look == "counts"
        world = self.copied()
        if member.renewal == "look" and counts:
            world.own_holder(index).on_renewed(member.sent, False)
            world.change(index, renewal="")
            world.check()
            yield f"{index} takes a look that failed for a good one", world
        elif member.renewal:
            world.change(index, renewal="")
            yield f"{index} cannot renew", world
        if member.work == "look":
            world = self.copied()
            if counts:
                world.change(index, work="confirm")
            else:
                world.loses(index)
            yield f"{index} cannot look for the next epoch", world
        elif member.work == "confirm":
            world = self.copied()
            world.do_work(index, member)
            yield f"{index}: confirm", world
        world = self.copied()
        world.loses(index)
        yield f"{index} gives up epoch {member.number}", world

    def candidate_steps(self, index: int) -> Iterator[tuple[str, FolderWorld]]:
        now = self.clocks[index]
        candidate = copied(self.candidates[index])
        candidate.on_look(now, self.view(self.newest(), self.boot(index)))
        if key_of(candidate) != key_of(self.candidates[index]):
            world = self.copied()
            world.candidates = self.candidates[:index] + (candidate,) + self.candidates[index + 1 :]
            yield f"{index} looks", world
        seen = self.candidates[index].seen
        if seen is None or not self.scope.takes:
            return
        if self.source(seen.epoch + 1) is None:
            return
        allowed = bool(self.candidates[index].may_take(now, self.parts.primary))
        if (allowed or self.scope.early) and (
            not self.exists(seen.epoch + 1) or self.parts.makes_twice
        ):
            world = self.copied("takes")
            if not allowed:
                world.spend("early")
            number = seen.epoch + 1
            if number > len(self.epochs):
                world.epochs = (*self.epochs, Epoch(base=number))
            else:
                world.change_epoch(number, exists=True, ended=False, record=None)
            world.change(index, stage="begin", number=number, made=now)
            yield f"{index} makes epoch {number}", world

    def ended(self, index: int, budget: str, state: str) -> FolderWorld:
        world = self.copied(budget)
        member = self.members[index]
        world.change(index, stage="ended", work="", renewal="")
        world.change_epoch(member.number, ended=True)
        if state == RELEASED:
            holder = world.own_holder(index)
            if holder.lost:
                return world
            world.change_epoch(
                member.number, record=holder.next_record(self.clocks[index], RELEASED)
            )
        return world

    def loses(self, index: int) -> None:
        """The process has lost its epoch, and waits for the next one."""
        self.change_epoch(self.members[index].number, ended=True)
        self.holders = self.holders[:index] + (None,) + self.holders[index + 1 :]
        self.candidates = (
            self.candidates[:index]
            + (self.parts.candidate(self.terms),)
            + self.candidates[index + 1 :]
        )
        self.change(index, stage="candidate", work="", renewal="", number=0, made=0, wait=0)

    def failed(self, index: int, member: Member, tells: bool) -> FolderWorld:
        """A take has failed. `tells`: it could be written that the epoch is released."""
        world = self.copied()
        holder = world.own_holder(index) if tells and self.holders[index] is not None else None
        world.loses(index)
        if holder is not None and not holder.lost:
            world.change_epoch(
                member.number, record=holder.next_record(self.clocks[index], RELEASED)
            )
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
        if member.stage in ("again", "inherit", "complete") and not (
            member.stage == "again" and member.renewal
        ):
            step = self.taking_step(index, member)
            if step is not None:
                yield step
            if self.scope.failures and not member.renewal:
                yield from self.failure_steps(index, member)
        if member.stage == "serve":
            yield from self.serving_steps(index, member)

    def failure_steps(self, index: int, member: Member) -> Iterator[tuple[str, FolderWorld]]:
        """Yields that a take fails, with the release of its epoch or without, before its mark is there or after."""
        for tells in (True, False):
            world = self.failed(index, member, tells)
            world.spend("failures")
            yield (
                f"{index} fails to take epoch {member.number}, and {'' if tells else 'cannot '}tell it",
                world,
            )
        step = self.taking_step(index, member) if member.stage == "complete" else None
        if step is not None and step[1].members[index].stage == "serve":
            world = self.failed(index, member, True)
            world.spend("failures")
            gone: dict[str, object] = (
                {"journal": frozenset()} if self.parts.empties_after_mark else {}
            )
            world.change_epoch(member.number, complete=True, **gone)
            world.check()
            yield f"{index} fails to take epoch {member.number}, whose mark is there", world

    def holder(self, index: int) -> FolderHolder:
        found = self.holders[index]
        if found is None:
            raise AssertionError("not a holder")
        return found

    def begin_renewal(self, index: int, member: Member) -> None:
        if member.stage == "begin":
            fresh = self.parts.holder(
                self.terms, member.number, str(index), self.boot(index), patience_ns=1
            )
            self.holders = self.holders[:index] + (fresh,) + self.holders[index + 1 :]
            source, boot = self.source(member.number), self.boot(index)
            ended = source is not None and self.view(source, boot).has_ended(boot)
            if source is not None and self.scope.equals and self.may_adopt(source, boot):
                self.change_epoch(member.number, base=self.epochs[source - 1].base if source else 0)
            self.change(index, stage="again", source=source or 0, after_end=ended)
        else:
            self.spend("renewals")
        if self.parts.keeps_lock:
            self.change_epoch(member.number, stolen=False)
        self.own_holder(index).next_record(self.clocks[index])
        self.change(index, renewal="write", sent=self.clocks[index])

    def taking_step(self, index: int, member: Member) -> tuple[str, FolderWorld] | None:
        world = self.copied()
        if member.stage == "again":
            candidate = self.candidates[index]
            boot = self.boot(index)
            again = (
                candidate.seen if self.parts.reads_no_more else self.view(member.number - 1, boot)
            )
            assert again is not None
            wait = 0 if member.after_end else candidate.wait_ns(member.made, again)
            world.change(index, stage="inherit", wait=wait)
            return f"{index} reads the record of epoch {member.number - 1} again", world
        if member.stage == "inherit":
            if self.source(member.number) is None:
                world.change(index, stage="ended")
                return f"{index} finds an epoch without its mark", world
            source = member.source
            if self.epochs[member.number - 1].base == member.number:
                world.change_epoch(
                    member.number, journal=self.journal(source), mark=self.files(source).mark
                )
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
        mark = self.files(member.number).mark
        world.change(
            index,
            stage="serve",
            first=self.clocks[index] if self.parts.ids_from_the_clock else mark,
        )
        if self.parts.removes_epochs:
            world.remove_files(member.number)
        world.check()
        return f"{index} completes epoch {member.number}", world

    def serving_steps(self, index: int, member: Member) -> Iterator[tuple[str, FolderWorld]]:
        if member.work or (
            index < self.scope.writers and self.scope.messages and not self.holder(index).lost
        ):
            world = self.copied()
            world.do_work(index, member)
            yield f"{index}: {member.work or 'append'}", world
        if self.scope.ids and not member.reserved:
            world = self.copied()
            world.change_files(member.number, mark=member.first + 1)
            world.change(index, reserved=True)
            yield f"{index} reserves its ids", world
        if self.scope.ids and (member.reserved or self.parts.ids_without_a_mark):
            if self.holder(index).may_deliver(self.clocks[index]):
                world = self.copied("ids")
                world.used |= {(member.number, member.first)}
                world.check()
                yield f"{index} sends id {member.first}", world
        if self.scope.prunes and any(
            each.exists and each.record for each in self.epochs[: member.number - 1]
        ):
            world = self.copied("prunes")
            world.remove_files(member.number)
            world.check()
            yield f"{index} removes the files of earlier epochs", world

    def do_work(self, index: int, member: Member) -> None:
        """Does the next step for a message: sync, look, confirm."""
        early = self.parts.checks == "before the sync"
        holder = self.own_holder(index)
        if not member.work:
            self.spend("messages")
            self.change(
                index, work="look" if early else "sync", message=10 * index + self.scope.messages
            )
        elif member.work == "sync":
            self.write(member.number, member.message)
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

    def write(self, number: int, message: int) -> None:
        """Writes and syncs a message into the files of an epoch."""
        base = self.epochs[number - 1].base if number else 0
        if any(each.complete and each.base == base for each in self.epochs[number:]):
            self.wrong = "a late holder writes into the files of its successor"
        self.change_files(number, journal=self.files(number).journal | {message})

    def ticked(self, rates: tuple[int, ...]) -> FolderWorld:
        world = self.copied("ticks")
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

    # --- the end of all faults -----------------------------------------------------------------------

    def healed(self) -> str:
        """Returns the broken promise after all faults have ended: somebody serves, and has everything."""
        world = self.copied()
        world.scope = replace(
            self.scope, messages=0, crashes=0, releases=0, ids=0, prunes=0, early=0, pauses=0, unknown=0, older=0,
            unmarks=0, outages=0, failures=0, takes=99, ticks=99, renewals=99,
        )  # fmt: skip
        world.older = ""
        for _ in range(HEAL_ROUNDS):
            world = world.ticked(world.scope.rates)
            for index in range(len(self.members)):
                world = world.healed_by(index)
            if world.wrong or any(world.serves(index) for index in range(len(self.members))):
                return world.wrong
        return "nobody serves"

    def serves(self, index: int) -> bool:
        return self.members[index].stage == "serve" and self.holder(index).may_deliver(
            self.clocks[index]
        )

    def healed_by(self, index: int) -> FolderWorld:
        """Returns the world after a round of a process, in which it renews once. One that has ended starts again."""
        world = self.copied()
        world.change(index, away_since=-1)
        holder = world.holders[index]
        if world.members[index].stage == "ended" or (holder is not None and holder.lost):
            world.loses(index)
        renewed = False
        for _ in range(HEAL_STEPS):
            member = world.members[index]
            steps = list(world.member_steps(index, member))
            if renewed and member.stage != "begin" and not member.renewal:
                steps = steps[1:] if member.stage not in ("found", "candidate") else steps
            if not steps or world.wrong:
                break
            renewed = renewed or "to renew" in steps[-1][0]
            world = steps[-1][1]
        return world
