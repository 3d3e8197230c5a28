"""The active state of a member: it appends, streams the journal, and moves the commit point."""

from __future__ import annotations

from atalanta.ha.lease import ActiveLease
from atalanta.ha.register import MEMBERS_MAX, Register, add_member, remove_member
from atalanta.ha.replication.epoch_table import EpochTable, cut_table
from atalanta.ha.replication.follower import Follower
from atalanta.ha.replication.messages import (
    Action,
    Answer,
    Block,
    Confirm,
    Ended,
    HandOver,
    Heartbeat,
    Offer,
    Send,
    Stop,
)


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
        self.lease = ActiveLease(follower.terms)
        self.answered: dict[str, int] = {}  # durable lsn in this epoch, by follower
        self.cursors: dict[str, int] = {}  # last lsn sent, by follower whose journal agrees
        self.progress_ns: dict[str, int] = {}
        self.began_ns = now
        self.joining: list[str] = []
        self.successor: str = ""
        self.stopped: str = ""

    # --- service --------------------------------------------------------------------------------------------

    def serves(self, now: int) -> bool:
        """Returns whether a batch of deliveries may leave at `now`: only records up to `commit` count."""
        if self.stopped or self.successor:
            return False
        return self.lease.holds(now, self.required())

    def accepts(self) -> bool:
        """Returns whether records may be appended."""
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
