"""A replicated group as a small world (small_group.py), and everything that can happen in it.

The answers of its manager are late or lost. Checked in every state:

- each member of the in-sync set has on its disk everything that was confirmed, and each message of its journal that
  no record deletes has its file (of a page or a large body);
- what was confirmed twice is the same;
- an epoch has one active process;
- with clocks: at most one process serves;
- with a minimum of members in sync: what is confirmed is on that many disks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from atalanta.ha.register import CompareAndSet, Read
from atalanta.ha.replication.active import Active
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import Heartbeat
from tests.ha.explorer import key_of
from tests.ha.small_group import Member, Parts, Scope, SmallGroup

PAIRS = (("A", "B"), ("A", "C"), ("B", "C"))
CHANNEL_SIZE = 2
HEAL_ROUNDS = 40

W = TypeVar("W", bound="GroupWorld")


class GroupWorld(SmallGroup):
    """The steps of a group, and its healing."""

    def steps(self) -> Iterator[tuple[str, GroupWorld]]:
        if self.wrong:
            return
        for index, member in enumerate(self.members):
            yield from self.process_steps(index, member)
            yield from self.manager_steps(index, member)
        for name, channel in self.channels.items():
            if channel:
                yield f"{name[0]} -> {name[1]}: {channel[0][0]}", self.delivered(name)
        if self.scope.breaks:
            for one, other in PAIRS[: 1 if len(self.members) == 2 else 3]:
                if self.channels.get(one + other) or self.channels.get(other + one):
                    world = self.copied("breaks")
                    world.disconnect(one, other)
                    yield f"the connection {one}{other} breaks", world
        if self.scope.ticks:
            yield "time passes", self.ticked()

    def process_steps(self, index: int, member: Member) -> Iterator[tuple[str, GroupWorld]]:
        name, process = member.name, member.process
        if process is None:
            world, own = self.touched(index)
            world.start(own)
            yield f"{name} starts", world
            return
        if member.synced < len(member.journal):
            world, own = self.touched(index)
            world.sync(own)
            yield f"{name} syncs", world
        if self.scope.crashes:
            for lost in (False, True) if member.synced < len(member.journal) else (False,):
                world, own = self.touched(index, "crashes")
                world.crash(own, lost)
                yield f"{name} crashes{' and loses its tail' if lost else ''}", world
        limit = process.deletable() if not self.parts.purge_everything else len(member.journal)
        doomed = {-entry[1] for entry in member.journal[:limit] if entry[1] < 0} & member.files
        if doomed:
            world, own = self.touched(index)
            own.files -= doomed
            world.check()
            yield f"{name} deletes the files of {sorted(doomed)}", world
        if isinstance(process, Active):
            yield from self.active_steps(index, member, process)
        elif self.may_change(member) and process.asked is None:
            world, own = self.touched(index)
            follower = own.process
            assert isinstance(follower, Follower)
            if world.apply(own, follower.take_over(world.now(own))):
                yield f"{name} asks to take over", world

    def may_change(self, member: Member) -> bool:
        """Returns True if the scope has another change of the register, and the member may ask for one."""
        return self.scope.versions > 0 and not isinstance(member.asking, CompareAndSet)

    def active_steps(
        self, index: int, member: Member, active: Active
    ) -> Iterator[tuple[str, GroupWorld]]:
        name = member.name
        if active.accepts():
            if self.scope.messages:
                world, own = self.touched(index)
                world.append(own, 1)
                yield f"{name} appends message {world.ids}", world
            if self.scope.deletions and member.journal and member.journal[-1][1] > 0:
                world, own = self.touched(index)
                world.append(own, -1)
                yield f"{name} appends the deletion of its last message", world
        if self.scope.resignations and not active.stopped:
            world, own = self.touched(index, "resignations")
            assert isinstance(own.process, Active)
            world.apply(own, own.process.resign(world.now(own), "asked to"))
            yield f"{name} resigns", world
        for other in self.members:
            if other is member:
                continue
            channel = self.channels.get(name + other.name, ())
            if len(channel) < CHANNEL_SIZE:
                cursor = active.cursors.get(other.name, -1)
                world, own = self.touched(index) if cursor < active.last else (self, member)
                label = world.stream(own, other.name) if world is not self else ""
                if label:
                    yield f"{name} sends {other.name} {label}", world
                if self.timed and self.scope.heartbeats and other.name in active.cursors:
                    world, own = self.touched(index, "heartbeats")
                    world.send(name, other.name, Heartbeat(active.epoch, world.now(own), 0))
                    yield f"{name} sends {other.name} a heartbeat", world
            if not self.may_change(member):
                continue
            for verb in ("join", "drop"):
                if getattr(self.scope, f"{verb}s"):
                    yield from self.changed(index, verb, other.name)
            if self.scope.handovers:
                yield from self.changed(index, "hand_over", other.name)

    def changed(self, index: int, verb: str, other: str) -> Iterator[tuple[str, GroupWorld]]:
        """One decision of the active node about another member, if it changes anything."""
        world, own = self.touched(index)
        if verb == "hand_over":
            world.spend("handovers")
        before = key_of(own.process)
        actions = getattr(own.process, verb)(world.now(own), other)
        world.apply(own, actions)
        if actions or key_of(own.process) != before:
            yield f"{own.name}: {verb} {other}", world

    def manager_steps(self, index: int, member: Member) -> Iterator[tuple[str, GroupWorld]]:
        name = member.name
        for position, write in enumerate(member.late):
            world, own = self.touched(index)
            own.late = member.late[:position] + member.late[position + 1 :]
            if write.version == self.version:
                world.set_register(write.value)
                yield f"a late write of {name} succeeds", world
        if member.answer is not None:
            world, own = self.touched(index)
            world.answered(own)
            yield f"{name} gets the answer of the manager", world
            if self.scope.lost_answers:
                world, own = self.touched(index, "lost_answers")
                own.answer = own.asking = None
                world.uncertain(own)
                yield f"{name} does not get the answer of the manager", world
        elif member.asking is not None:
            world, own = self.touched(index)
            world.execute(own)
            if isinstance(member.asking, Read) or not (self.scope.lost_answers + self.scope.late_answers):
                world.answered(own)
            yield f"the manager executes the request of {name}", world
            if self.scope.lost_answers and isinstance(member.asking, CompareAndSet):
                world, own = self.touched(index, "lost_answers")
                own.late = (*own.late, member.asking)
                own.asking = None
                world.uncertain(own)
                yield f"the request of {name} is late: no answer", world
        elif self.outdated(member):
            world, own = self.touched(index)
            own.asking = Read()
            world.execute(own)
            world.answered(own)
            yield f"{name} reads the register", world

    # --- healing ---------------------------------------------------------------------------------------

    def healed(self) -> str:
        return self.copied().heal()

    def heal(self) -> str:
        """Lets everything happen that no fault prevents. All must be in sync and equal then, and all confirmed."""
        self.scope = replace(
            self.scope, messages=0, deletions=0, crashes=0, lost_answers=0, late_answers=0, breaks=0, versions=99,
            handovers=0, resignations=0,
        )  # fmt: skip
        for _ in range(HEAL_ROUNDS):
            if self.timed:
                self.clocks = tuple(clock + 4 for clock in self.clocks)
            for index in range(len(self.members)):
                self.heal_member(index)
            for name in list(self.channels):
                while self.channels[name]:
                    self.deliver(name)
            if self.wrong or self.is_whole():
                return self.wrong
        return "the group does not heal"

    def heal_member(self, index: int) -> None:
        own = self.own(index)
        own.late = ()
        if own.process is None:
            self.start(own)
        if own.synced < len(own.journal):
            self.sync(own)
        if own.asking is None and self.outdated(own):
            own.asking = Read()
        for _ in range(2):
            if own.asking is not None:
                self.execute(own)
                self.answered(own)
        process = own.process
        now = self.now(own)
        if isinstance(process, Follower):
            active = self.members[self.index(self.register.active or "A")].process
            if not isinstance(active, Active) or active.epoch != self.register.epoch:
                self.apply(own, process.take_over(now))
            return
        assert process is not None
        for other in self.members:
            if other is own or own.process is not process:
                continue
            while self.stream(own, other.name):
                pass
            if other.name in process.cursors:
                self.send(own.name, other.name, Heartbeat(process.epoch, now, process.commit))
            if own.asking is None:
                self.apply(own, process.join(now, other.name))

    def is_whole(self) -> bool:
        first = self.members[0]
        return (
            len(self.register.in_sync) == len(self.members)
            and all(member.journal == first.journal for member in self.members)
            and all(member.synced == len(first.journal) for member in self.members)
            and self.confirmed == first.journal
        )


def started(scope: Scope, parts: Parts) -> GroupWorld:
    """Returns a world whose group is whole, with A active in epoch 1; or A is alone, as the scope says."""
    return begun(GroupWorld(scope, parts))


def begun(world: W) -> W:
    """Returns the new world with A active, and the others as the scope says."""
    scope = world.scope
    world.scope = replace(scope, versions=99, messages=1)
    first = world.own(0)
    world.start(first)
    process = first.process
    assert isinstance(process, Follower)
    world.apply(first, process.take_over(0))
    world.execute(first)
    world.answered(first)
    if scope.behind:
        world.append(first, 1)
        world.sync(first)
    for index in range(1, scope.members):
        world.start(world.own(index))
    if not (scope.alone or scope.behind):
        wrong = world.heal()
        assert not wrong, wrong
    world.scope = scope
    return world
