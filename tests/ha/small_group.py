"""A small replicated group: real `Follower` and `Active` objects with disks, channels and a manager, and what they do.

There is one FIFO channel for each direction between two members. A member without a process is down. What a scope
allows is counted down with each use.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

from atalanta.ha.lease import ActiveLease, LeaseTerms
from atalanta.ha.register import CompareAndSet, Read, Register, RegisterView, found
from atalanta.ha.replication.active import Active
from atalanta.ha.replication.epoch_table import EpochTable
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import (
    Action,
    Activate,
    Answer,
    Block,
    Confirm,
    Cut,
    Ended,
    HandOver,
    Heartbeat,
    Message,
    Offer,
    Refusal,
    Send,
    Stop,
    Store,
)
from tests.ha.explorer import copied, key_of

# (epoch, id): a message if the id is positive, the deletion of message -id if it is negative.
Entry: TypeAlias = tuple[int, int]
Request: TypeAlias = Read | CompareAndSet
CLOCK_RATES = {"slow": 3, "even": 4, "fast": 5}


@dataclass(frozen=True)
class Scope:
    """How often each thing may happen in a world."""

    members: int = 2
    messages: int = 1
    deletions: int = 0
    crashes: int = 0
    lost_answers: int = 0
    late_answers: int = 0  # requests whose execution and answer are two steps, beyond the lost ones
    breaks: int = 0
    versions: int = 3  # changes of the register after the start
    joins: bool = True
    drops: bool = True
    handovers: int = 0
    resignations: int = 0
    alone: bool = False  # the active node begins alone; the others have never followed
    behind: bool = False  # as `alone`, with one message that is confirmed
    min_in_sync: int = 1
    ticks: int = 0
    heartbeats: int = 2  # with ticks
    rates: tuple[str, ...] = ("even", "even", "even")
    lengths: tuple[int, ...] = (8, 8, 8)  # of the leases, with ticks


@dataclass(frozen=True)
class Parts:
    """The classes that make a member; tests plant faults by exchanging one."""

    follower: type[Follower] = Follower
    active: type[Active] = Active
    view: type[RegisterView] = RegisterView
    lease: type[ActiveLease] = ActiveLease
    terms: LeaseTerms | None = None
    purge_everything: bool = False
    break_is_proof: bool = False


class Member:
    """One member of the world: its disk, its process, its request to the manager."""

    __slots__ = (
        "answer", "asking", "files", "granted", "journal", "key", "late", "name", "process", "synced",
    )  # fmt: skip

    def __init__(self, name: str) -> None:
        self.name = name
        self.journal: tuple[Entry, ...] = ()
        self.synced = 0
        self.files: frozenset[int] = frozenset()
        self.process: Follower | Active | None = None
        self.asking: Request | None = None
        # The manager has executed the request; version 0 is a conflict.
        self.answer: tuple[int, Register] | None = None
        self.late: tuple[CompareAndSet, ...] = ()
        self.granted = 0  # the length of a lease, on its disk
        self.key: Hashable = None

    def copied(self) -> Member:
        fresh = Member(self.name)
        fresh.journal = self.journal
        fresh.synced = self.synced
        fresh.files = self.files
        fresh.process = copied(self.process) if self.process is not None else None
        fresh.asking = self.asking
        fresh.answer = self.answer
        fresh.late = self.late
        fresh.granted = self.granted
        return fresh

    def state(self) -> Hashable:
        if self.key is None:
            process = key_of(self.process) if self.process is not None else None
            self.key = hash(
                (
                    self.journal, self.synced, self.files, process, self.asking, self.answer, self.late,
                    self.granted,
                )
            )
        return self.key

    def table(self) -> EpochTable:
        """Returns the epoch table, as recovery reads it from the heads of the blocks."""
        found_epochs: list[tuple[int, int]] = []
        for index, entry in enumerate(self.journal):
            if not found_epochs or found_epochs[-1][0] != entry[0]:
                found_epochs.append((entry[0], index + 1))
        return tuple(found_epochs)


class SmallGroup:
    """The group. Its worlds share what they do not change."""

    def __init__(self, scope: Scope, parts: Parts) -> None:
        self.scope = scope
        self.parts = parts
        self.wrong = ""
        self.members = [Member("ABC"[index]) for index in range(scope.members)]
        self.channels: dict[str, tuple[tuple[Message, tuple[Entry, ...]], ...]] = {}
        self.version = 1
        self.register = found("A", 0, bytes(16))
        self.confirmed: tuple[Entry, ...] = ()
        self.epochs: tuple[int, ...] = ()
        self.lives = 0
        self.ids = 0
        self.clocks = tuple(0 for _ in self.members)
        self.timed = scope.ticks > 0
        if self.timed:
            self.terms = [parts.terms or LeaseTerms(length, 250_000) for length in scope.lengths]
        else:
            # Confirmations must not depend on a clock: whoever is in sync may take over at any time.
            terms = LeaseTerms(1, 0)
            terms.wait_ns = 0
            self.terms = [terms] * scope.members

    # --- copies ----------------------------------------------------------------------------------------

    def copied(self, spent: str = "") -> Self:
        """Returns a copy, in which a step of that budget is spent."""
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__)
        fresh.members = self.members.copy()
        fresh.channels = self.channels.copy()
        if spent:
            fresh.spend(spent)
        return fresh

    def key(self) -> Hashable:
        members = tuple(member.state() for member in self.members)
        channels = tuple(sorted((name, sent) for name, sent in self.channels.items() if sent))
        return (
            members, channels, self.version, self.register, self.confirmed, self.epochs, self.ids, self.clocks,
            self.scope, self.wrong,
        )  # fmt: skip

    def touched(self, index: int, spent: str = "") -> tuple[Self, Member]:
        """Returns a copy of the world in which member `index` may be changed, and a step of a budget is spent."""
        world = self.copied(spent)
        return world, world.own(index)

    def own(self, index: int) -> Member:
        """Makes member `index` changeable in this world, which nobody else has yet."""
        self.members[index] = self.members[index].copied()
        return self.members[index]

    def spend(self, name: str) -> None:
        self.scope = replace(self.scope, **{name: getattr(self.scope, name) - 1})

    def index(self, name: str) -> int:
        return "ABC".index(name)

    def now(self, member: Member) -> int:
        return self.clocks[self.index(member.name)]

    def outdated(self, member: Member) -> bool:
        return member.process is not None and member.process.view.version < self.version

    # --- what steps do ---------------------------------------------------------------------------------

    def start(self, own: Member) -> None:
        self.lives += 1
        own.synced = len(own.journal)
        view = self.parts.view(self.lives.to_bytes(8, "big"))
        view.on_read(self.version, self.register)
        own.process = self.parts.follower(
            own.name, view, self.terms[self.index(own.name)], self.now(own), own.table(), own.synced, own.granted
        )
        own.process.seen = max(own.process.seen, self.register.epoch)

    def crash(self, own: Member, lost: bool) -> None:
        if lost:
            own.journal = own.journal[: own.synced]
            self.check()
        own.synced = len(own.journal)
        own.process = None
        if isinstance(own.asking, CompareAndSet) and own.answer is None and self.scope.lost_answers:
            own.late = (*own.late, own.asking)
        own.asking = own.answer = None
        self.forget(own.name)

    def forget(self, name: str) -> None:
        """Drops what is on its way to `name`; the others notice. What it has sent still arrives."""
        for other in self.members:
            if other.name != name:
                self.channels[other.name + name] = ()
                self.disconnected(other.name, name)

    def disconnect(self, one: str, other: str) -> None:
        self.channels[one + other] = self.channels[other + one] = ()
        self.disconnected(one, other)
        self.disconnected(other, one)
        for name in (one, other):
            # A broken connection tells a follower nothing. A planted fault thinks otherwise.
            process = self.members[self.index(name)].process
            if isinstance(process, self.parts.follower) and self.parts.break_is_proof:
                own = self.own(self.index(name)).process
                assert isinstance(own, Follower)
                own.promise.release()

    def disconnected(self, name: str, other: str) -> None:
        index = self.index(name)
        process = self.members[index].process
        if isinstance(process, Active) and other in process.cursors:
            own = self.own(index).process
            assert isinstance(own, Active)
            own.on_disconnected(0, other)

    def append(self, own: Member, sign: int) -> None:
        active = own.process
        assert isinstance(active, Active)
        if sign > 0:
            self.spend("messages")
            self.ids += 1
            number = self.ids
            own.files |= {number}
        else:
            self.spend("deletions")
            number = -own.journal[-1][1]
        own.journal = (*own.journal, (active.epoch, number))
        active.on_append(self.now(own), len(own.journal))

    def sync(self, own: Member) -> None:
        process = own.process
        assert process is not None
        own.synced = len(own.journal)
        self.apply(own, process.on_durable(self.now(own), own.synced))
        self.check()

    def stream(self, own: Member, other: str) -> str:
        """Sends what the active node has for a follower: the offer, or the next record."""
        active = own.process
        assert isinstance(active, Active)
        if active.stopped:
            return ""
        if other not in active.cursors:
            # One offer at a time, and only to a process.
            there = self.channels.get(own.name + other, ())
            back = self.channels.get(other + own.name, ())
            if (
                any(isinstance(sent, Offer) for sent, _ in there)
                or any(isinstance(sent, Answer) and sent.epoch == active.epoch for sent, _ in back)
                or self.members[self.index(other)].process is None
            ):
                return ""
            self.apply(own, [active.offer(other)])
            return "an offer"
        first = active.unsent(other)
        if not first:
            return ""
        self.apply(own, [active.block(other, first)])
        return f"record {first}"

    def delivered(self, name: str) -> Self:
        world = self.copied()
        world.deliver(name)
        return world

    def deliver(self, name: str) -> None:
        own = self.own(self.index(name[1]))
        (message, entries), *rest = self.channels[name]
        self.channels[name] = tuple(rest)
        process = own.process
        if process is None:
            return
        now = self.now(own)
        actions: list[Action] = []
        if isinstance(process, Active):
            if isinstance(message, Answer):
                if not self.timed:
                    process.lease.on_answer(name[0], 0)
                actions = process.on_answer(now, name[0], message)
            elif isinstance(message, Refusal) or message.epoch > process.epoch:
                actions = process.on_refusal(now, name[0], message.epoch)
        elif isinstance(message, Offer):
            actions = process.on_offer(now, name[0], message)
            if process.epoch == message.epoch:
                own.granted = message.lease_ns
        elif isinstance(message, Block):
            actions = process.on_block(now, name[0], message)
        elif isinstance(message, Heartbeat):
            actions = process.on_heartbeat(now, name[0], message)
        elif isinstance(message, Ended):
            process.on_ended(now, message)
        elif isinstance(message, HandOver):
            actions = process.on_hand_over(now, message)
        self.apply(own, actions, entries)
        self.check()

    def apply(
        self, own: Member, actions: list[Action], entries: tuple[Entry, ...] = ()
    ) -> bool:
        """Executes the actions of a process. Returns whether there were any."""
        for action in actions:
            if isinstance(action, Send):
                self.send(own.name, action.member, action.message)
            elif isinstance(action, Store):
                own.journal = own.journal + entries
                own.files |= {number for _, number in entries if number > 0}
            elif isinstance(action, Cut):
                own.journal = own.journal[: action.lsn]
                own.synced = min(own.synced, action.lsn)
                self.check()
            elif isinstance(action, Confirm):
                self.confirm(own, action.lsn)
            elif isinstance(action, Activate):
                self.activate(own)
            elif isinstance(action, Stop):
                self.restart(own)
            else:
                own.asking = action
                own.answer = None
        return bool(actions)

    def send(self, name: str, other: str, message: Message) -> None:
        channel = self.channels.get(name + other, ())
        entries: tuple[Entry, ...] = ()
        if isinstance(message, Block):
            own = self.members[self.index(name)]
            entries = own.journal[message.first - 1 : message.last]
        elif isinstance(message, Answer) and channel and isinstance(channel[-1][0], Answer):
            before = channel[-1][0]
            if before.epoch == message.epoch:
                message = replace(message, sent_ns=max(before.sent_ns, message.sent_ns))
                channel = channel[:-1]
        elif isinstance(message, Refusal) and channel and channel[-1][0] == message:
            return
        self.channels[name + other] = (*channel, (message, entries))

    def confirm(self, own: Member, lsn: int) -> None:
        entries = own.journal[:lsn]
        shorter = min(len(entries), len(self.confirmed))
        if entries[:shorter] != self.confirmed[:shorter]:
            self.wrong = f"{own.name} confirms {entries}, {self.confirmed} was confirmed"
        if len(entries) > shorter:
            self.confirmed = entries
        copies = [each for each in self.members if each.journal[: each.synced][:lsn] == entries]
        if len(copies) < self.scope.min_in_sync:
            self.wrong = f"{own.name} confirms {entries}, which is on {len(copies)} disks"
        self.check()

    def activate(self, own: Member) -> None:
        follower = own.process
        assert isinstance(follower, Follower)
        active = self.parts.active(follower, self.now(own), 1 << 40, self.scope.min_in_sync)
        if self.parts.lease is not ActiveLease:
            active.lease = self.parts.lease(active.lease.terms)
        if active.epoch in self.epochs:
            self.wrong = f"epoch {active.epoch} has begun twice, now at {own.name}"
        self.epochs = (*self.epochs, active.epoch)
        own.process = active
        own.asking = own.answer = None
        self.forget(own.name)
        self.apply(own, active.on_durable(self.now(own), own.synced))
        self.check()

    def restart(self, own: Member) -> None:
        """The active node has stopped: the same process follows, with what its disk has."""
        self.forget(own.name)
        own.asking = own.answer = None
        self.start(own)
        self.check()

    def uncertain(self, own: Member) -> None:
        process = own.process
        if process is not None:
            own.asking = process.view.on_uncertain()

    def execute(self, own: Member) -> None:
        """The manager executes a request; its answer is on the way."""
        request = own.asking
        if isinstance(request, CompareAndSet):
            if request.version != self.version:
                own.answer = (0, self.register)
                return
            self.set_register(request.value)
        own.answer = (self.version, self.register)

    def set_register(self, value: Register) -> None:
        self.version += 1
        self.register = value
        if self.scope.versions:
            self.spend("versions")
        self.check()

    def answered(self, own: Member) -> None:
        answer, process, request = own.answer, own.process, own.asking
        own.answer = own.asking = None
        assert answer is not None and process is not None
        version, register = answer
        if version == 0:
            self.uncertain(own)
            return
        if isinstance(request, CompareAndSet):
            register = request.value
        self.apply(own, process.on_register(self.now(own), version, register))

    def ticked(self) -> Self:
        world = self.copied("ticks")
        world.clocks = tuple(
            clock + CLOCK_RATES[rate]
            for clock, rate in zip(self.clocks, self.scope.rates, strict=False)
        )
        world.check()
        return world

    # --- checks ----------------------------------------------------------------------------------------

    def check(self) -> None:
        if self.wrong:
            return
        count = len(self.confirmed)
        serving = []
        for member in self.members:
            if member.name in self.register.in_sync and member.journal[: member.synced][:count] != self.confirmed:
                self.wrong = f"{member.name} is in sync and lacks what was confirmed: {self.confirmed}"
            deleted = {-number for _, number in member.journal if number < 0}
            for _, number in member.journal:
                if number > 0 and number not in member.files and number not in deleted:
                    self.wrong = f"{member.name} has message {number} without its file"
            process = member.process
            if self.timed and isinstance(process, Active) and process.serves(self.now(member)):
                serving.append(member.name)
        if len(serving) > 1:
            self.wrong = f"{' and '.join(serving)} serve"
