"""A consumer of one queue at all members of a cluster: one consumer at each active member that has the queue.

It has the methods of a ClientConsumer, and no I/O: a MemberPort dials the members and keeps the time. `topology` names
the members. A member that is not named any longer is given up when its connection ends too, so that another member's
lost link costs nothing. A member is asked again for a queue that is missing; none is created.

The window is one budget: each member has an equal share. With a window of 0 the members are asked in turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from mypy_extensions import mypyc_attr

from atalanta.wire.core.client.consumer import UNLIMITED, Delivery
from atalanta.wire.core.client.errors import (
    BrokerRefused,
    ClientError,
    Closed,
    ConnectionLost,
    QueueDoesNotExist,
    error_of,
)
from atalanta.wire.core.client.large_message import BodySink
from atalanta.wire.core.client.member_consumer import (
    ASKED,
    CONSUMES,
    MISSING,
    REFUSED,
    MemberConsumer,
)
from atalanta.wire.core.client.member_turn import MemberTurn
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.client.topology import Member

MILLISECOND_NS: Final = 1_000_000
SECOND_NS: Final = 1_000 * MILLISECOND_NS
ASK_NS: Final = SECOND_NS  # between two questions for a queue that a member has not
REFUSED_NS: Final = 5 * SECOND_NS
TURN_NS: Final = 10 * MILLISECOND_NS  # between two turns without a message; doubled up to
TURN_MAX_NS: Final = 200 * MILLISECOND_NS
NO_QUEUE: Final = 100
NOT_CONNECTED: Final = 4


@mypyc_attr(allow_interpreted_subclasses=True)
class MemberPort:
    """The connections to the members, and the time."""

    def dial(self, member: Member) -> ClientSession:
        """Returns a session at a member, which is dialled until `hang_up`, and again after each loss."""
        raise NotImplementedError

    def hang_up(self, node_id: str) -> None:
        """Ends the connection to a member."""
        raise NotImplementedError

    def later(self, delay_ns: int, call: Callable[[], None]) -> None:
        """Makes a call after that time."""
        raise NotImplementedError

    def warn(self, text: str) -> None:
        """Tells the operator."""
        raise NotImplementedError


class MemberConsumers:
    """The consumers at the members. `opened` is done when each member of the first topology was asked or is away.

    `cumulative`: an acknowledgement counts, at each member, for all that came from it before.
    """

    def __init__(
        self,
        port: MemberPort,
        queue: str,
        selector: str | None = None,
        browse_only: bool = False,
        priority: int = 0,
        window: int = 1 << 20,
        cumulative: bool = False,
        pre_acknowledged: bool = False,
        sinks: Callable[[], BodySink] | None = None,
    ) -> None:
        self.port = port
        self.queue = queue
        self.selector = selector
        self.browse_only = browse_only
        self.priority = priority
        self.window = window
        self.pre_acknowledged = pre_acknowledged
        self.sinks = sinks
        self.opened: Reply = Reply()
        self.closed: bool = False
        self.failed: ClientError | None = None
        self.members: dict[str, MemberConsumer] = {}
        self._named: dict[str, Member] = {}  # the last topology
        self._dialled: dict[str, Member] = {}
        self._away: dict[str, bool] = {}  # not reached, or lost
        self._waiter: Reply | None = None
        self._turn: MemberTurn | None = None
        self._turn_pause_ns: int = TURN_NS
        self._pausing: bool = False
        self._cumulative = cumulative and not browse_only and not pre_acknowledged  # otherwise nobody acknowledges
        self._given: dict[str, deque[tuple[int, Delivery]]] = {}  # to acknowledge with later ones, by member
        self._count: int = 0
        self._next: int = 0  # the member that is looked at first
        self._warned: dict[str, bool] = {}

    # -- members --------------------------------------------------------------------------------
    def topology(self, members: Iterable[Member]) -> None:
        """Takes the members of the cluster, as they are now."""
        if self.failed is not None:
            return
        self._named = {each.node_id: each for each in members if each.host is not None}
        for node_id in list(self.members):
            self._check_member(node_id)
        for node_id, member in self._named.items():
            if node_id not in self.members:
                self._dial(member)
        self._check_opened()

    def _dial(self, member: Member) -> None:
        node_id = member.node_id
        self._dialled[node_id] = member
        self.members[node_id] = MemberConsumer(self, node_id, self.port.dial(member))
        self._resize()

    def _check_member(self, node_id: str) -> None:
        """Gives up a member without a connection that is not named any longer, or has moved to other addresses."""
        member = self.members[node_id]
        if member.session.open and not member.elsewhere:
            return
        named = self._named.get(node_id)
        if named is not None and _addresses(named) == _addresses(self._dialled[node_id]):
            return  # also if it refused the login: it is dialled again after a pause
        self._hang_up(node_id)

    def _hang_up(self, node_id: str) -> None:
        member = self.members.pop(node_id)
        member.leave(ConnectionLost(f"the message is back in its queue: member {node_id} was given up", NOT_CONNECTED))
        self._dialled.pop(node_id, None)
        self._away.pop(node_id, None)
        self._given.pop(node_id, None)
        self.port.hang_up(node_id)
        self._resize()
        self._forget_turn(node_id)

    def lost(self, node_id: str) -> None:
        """Records that a member could not be reached, or that the connection to it ended."""
        if node_id not in self.members:
            return
        self._away[node_id] = True
        self._given.pop(node_id, None)  # the member delivers them again
        self._forget_turn(node_id)
        self.port.later(0, self._look_again)  # after the engine has recorded the loss
        self._check_opened()

    def _look_again(self) -> None:
        self.topology(list(self._named.values()))

    def settled(self, member: MemberConsumer) -> None:
        """Records a member's answer: it consumes, has no such queue, or refuses."""
        self._away.pop(member.node_id, None)
        if member.state in (MISSING, REFUSED):
            self._forget_turn(member.node_id)
            pause_ns = ASK_NS if member.state == MISSING else REFUSED_NS
            self.port.later(pause_ns, partial(self._ask_again, member))
            if self.opened.done and member.why is not None:
                self._warn(f"{self._place(member)}: {member.why.text}")
        elif self._turn is not None:
            self._turn.joined(member)
        self._resize()
        self._check_opened()
        self.arrived()

    def _ask_again(self, member: MemberConsumer) -> None:
        if self.members.get(member.node_id) is not member:
            return
        if member.session.closed:  # its login was refused
            self._hang_up(member.node_id)
            self._look_again()
        else:
            member.ask()

    def _warn(self, text: str) -> None:
        """Tells each thing once."""
        if text not in self._warned and len(self._warned) < 1_000:
            self._warned[text] = True
            self.port.warn(text)

    def _check_opened(self) -> None:
        """Resolves `opened` when each member has answered, or was not reached."""
        if self.opened.done or not self.members:
            return
        states = [each.state for each in self.members.values() if each.node_id not in self._away]
        if ASKED in states:
            return
        for each in self.members.values():
            why = each.why
            if why is not None:
                refused = isinstance(why, BrokerRefused)
                self.opened.fail(error_of(why.code, f"{self._place(each)}: {why.text}") if refused else why)
                return
        if CONSUMES in states:
            self.opened.resolve(None)
            return
        away = len(self._away)
        also = f"; {away} of {len(self.members)} members could not be asked" if away else ""
        self.opened.fail(QueueDoesNotExist(f"queue {self.queue} exists at no member of the cluster{also}", NO_QUEUE))

    def _place(self, member: MemberConsumer) -> str:
        dialled = self._dialled[member.node_id]
        return f"member {member.node_id} at {dialled.host}:{dialled.port}"

    def open_by_now(self) -> None:
        """Ends the wait for members that have not answered."""
        for each in self.members.values():
            if each.state == ASKED:
                self._away[each.node_id] = True
        self._check_opened()

    # -- the window -----------------------------------------------------------------------------
    def share(self) -> int:
        """Returns the window of each consumer, in bytes: an equal share of the budget."""
        if self.window <= 0:
            return self.window
        having = sum(each.state in (ASKED, CONSUMES) for each in self.members.values())
        return max(1, self.window // max(1, having))

    def _resize(self) -> None:
        if self.window in (0, UNLIMITED):
            return
        share = self.share()
        for each in self.members.values():
            if each.consumer is not None:
                each.consumer.resize(share)

    # -- taking ---------------------------------------------------------------------------------
    @property
    def delivered(self) -> int:
        """Returns the number of messages received so far, redeliveries included."""
        return self._count + self.buffered

    @property
    def buffered(self) -> int:
        """Returns the number of messages received and not yet taken."""
        return sum(len(each.consumer.buffer) for each in self.members.values() if each.consumer is not None)

    def take(self) -> Delivery | None:
        """Returns the next message, or None. The members are looked at in turn; each one's messages are in order."""
        members = list(self.members.values())
        for step in range(len(members)):
            index = (self._next + step) % len(members)
            member = members[index]
            if member.consumer is None:
                continue
            delivery = member.consumer.take()
            if delivery is not None:
                self._next = index + 1
                self._turn_pause_ns = TURN_NS
                self._count += 1
                if self._cumulative:
                    self._given.setdefault(member.node_id, deque()).append((self._count, delivery))
                return delivery
        return None

    def arrived(self) -> None:
        """Wakes who waits for a message, if there is one or none can come."""
        buffered = self.buffered
        if buffered and self._turn is not None:
            self._turn.found()
        waiter = self._waiter
        if waiter is not None and (buffered or self.failed is not None):
            self._waiter = None
            waiter.resolve(None)

    def arrival(self) -> Reply:
        """Returns a reply that is done when a message is there, or no more can come.

        All waits share it. With a window of 0 the end of one of them, by `withdraw`, is the end of all.
        """
        reply = self._waiter
        if reply is None:
            reply = Reply()
            if self.buffered or self.failed is not None:
                reply.resolve(None)
            else:
                self._waiter = reply
        if not reply.done and self.window == 0:
            self._go_round()
        return reply

    def _go_round(self) -> None:
        """Asks the members in turn until a message is there, or nobody waits any longer."""
        if self._waiter is None or self.failed is not None:
            return
        turn = self._turn
        if turn is None:
            self._begin_turn()
        elif turn.ending:
            turn.again(self._in_turn())  # of an earlier wait: never are two members asked

    def _turn_ended(self) -> None:
        self._turn = None
        self.arrived()
        if self.window == 0 and self._waiter is not None and not self._pausing:
            self._pausing = True
            pause_ns = self._turn_pause_ns
            self._turn_pause_ns = min(2 * pause_ns, TURN_MAX_NS)
            self.port.later(pause_ns, self._paused)

    def _paused(self) -> None:
        self._pausing = False
        self._go_round()

    def _in_turn(self) -> list[MemberConsumer]:
        """Returns the members, from the one that is looked at first."""
        members = list(self.members.values())
        first = self._next % max(1, len(members))
        return members[first:] + members[:first]

    def _begin_turn(self) -> MemberTurn:
        turn = self._turn = MemberTurn(self._in_turn(), self.window == 0, self._turn_ended)
        turn.begin()
        return turn

    def available(self) -> Reply:
        """Returns a reply that is done when a message is there, or once no member that can be asked has one."""
        if self.failed is not None:
            refused = Reply()
            refused.fail(self.failed)
            return refused
        turn = self._turn
        if turn is None:
            turn = self._begin_turn()
        else:
            turn.again(self._in_turn())
        return turn.answer()

    def want_one(self) -> None:
        """Does nothing: `arrival` and `available` ask the members."""

    def withdraw(self) -> Reply | None:
        """Ends the waits with a window of 0. The reply is done when no message can come any more; None if none can."""
        if self.window != 0:
            return None
        self._waiter = None
        return None if self._turn is None else self._turn.cancel()

    def _forget_turn(self, node_id: str) -> None:
        """Records that a member cannot answer: nobody waits for it."""
        if self._turn is not None:
            self._turn.gone(node_id)

    # -- acknowledging --------------------------------------------------------------------------
    def acknowledge_one(self, delivery: Delivery) -> None:
        delivery.consumer.acknowledge_one(delivery)

    def acknowledge_through(self, delivery: Delivery, batch_bytes: int) -> None:
        """Acknowledges, at each member, what came from it up to this message."""
        for each in self._through(delivery):
            each.consumer.acknowledge_through(each, batch_bytes)

    def acknowledge_and_wait(self, delivery: Delivery, individual: bool) -> Reply:
        """Returns a reply that is done when each member has acknowledged; it fails if one has taken a message back."""
        if individual:
            return delivery.consumer.acknowledge_and_wait(delivery, True)
        return _all_of([each.consumer.acknowledge_and_wait(each, False) for each in self._through(delivery)])

    def _through(self, delivery: Delivery) -> list[Delivery]:
        """Returns the last message of each member up to this one, and forgets those before."""
        if not self._cumulative:
            return [delivery]  # the program acknowledges each message before the next one
        number = self._number_of(delivery)
        if number < 0:
            return [delivery]  # acknowledged already, or its member is gone
        last: list[Delivery] = []
        for given in self._given.values():
            newest: Delivery | None = None
            while given and given[0][0] <= number:
                newest = given.popleft()[1]
            if newest is not None and not newest.lost:
                last.append(newest)
        return last

    def _number_of(self, delivery: Delivery) -> int:
        for given in self._given.values():
            for number, each in given:
                if each is delivery:
                    return number
        return -1

    def _member_of(self, delivery: Delivery) -> MemberConsumer | None:
        for each in self.members.values():
            if each.consumer is delivery.consumer:
                return each
        return None

    def node_id_of(self, delivery: Delivery) -> str:
        """Returns the node id of the member that a message came from; "" if it is gone."""
        member = self._member_of(delivery)
        return "" if member is None else member.node_id

    def settles(self, delivery: Delivery) -> bool:
        """Returns whether the message's member understands `settle`, or is gone: then `settle` fails by itself."""
        member = self._member_of(delivery)
        return member is None or member.settles

    def settle(self, delivery: Delivery, reject: bool, delay_ms: int) -> Reply:
        """Gives a message back. A later cumulative acknowledgement does not count for it: it may be here again."""
        for node_id, given in self._given.items():
            self._given[node_id] = deque([entry for entry in given if entry[1] is not delivery])
        return delivery.consumer.settle(delivery, reject, delay_ms)

    # -- end ------------------------------------------------------------------------------------
    def fail(self, error: ClientError) -> None:
        """Ends all consumers with an error, which each later wait raises."""
        if self.failed is None:
            self.failed = error
        self.opened.fail(error)
        self._end()

    def close(self) -> Reply:
        """Closes all consumers. The reply is done when the members know that."""
        if not self.closed:
            self.failed = self.failed or Closed(f"the consumer of {self.queue} is closed")
        self.closed = True
        closing = [each.leave() for each in self.members.values()]
        self._end()
        return _all_of(closing)

    def _end(self) -> None:
        if self._turn is not None:
            self._turn.end()
        self.arrived()


def _addresses(member: Member) -> tuple[str | None, int | None, str | None, int | None]:
    return member.host, member.port, member.backup_host, member.backup_port


def _all_of(replies: list[Reply]) -> Reply:
    """Returns a reply that is done when all are; it fails with the first error."""
    outcome = Reply()
    waiting = [each for each in replies if not each.done]
    failed = [each.error for each in replies if each.error is not None]
    left = len(waiting)

    def done(reply: Reply) -> None:
        nonlocal left
        left -= 1
        if reply.error is not None:
            failed.append(reply.error)
        if left == 0:
            finish()

    def finish() -> None:
        if failed:
            outcome.fail(failed[0])
        else:
            outcome.resolve(None)

    for each in waiting:
        each.on_done = done
    if not waiting:
        finish()
    return outcome
