"""The passive state of a member: it stores the journal of the active node, or asks to take over."""

from __future__ import annotations

from atalanta.ha.lease import LeaseTerms, Promise
from atalanta.ha.register import Read, Register, RegisterView, hand_over, promote, take_over
from atalanta.ha.replication.epoch_table import EpochTable, agreement, cut_table
from atalanta.ha.replication.messages import (
    Action,
    Activate,
    Answer,
    Block,
    Cut,
    Ended,
    HandOver,
    Heartbeat,
    Offer,
    Refusal,
    Send,
    Store,
)


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
        """Returns whether a block continues the journal. An empty one may begin anywhere: its beginning was deleted."""
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
        """Returns whether no request of this member has an unknown outcome."""
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
