"""One question to the members of a cluster whether they have a message for a consumer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from atalanta.wire.core.client.reply import Reply

if TYPE_CHECKING:
    from atalanta.wire.core.client.member_consumer import MemberConsumer


class MemberTurn:
    """The question; it is over when a message is there, or when each member that can be asked has answered.

    `one_by_one`: with a window of 0. A member gets a credit for one message, which is withdrawn before the next member
    is asked, so that never more than one message comes. `ended` is called at the end.
    """

    def __init__(self, members: list[MemberConsumer], one_by_one: bool, ended: Callable[[], None]) -> None:
        self.one_by_one = one_by_one
        self.left: deque[MemberConsumer] = deque(members)  # to ask, one by one
        self.asked: dict[str, MemberConsumer] = {}  # without an answer
        self.over: bool = False
        self.ending: bool = False  # it asks no further member
        self._ended = ended
        self._waiting: list[Reply] = []
        self._cancelled: list[Reply] = []

    def begin(self) -> None:
        """Asks all members, or the first one."""
        if self.one_by_one:
            self._ask_next()
            return
        members = [each for each in self.left if each.open]
        self.left.clear()
        if any(each.consumer is not None and each.consumer.buffer for each in members):
            self.end()
            return
        for each in members:
            self.asked[each.node_id] = each
        for each in members:
            if each.consumer is not None:
                _then(each.consumer.available(), partial(self._answered, each))
        self._check()

    def again(self, members: list[MemberConsumer]) -> None:
        """Asks these members, too, for a call that came later: also those that have answered."""
        self.ending = False
        self.left.extend([each for each in members if each not in self.left])
        if not self.one_by_one:
            self.begin()

    def answer(self) -> Reply:
        """Returns a reply that is done when the turn is over."""
        reply = Reply()
        if self.over:
            reply.resolve(None)
        else:
            self._waiting.append(reply)
        return reply

    def end(self) -> None:
        """Ends the turn: nobody waits any longer."""
        if self.over:
            return
        self.over = True
        self._ended()
        for each in self._waiting + self._cancelled:
            each.resolve(None)

    def _answered(self, member: MemberConsumer, reply: Reply) -> None:
        if self.asked.pop(member.node_id, None) is None:
            return
        if member.consumer is not None and member.consumer.buffer:
            self.end()
        self._check()

    def _check(self) -> None:
        if not self.asked and not self.left:
            self.end()

    # -- one by one -----------------------------------------------------------------------------
    def _ask_next(self) -> None:
        while self.left:
            member = self.left.popleft()
            consumer = member.consumer
            if consumer is None or not member.open:
                continue
            if consumer.buffer:
                self.left.clear()
                break
            self.asked[member.node_id] = member
            consumer.want_one()
            _then(consumer.available(), partial(self._told, member))
            return
        self._check()

    def _told(self, member: MemberConsumer, reply: Reply) -> None:
        """Withdraws the credit of a member that has no message; one may have come on the way."""
        if member.node_id not in self.asked:
            return
        consumer = member.consumer
        withdrawn = None if consumer is None else consumer.withdraw()
        if withdrawn is None:
            self._passed(member, reply)
        else:
            _then(withdrawn, partial(self._passed, member))

    def _passed(self, member: MemberConsumer, reply: Reply) -> None:
        if self.asked.pop(member.node_id, None) is None:
            return
        cancelled, self._cancelled = self._cancelled, []
        if member.consumer is not None and member.consumer.buffer:
            self.left.clear()
        self._ask_next()
        for each in cancelled:
            each.resolve(None)

    # -- changes meanwhile ----------------------------------------------------------------------
    def joined(self, member: MemberConsumer) -> None:
        """Asks a member that came meanwhile, too, if the members are asked one by one."""
        if self.one_by_one and not self.ending and member.node_id not in self.asked and member not in self.left:
            self.left.append(member)

    def gone(self, node_id: str) -> None:
        """Does not wait for a member that is away now."""
        member = self.asked.get(node_id)
        if member is None:
            return
        reply = Reply()
        if not self.one_by_one:
            self._answered(member, reply)
            return
        if member.consumer is not None:
            member.consumer.withdraw()  # otherwise it would get a credit when it is back
        self._passed(member, reply)

    def found(self) -> None:
        """Asks no further member one by one: a message has come."""
        if self.one_by_one:
            self.ending = True
            self.left.clear()

    def cancel(self) -> Reply | None:
        """Asks no further member. Returns the reply that is done when the one that was asked can send nothing more."""
        self.ending = True
        self.left.clear()
        if not self.asked:
            self.end()
            return None
        reply = Reply()
        self._cancelled.append(reply)
        return reply


def _then(reply: Reply, call: partial[None]) -> None:
    if reply.done:
        call(reply)
    else:
        reply.on_done = call
