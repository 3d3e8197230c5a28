"""Replication of the journal: the active node streams blocks, followers store them, and the commit point follows.

A journal is a sequence of records with ascending lsn. The active node appends, and sends every block to its
followers when it gives it to its own disk. Each follower answers what is durable. The commit point is the lowest of
these answers and of the own durable lsn, over all required members. Up to the commit point, and no further, the node
confirms, delivers, forwards over bridges, compacts and deletes.

Required is every member that might be in the in-sync set: as the register is known, as a write of unknown outcome
would make it, and those that are about to be added. So a member is required before the register adds it, and until
its removal is known.

An epoch begins with its own entry in the epoch table: (epoch, first lsn). Only one process appends in an epoch. So
two journals are equal up to the end of their last common epoch, and what a returning member has beyond that is cut:
it was never confirmed, unless an operator forced an epoch.

`Follower` and `Active` are the two states of a member. Their methods take the time and return actions, in order. A
shell executes them, and makes a new `Follower` from the recovered journal when an `Active` has stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from atalanta.ha.lease import Lease, LeaseTerms, Promise
from atalanta.ha.register import (
    MEMBERS_MAX,
    CompareAndSet,
    Read,
    Register,
    RegisterView,
    add_member,
    hand_over,
    promote,
    remove_member,
    take_over,
)

# (epoch, lsn of its first record), ascending in both.
EpochTable: TypeAlias = tuple[tuple[int, int], ...]


# --- messages between members ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Offer:
    """Begins a stream: the epoch table of the active node's journal, its last lsn, and the commit point.

    `lease_ns` is the length of the lease that the active node counts. A follower keeps it before it answers a
    heartbeat.
    """

    epoch: int
    table: EpochTable
    last: int
    commit: int
    forced_epoch: int
    lease_ns: int


@dataclass(frozen=True)
class Block:
    """One block of the journal, records `first` to `last`; the shell sends the bytes with it."""

    epoch: int
    first: int
    last: int
    commit: int


@dataclass(frozen=True)
class Heartbeat:
    """The request for a lease, sent at `sent_ns` of the active node's clock."""

    epoch: int
    sent_ns: int
    commit: int


@dataclass(frozen=True)
class HandOver:
    """The active node has stopped for good at `lsn`, every required member has that, and this is the register."""

    epoch: int
    lsn: int
    version: int
    register: Register


@dataclass(frozen=True)
class Ended:
    """The active process of `epoch` serves no more. It says so itself, or a guard that has seen its end."""

    epoch: int


@dataclass(frozen=True)
class Answer:
    """A follower's state: last stored lsn, durable lsn; `sent_ns` of the answered heartbeat, or -1."""

    epoch: int
    last: int
    durable: int
    sent_ns: int


@dataclass(frozen=True)
class Refusal:
    """The follower does not follow this stream; `epoch` is the highest one that it knows."""

    epoch: int


Message: TypeAlias = Offer | Block | Heartbeat | HandOver | Ended | Answer | Refusal


# --- actions for the shell --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Send:
    """Sends a message to a member."""

    member: str
    message: Message


@dataclass(frozen=True)
class Store:
    """Appends the received records to the journal and syncs them; `Follower.on_durable` follows."""

    first: int
    last: int


@dataclass(frozen=True)
class Cut:
    """Cuts the journal behind `lsn`, before the next action. The bytes are kept aside and reported.

    `confirmed`: some of them may have been confirmed, because an operator promoted a member that lacked them.
    """

    lsn: int
    confirmed: bool


@dataclass(frozen=True)
class Confirm:
    """Answers everything that waits for an lsn up to this one."""

    lsn: int


@dataclass(frozen=True)
class Activate:
    """Makes an `Active` of this follower: it has begun `epoch`."""

    epoch: int


@dataclass(frozen=True)
class Stop:
    """Ends all service at once: no confirmation, no delivery, no bridge."""

    why: str


Action: TypeAlias = Send | Store | Cut | Confirm | Activate | Stop | Read | CompareAndSet


# --- epoch tables ------------------------------------------------------------------------------------------


def cut_table(table: EpochTable, last: int) -> EpochTable:
    """Returns the epochs of a journal that ends with lsn `last`."""
    return tuple(entry for entry in table if entry[1] <= last)


def epoch_end(table: EpochTable, epoch: int, last: int) -> int:
    """Returns the last lsn of `epoch` in a journal that ends with lsn `last`; 0 without that epoch."""
    for index, entry in enumerate(table):
        if entry[0] == epoch:
            return table[index + 1][1] - 1 if index + 1 < len(table) else last
    return 0


def agreement(own: EpochTable, own_last: int, other: EpochTable, other_last: int) -> int:
    """Returns the lsn up to which two journals are equal: the earlier end of their last common epoch, 0 without one."""
    for epoch, _ in reversed(own):
        end = min(epoch_end(own, epoch, own_last), epoch_end(other, epoch, other_last))
        if end > 0:
            return end
    return 0


# --- the two states of a member ------------------------------------------------------------------------------


class Follower:
    """A passive member: stores the blocks of the active node and answers what is durable. Or it asks to take over.

    It follows nobody before it has read the register, and no epoch below the highest that it knows.
    """

    def __init__(
        self,
        name: str,
        view: RegisterView,
        terms: LeaseTerms,
        now: int,
        table: EpochTable,
        last: int,
        granted_ns: int = 0,
    ) -> None:
        """`table` and `last` describe the recovered journal, all of which is durable. `granted_ns` is the length that
        the last offer had which an earlier life has accepted."""
        self.name = name
        self.view = view
        self.terms = terms
        self.promise = Promise(terms, now, granted_ns)
        self.table = table
        self.last = last
        self.durable = last
        self.commit: int = 0
        self.epoch: int = 0  # the epoch that it follows; 0 = none
        self.active: str = ""  # the active node of that epoch
        self.seen: int = table[-1][0] if table else 0  # the highest epoch that it knows
        self.asked: Register | None = None  # the takeover whose outcome is unknown
        self.ended: int = 0  # the epoch whose process serves no more: late heartbeats of it renew no promise

    # --- the stream -----------------------------------------------------------------------------------------

    def on_offer(self, now: int, sender: str, offer: Offer) -> list[Action]:
        """Begins to follow the sender, and cuts what its journal does not have."""
        if self.asked is not None:
            return []
        if self.view.known is None:
            return [Read(), Send(sender, Refusal(0))]
        if offer.epoch < self.seen:
            return [Send(sender, Refusal(self.seen))]
        own = cut_table(self.table, self.last)
        end = agreement(own, self.last, offer.table, offer.last)
        actions: list[Action] = []
        if end < self.last:
            kept = cut_table(own, end)
            actions.append(Cut(end, offer.forced_epoch > (kept[-1][0] if kept else 0)))
            self.last = end
            self.durable = min(self.durable, end)
            self.commit = min(self.commit, end)
        self.table = offer.table
        self.epoch = self.seen = offer.epoch
        self.active = sender
        self.promise.grant(offer.lease_ns)
        self.commit = max(self.commit, offer.commit)
        actions.append(self._answer(-1))
        if self.view.known.epoch < offer.epoch:
            actions.append(Read())
        return actions

    def takes(self, block: Block) -> bool:
        """Tells whether a block continues the journal. An empty one may begin anywhere: its beginning was deleted."""
        if self.asked is not None or block.epoch != self.epoch:
            return False
        return block.first == self.last + 1 or self.last == 0

    def on_block(self, now: int, sender: str, block: Block) -> list[Action]:
        """Stores a block that follows the last one. Refuses a gap and another epoch: the stream begins again."""
        if self.asked is not None:
            return []
        if not self.takes(block):
            return [Send(sender, Refusal(self.seen))]
        self.last = block.last
        self.commit = max(self.commit, block.commit)
        return [Store(block.first, block.last)]

    def on_emptied(self) -> None:
        """Records that the journal was deleted: after a jump of the stream, or by a cut before its first record.

        The member is not in sync then: for one that is, nothing is deleted that it has not replaced.
        """
        self.last = 0
        self.durable = 0

    def on_durable(self, now: int, lsn: int) -> list[Action]:
        """Records that everything up to `lsn` is on the disk."""
        self.durable = max(self.durable, min(lsn, self.last))
        if self.epoch == 0 or self.asked is not None:
            return []
        return [self._answer(-1)]

    def on_heartbeat(self, now: int, sender: str, heartbeat: Heartbeat) -> list[Action]:
        """Promises not to take over for a while, and answers. A member that has asked to take over is silent."""
        if self.asked is not None:
            return []
        if heartbeat.epoch != self.epoch:
            return [Send(sender, Refusal(self.seen))]
        if heartbeat.epoch != self.ended:
            self.promise.renew(now)
        self.commit = max(self.commit, heartbeat.commit)
        return [self._answer(heartbeat.sent_ns)]

    def _answer(self, sent_ns: int) -> Send:
        return Send(self.active, Answer(self.epoch, self.last, self.durable, sent_ns))

    def deletable(self) -> int:
        """Returns the lsn up to which records may cause deletions: nothing of it can be cut or lost."""
        return min(self.commit, self.durable)

    # --- taking over ------------------------------------------------------------------------------------------

    def may_ask(self) -> bool:
        """Tells whether no request of this member has an unknown outcome."""
        return self.asked is None and self.view.pending is None

    def take_over(self, now: int) -> list[Action]:
        """Asks to become active if the member is in sync and its promise is over.

        The shell calls it on suspicion, after it has read the register. From here on the member follows nobody, until
        the register shows that the write can no longer succeed.
        """
        known = self.view.known
        if self.asked is not None or known is None or self.name not in known.in_sync:
            return []
        # Alone in the set, the only process that could serve was an earlier life of this one.
        alone = known.in_sync == (self.name,)
        if self.durable < self.last or not (alone or self.promise.is_over(now)):
            return []
        return self._ask(take_over(known, self.name, self.view.token()))

    def on_ended(self, now: int, message: Ended) -> None:
        """Ends the promise to a process that serves no more. A broken connection is no proof of that."""
        if message.epoch == self.epoch:
            self.ended = message.epoch
            self.promise.release()

    def on_hand_over(self, now: int, message: HandOver) -> list[Action]:
        """Takes over from the active node at its request; the in-sync set stays as it is."""
        if self.asked is not None or message.epoch != self.epoch or self.durable != message.lsn:
            return []
        self.view.on_read(message.version, message.register)
        known = self.view.known
        if known is None or known.epoch != message.epoch:
            return []
        self.ended = message.epoch
        self.promise.release()
        return self._ask(hand_over(known, self.name, self.view.token()))

    def promote(self, now: int) -> list[Action]:
        """Asks to become active at an operator's order, in sync or not. The operator vouches that no other serves."""
        if self.asked is not None or self.durable < self.last:
            return []
        return self._ask(promote(self.view.known, self.name, self.seen, self.view.token()))

    def _ask(self, value: Register) -> list[Action]:
        self.asked = value
        self.epoch = 0
        return [self.view.write(value)]

    # --- answers of the manager ---------------------------------------------------------------------------------

    def on_register(self, now: int, version: int, register: Register) -> list[Action]:
        """Records the answer of the manager to a read or to a write that has succeeded."""
        self.view.on_read(version, register)
        known = self.view.known
        if known is None:
            return []
        self.seen = max(self.seen, known.epoch)
        if self.epoch < self.seen:
            self.epoch = 0
        asked = self.asked
        if asked is None:
            return []
        repeated = self.view.repeated()
        if repeated is not None:
            return [repeated]
        self.asked = None
        return [Activate(known.epoch)] if known.token == asked.token else []


class Active:
    """The active member of one epoch: appends, streams, and moves the commit point.

    `stopped` says why it ended, "" before. `confirmed` is the commit point, as far as `min_in_sync` members have it.
    """

    def __init__(
        self,
        follower: Follower,
        now: int,
        drop_after_ns: int,
        min_in_sync: int = 1,
    ) -> None:
        register = follower.view.known
        if register is None or register.active != follower.name:
            raise AssertionError(f"{follower.name} has not taken over")
        self.name = follower.name
        self.view = follower.view
        self.min_in_sync = min_in_sync
        self.asynchronous: list[str] = []  # followers that are never required
        self.drop_after_ns = drop_after_ns
        self.epoch = register.epoch
        self.table: EpochTable = (
            *cut_table(follower.table, follower.last), (register.epoch, follower.last + 1),
        )  # fmt: skip
        self.last = follower.last
        self.durable = follower.durable
        # After a handover every member has everything; after a takeover the node is alone.
        self.commit: int = follower.last
        self.confirmed: int = 0
        self.lease = Lease(follower.terms)
        self.answered: dict[str, int] = {}  # durable lsn in this epoch, by follower
        self.cursors: dict[str, int] = {}  # last lsn sent, by follower whose journal agrees
        self.progress_ns: dict[str, int] = {}
        self.began_ns = now
        self.joining: list[str] = []
        self.successor: str = ""
        self.stopped: str = ""

    # --- service --------------------------------------------------------------------------------------------

    def serves(self, now: int) -> bool:
        """Tells whether a batch of deliveries may leave at `now`: only records up to `commit` count."""
        if self.stopped or self.successor:
            return False
        return self.lease.holds(now, self.required())

    def accepts(self) -> bool:
        """Tells whether records may be appended."""
        return not self.stopped and not self.successor

    def required(self) -> list[str]:
        """Returns the members whose answers are required, without the own name, sorted."""
        names = self.view.possible_members()
        names += [name for name in self.joining if name not in names]
        return sorted(name for name in names if name != self.name)

    def deletable(self) -> int:
        """Returns the lsn up to which records may cause deletions. What is above may be cut."""
        return self.commit

    def on_append(self, now: int, lsn: int) -> None:
        """Records that the own journal has records up to `lsn`."""
        if not self.accepts():
            raise AssertionError(f"an append after the end of service: {self.stopped}")
        self.last = lsn

    def on_durable(self, now: int, lsn: int) -> list[Action]:
        """Records that the own disk has everything up to `lsn`."""
        self.durable = max(self.durable, lsn)
        return self._advance()

    def _advance(self) -> list[Action]:
        """Moves the commit point as far as the required answers allow, and hands over once that is everything."""
        if self.stopped:
            return []
        point = self.durable
        for member in self.required():
            point = min(point, self.answered.get(member, 0))
        self.commit = max(self.commit, point)
        actions: list[Action] = []
        if self.commit > self.confirmed and self.view.certain_members() >= self.min_in_sync:
            self.confirmed = self.commit
            actions.append(Confirm(self.commit))
        known = self.view.known
        if self.successor and known is not None and point == self.last and self.view.pending is None:
            message = HandOver(self.epoch, self.last, self.view.version, known)
            actions.append(self._stop(f"handed over to {self.successor}"))
            actions.append(Send(self.successor, message))
        return actions

    def _stop(self, why: str) -> Stop:
        self.stopped = why
        return Stop(why)

    # --- the stream -----------------------------------------------------------------------------------------

    def offer(self, member: str) -> Send:
        """Begins a stream to `member` on a new connection."""
        known = self.view.known
        forced_epoch = known.forced_epoch if known is not None else 0
        self.cursors.pop(member, None)
        length_ns = self.lease.terms.length_ns
        return Send(member, Offer(self.epoch, self.table, self.last, self.commit, forced_epoch, length_ns))

    def unsent(self, member: str) -> int:
        """Returns the lsn of the first record to send to `member` next; 0 if there is none or it has not agreed yet."""
        cursor = self.cursors.get(member, self.last)
        return cursor + 1 if cursor < self.last and not self.stopped else 0

    def block(self, member: str, last: int) -> Send:
        """Sends the records from `unsent` to `last`, which are one block or a few."""
        first = self.unsent(member)
        self.cursors[member] = last
        return Send(member, Block(self.epoch, first, last, self.commit))

    def jump(self, member: str, first: int) -> None:
        """Records that the stream goes on with the block of record `first`: the follower's journal begins there."""
        self.cursors[member] = first - 1

    def on_disconnected(self, now: int, member: str) -> None:
        """Records that the stream to `member` ended; what it has answered stays answered."""
        self.cursors.pop(member, None)

    def on_answer(self, now: int, member: str, answer: Answer) -> list[Action]:
        """Records what `member` has, and that it has promised not to take over if a heartbeat was answered."""
        if answer.epoch != self.epoch or self.stopped:
            return []
        if answer.sent_ns >= 0:
            self.lease.on_answer(member, answer.sent_ns)
        if member not in self.cursors:
            self.cursors[member] = answer.last
        before = self.answered.get(member, -1)
        if answer.durable > before or answer.durable == self.last:
            self.progress_ns[member] = now
        self.answered[member] = max(before, answer.durable)
        return self._advance() + self._admit(now)

    def on_refusal(self, now: int, member: str, epoch: int) -> list[Action]:
        """Records that `member` does not follow, or any message of a higher epoch, which ends this one."""
        self.cursors.pop(member, None)
        if epoch > self.epoch and not self.stopped:
            return [self._stop(f"{member} has epoch {epoch}, this was {self.epoch}")]
        return []

    def on_tick(self, now: int) -> list[Action]:
        """Asks the followers for a lease. Begins to remove a required member that makes no progress. Call it often."""
        if self.stopped:
            return []
        actions: list[Action] = []
        for member in sorted(self.cursors):
            actions.append(Send(member, Heartbeat(self.epoch, now, self.commit)))
        silent = self.silent(now)
        for member in self.required():
            if member in silent or member in self.asynchronous:
                return actions + self.drop(now, member)
        return actions

    def silent(self, now: int) -> list[str]:
        """Returns the required members that make no progress: without them nothing is confirmed or delivered."""
        since = now - self.drop_after_ns
        return [member for member in self.required() if self.progress_ns.get(member, self.began_ns) <= since]

    # --- the in-sync set --------------------------------------------------------------------------------------

    def set_asynchronous(self, member: str, asynchronous: bool) -> None:
        """Records whether `member` follows without being required: it never joins.

        `on_tick` removes one that is in the in-sync set, because it has served, or was not asynchronous before.
        """
        if not asynchronous and member in self.asynchronous:
            self.asynchronous.remove(member)
        elif asynchronous and member not in self.asynchronous:
            self.asynchronous.append(member)
            if member in self.joining:
                self.joining.remove(member)

    def join(self, now: int, member: str) -> list[Action]:
        """Requires the answers of a follower that has caught up, and adds it to the register when it has everything."""
        known = self.view.known
        if known is None or not self.accepts() or member not in self.answered:
            return []
        if member in known.in_sync or member in self.asynchronous:
            return []
        if member not in self.joining:
            if len(self.required()) + 2 > MEMBERS_MAX:
                return []
            self.joining.append(member)
        return self._admit(now)

    def _admit(self, now: int) -> list[Action]:
        known = self.view.known
        if known is None or self.view.pending is not None or not self.accepts():
            return []
        for member in self.joining:
            if self.answered.get(member, -1) >= self.commit and self.lease.holds(now, [member]):
                value = add_member(known, self.name, member, self.view.token())
                return [self.view.write(value)]
        return []

    def drop(self, now: int, member: str) -> list[Action]:
        """Begins to remove a member. It stays required until the register is known to be without it."""
        known = self.view.known
        if known is None or self.stopped:
            return []
        if member in self.view.possible_members():
            if self.view.pending is not None:
                return []
            return [self.view.write(remove_member(known, self.name, member, self.view.token()))]
        if member in self.joining:
            self.joining.remove(member)
        return self._advance()

    def hand_over(self, now: int, successor: str) -> list[Action]:
        """Ends the appends, and stops once every required member has everything. `successor` then takes over."""
        known = self.view.known
        if known is None or not self.accepts() or successor not in known.in_sync or successor in self.asynchronous:
            return []
        self.joining.clear()
        self.successor = successor
        return self._advance()

    def resign(self, now: int, why: str) -> list[Action]:
        """Stops for good, for example because the own disk hangs. A follower may then take over at once, alone."""
        if self.stopped:
            return []
        return [self._stop(why), *[Send(member, Ended(self.epoch)) for member in sorted(self.cursors)]]

    def on_register(self, now: int, version: int, register: Register) -> list[Action]:
        """Records the answer of the manager to a read or to a write that has succeeded."""
        self.view.on_read(version, register)
        known = self.view.known
        if known is None or self.stopped:
            return []
        if known.epoch != self.epoch:
            return [self._stop(f"{known.active} has epoch {known.epoch}, this was {self.epoch}")]
        repeated = self.view.repeated()
        if repeated is not None:
            return [repeated]
        self.joining = [name for name in self.joining if name not in known.in_sync]
        if self.successor not in known.in_sync:
            self.successor = ""  # it was dropped: the service goes on
        return self._advance() + self._admit(now)
