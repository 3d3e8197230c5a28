"""A replicated group whose members have guards, as a small world: what ends in which order when a process is killed.

A member is three processes: the one that was started, its guard, and the broker. When the first one ends, the broker
goes on until the guard has ended it. Then the guard has the proof, which reaches a follower or not. With `voter` the
guard of A has the only voter of the register: it ends some time after the broker, and a restart in between starts
another one, which waits for the folder of the first.

Checked beside what a group promises: when the started process of the active member ends, a follower in sync serves
before any time has passed.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from atalanta.ha.register import Register
from atalanta.ha.replication.active import Active
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import Answer, Ended, Heartbeat, Send
from tests.ha.explorer import copied, key_of
from tests.ha.group_world import GroupWorld, begun
from tests.ha.small_group import Member, Parts, Scope

ROUNDS = 6


@dataclass(frozen=True)
class GuardScope(Scope):
    """How often each thing may happen."""

    kills: int = 1  # of processes that were started
    voter: bool = False  # in the guard of A, the only one


@dataclass(frozen=True)
class GuardParts(Parts):
    """What the guards do. Tests plant faults by changing one."""

    # The process that was started is the guard, and takes broker and voter with it: so it was before there were three.
    two_processes: bool = False
    proves_at_once: bool = False  # the guard proves what it has seen: the end of the started process
    ignores_lock: bool = False  # a restart does not wait for the folder of the broker
    ignores_voter_lock: bool = False  # the voter of a restart does not wait for its folder
    ends_voter_at_once: bool = False  # the guard does not keep its voter


class GuardedWorld(GroupWorld):
    scope: GuardScope
    parts: GuardParts

    def __init__(self, scope: GuardScope, parts: GuardParts) -> None:
        super().__init__(scope, parts)
        self.doomed: frozenset[str] = frozenset()  # brokers whose started process has ended
        self.proofs: tuple[tuple[str, int], ...] = ()  # that guards have: a member, and its epoch
        self.late: tuple[Active, ...] = ()  # brokers that run beside the next process of their member
        self.votes = True  # a voter answers
        self.leaves = False  # it is of an earlier guard of A, and ends some time
        self.left = False  # it has ended in that way
        self.other: tuple[int, Register] | None = None  # what a second voter says

    def key(self) -> Hashable:
        late = tuple(key_of(broker) for broker in self.late)
        voters = self.votes, self.leaves, self.left, self.other
        return super().key(), self.doomed, self.proofs, late, voters

    # --- steps -----------------------------------------------------------------------------------------

    def steps(self) -> Iterator[tuple[str, GroupWorld]]:
        yield from super().steps()
        if self.wrong:
            return
        for name, epoch in self.proofs:
            for index, member in enumerate(self.members):
                process = member.process
                if isinstance(process, Follower) and process.epoch == epoch and process.ended != epoch:
                    world, own = self.touched(index)
                    world.prove(own, epoch)
                    yield f"the guard of {name} proves the end of epoch {epoch} to {member.name}", world
        for at, broker in enumerate(self.late):
            for index, member in enumerate(self.members):
                process = member.process
                if self.scope.heartbeats and isinstance(process, Follower) and process.epoch == broker.epoch:
                    world, own = self.touched(index, "heartbeats")
                    world.renew(at, own)
                    yield f"the former broker of {broker.name} has an answer of {member.name}", world
        if self.scope.voter:
            yield from self.voter_steps()

    def voter_steps(self) -> Iterator[tuple[str, GroupWorld]]:
        if self.votes and self.leaves:
            world = self.copied()
            world.votes = world.leaves = False
            world.left = True
            if world.other is not None:
                world.version, world.register = world.other
                world.other, world.votes = None, True
            yield "the voter ends", world
        restarted = self.members[0].process is not None and "A" not in self.doomed
        if restarted and not self.votes:
            world = self.copied()
            world.votes = True
            yield "the next voter begins", world
        if restarted and self.leaves and self.other is None and self.parts.ignores_voter_lock:
            world = self.copied()
            world.other = self.version, self.register
            yield "the next voter begins beside the former one", world
        if self.other is not None:
            world = self.copied()
            world.version, world.register = self.other
            world.other = self.version, self.register
            yield "requests reach the other voter", world

    def process_steps(self, index: int, member: Member) -> Iterator[tuple[str, GroupWorld]]:
        yield from super().process_steps(index, member)
        name, process = member.name, member.process
        if process is None:
            return
        if name in self.doomed:
            world, own = self.touched(index)
            world.end_broker(own)
            yield f"the guard of {name} ends the broker", world
            if self.parts.ignores_lock and isinstance(process, Active):
                world, own = self.touched(index)
                world.late = (*world.late, copied(process))
                world.crash(own, False)
                world.start(own)
                yield f"{name} starts beside its broker", world
        elif self.scope.kills:
            world, own = self.touched(index, "kills")
            world.kill(own)
            yield f"the process that was started ends at {name}", world

    def manager_steps(self, index: int, member: Member) -> Iterator[tuple[str, GroupWorld]]:
        if self.votes:
            yield from super().manager_steps(index, member)
        elif member.answer is not None:
            world, own = self.touched(index)
            world.answered(own)
            yield f"{member.name} gets the answer of the manager", world

    # --- what steps do ---------------------------------------------------------------------------------

    def kill(self, own: Member) -> None:
        """The process that was started ends."""
        if self.parts.two_processes:
            self.crash(own, False)
            if own.name == "A" and self.scope.voter:
                self.votes = self.leaves = False
            return
        self.doomed |= {own.name}
        if self.parts.proves_at_once:
            self.keep_proof(own)
        self.check()

    def end_broker(self, own: Member) -> None:
        """The guard ends the broker, and has seen its end."""
        self.keep_proof(own)
        self.crash(own, False)
        if own.name == "A" and self.parts.ends_voter_at_once:
            self.votes = self.leaves = False

    def keep_proof(self, own: Member) -> None:
        if isinstance(own.process, Active):
            self.proofs = (*self.proofs, (own.name, own.process.epoch))

    def prove(self, own: Member, epoch: int) -> None:
        process = own.process
        assert isinstance(process, Follower)
        process.on_ended(self.now(own), Ended(epoch))

    def renew(self, at: int, own: Member) -> None:
        """A follower answers a heartbeat of a broker that runs beside the next process of its member."""
        broker = copied(self.late[at])
        self.late = (*self.late[:at], broker, *self.late[at + 1 :])
        process = own.process
        assert isinstance(process, Follower)
        heartbeat = Heartbeat(broker.epoch, self.clocks[self.index(broker.name)], 0)
        for action in process.on_heartbeat(self.now(own), broker.name, heartbeat):
            if isinstance(action, Send) and isinstance(action.message, Answer):
                broker.on_answer(heartbeat.sent_ns, own.name, action.message)
        self.check()

    def crash(self, own: Member, lost: bool) -> None:
        super().crash(own, lost)
        self.doomed -= {own.name}
        self.leaves = self.leaves or (own.name == "A" and self.scope.voter and self.votes)

    # --- checks ----------------------------------------------------------------------------------------

    def check(self) -> None:
        super().check()
        late = [broker.name for broker in self.late if broker.serves(self.clocks[self.index(broker.name)])]
        serving = [
            each.name
            for each in self.members
            if isinstance(each.process, Active) and each.process.serves(self.now(each))
        ]
        if self.timed and not self.wrong and late and len(late) + len(serving) > 1:
            self.wrong = f"{' and '.join([*late, *serving])} serve"

    def healed(self) -> str:
        return self.copied().goes_on() or super().healed()

    def goes_on(self) -> str:
        """Lets everything happen that needs no time and no restart. Somebody serves then, if a follower could."""
        register = self.register
        killed = register.active in self.doomed or (register.active, register.epoch) in self.proofs
        if self.parts.two_processes:
            killed = self.members[self.index(register.active or "A")].process is None and not self.scope.kills
        able = [
            each.name
            for each in self.members
            if isinstance(each.process, Follower)
            and each.name not in self.doomed
            and each.name in register.in_sync
            and each.process.epoch == register.epoch
        ]
        if not killed or not able or self.left or self.other is not None:
            return ""
        for name in sorted(self.doomed):
            self.end_broker(self.own(self.index(name)))
        for _ in range(ROUNDS if self.votes else 0):
            for name in list(self.channels):
                while self.channels[name]:
                    self.deliver(name)
            for index in range(len(self.members)):
                if isinstance(self.members[index].process, Follower):
                    own = self.own(index)
                    for _, epoch in self.proofs:
                        self.prove(own, epoch)
                    self.heal_member(index)
        if not any(isinstance(each.process, Active) for each in self.members) and not self.wrong:
            return f"nobody serves, and {' and '.join(able)} could"
        return self.wrong

    def heal(self) -> str:
        for name in sorted(self.doomed):
            self.end_broker(self.own(self.index(name)))
        self.late = ()
        self.votes = True
        return super().heal()


def started(scope: GuardScope, parts: GuardParts) -> GuardedWorld:
    """Returns a world whose group is whole, with A active in epoch 1."""
    return begun(GuardedWorld(scope, parts))
