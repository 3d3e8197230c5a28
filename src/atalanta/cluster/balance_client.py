"""Which clients may be sent to another node, and when.

Nothing on the wire says that a client was given `reconnectAttempts`. But an Artemis client that makes its connection
anew asks CHECK_FOR_FAILOVER first, with the node it was at (ClientSessionFactoryImpl.getConnection); on its first
connection it never does. So who asks has come back once and will do so again. Python clients of ours ask from the start
if any node of the cluster will do for them.

A reason is a short text that stands in `atalanta rebalance`; None means that it may.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue_spec import ANYCAST
from atalanta.wire.core.connection import CoreConnection
from atalanta.wire.core.moving import Moving
from atalanta.wire.core.transport import TransportConfiguration

if TYPE_CHECKING:
    from atalanta.kernel.broker import Broker
    from atalanta.kernel.queue import Queue
    from atalanta.kernel.session import Session
    from atalanta.wire.base import Connection
    from atalanta.wire.core.session import CoreSession

VERSION_MIN: Final = 131  # reads DISCONNECT_V3
DWELL_NS: Final = 2_000_000_000  # after its login a client is left alone
CAME_BACK_NS: Final = 60_000_000_000  # longer if it was sent away from here and came back
# When a client may be told without its next call being on its way: at any time once it was silent for long, or waits
# for credit to send; between two calls of a steady rhythm, with time enough before the next one for it to take notice.
SILENCE_NS: Final = 1_000_000_000
WITHOUT_CREDIT_NS: Final = 100_000_000
PAUSE_NS: Final = 5_000_000  # behind a call; LOOKS_MIN take longer
NOTICE_NS: Final = 60_000_000
GAPS_MIN: Final = 2  # between its calls, before one speaks of a rhythm; together they last
RHYTHM_NS: Final = 400_000_000
HURRIED_NS: Final = 100_000_000
HURRIED_GAPS_MIN: Final = 8
# One that rests so long between an answer and its next call is told right behind an answer.
BRIEF_REST_NS: Final = 20_000_000
BRIEF_RESTS_MIN: Final = 5
DRIP_AFTER_NS: Final = 20_000_000  # who waits for credit in the middle of something,
STALLED_NS: Final = 200_000_000  # or with more messages in hand: it may just be slow with one
# Looks in a row, none of them late, that found it silent: after a late one bytes may wait unread.
LOOKS_MIN: Final = 3
LATE_NS: Final = 20_000_000
# Do messages of that address follow their consumers to another node?
Follows = Callable[[str], bool]


def is_client(connection: Connection) -> bool:
    """A client that counts: logged in, no member of the cluster and no bridge of one, not on its way elsewhere."""
    if not isinstance(connection, CoreConnection) or connection.cluster_peer or connection.gone:
        return False
    if connection.moving is not None and connection.moving.told_at:
        return False
    for session in connection.sessions.values():
        kernel = session.kernel
        if kernel is not None and not kernel.identity.cluster:
            return True
    return False


class Judge:
    """`any_client`: also those that never showed that they come back."""

    def __init__(self, broker: Broker, any_client: bool, follows: Follows) -> None:
        self.broker = broker
        self.any_client = any_client
        self.follows = follows
        self.door: TransportConfiguration = TransportConfiguration("")  # announced for clients
        self.doors: int = 0  # of this cluster connection
        self.returned: dict[
            int, bool
        ] = {}  # connections of clients that came back from where they were sent

    def obstacle(self, connection: CoreConnection, now: int) -> str | None:
        """Why this client is to stay, however long one waits."""
        if connection.version < VERSION_MIN:
            return "too old for a redirect"
        if connection.pinned:
            return "reads this node's log"
        if connection.came_from is None and not self.any_client:
            return "not known to reconnect"
        age_ns = now - connection.opened
        if age_ns < DWELL_NS:
            return "just connected"
        if connection.conn in self.returned and age_ns < CAME_BACK_NS:
            return "came back a moment ago"
        if connection.acceptor is not None and connection.acceptor.router is not None:
            return "placed by a connection router"
        if not self._by_announced_door(connection):
            return "came in by a door that is not announced"
        if connection.client.temporary_queues:
            return "has temporary queues"
        for session in connection.sessions.values():
            if session.kernel is not None:
                reason = self._session(session.kernel, connection)
                if reason is not None:
                    return reason
        return None

    def _by_announced_door(self, connection: CoreConnection) -> bool:
        """A client of another acceptor may not be able, or not be meant, to use the one that members announce."""
        acceptor = connection.acceptor
        if acceptor is None:
            return True
        if self.doors > 1 and acceptor.port != self.door.port:
            return False
        announced = self.door.parameters.get("sslEnabled", "").lower() == "true"
        return announced == (acceptor.tls is not None)

    def _session(self, session: Session, connection: CoreConnection) -> str | None:
        if session.identity.cluster:
            return "a bridge of the cluster"
        for consumer in session.consumers.values():
            if consumer.browse_only:
                return "is browsing a queue"
            if session.pre_acknowledge:
                return "acknowledges before it has worked"
            reason = self._queue(consumer.queue, connection)
            if reason is not None:
                return reason
        return None

    def _queue(self, queue: Queue, connection: CoreConnection) -> str | None:
        """Would messages be left behind that nobody takes?"""
        if queue.deleted or self._others(queue, connection):
            return None
        if not queue.spec.durable:
            return f"last consumer of {queue.name}, which ends with it"
        if self.follows(queue.spec.address):
            return None
        if queue.message_count > 0:
            return f"last consumer of {queue.name}, which has messages"
        if queue.spec.routing_type != ANYCAST:
            return f"last consumer of the subscription {queue.name}"
        if self._somebody_sends(queue.spec.address, connection):
            return f"last consumer of {queue.name}, which others send to here"
        return None

    def _others(self, queue: Queue, connection: CoreConnection) -> bool:
        """Other consumers that stay."""
        for consumer in queue.consumers:
            if consumer.browse_only:
                continue
            session = consumer.session
            if session is None:
                return True
            client = session.client
            if (
                client is not connection.client
                and client.connection not in self.broker.clients.leaving
            ):
                return True
        return False

    def _somebody_sends(self, address: str, connection: CoreConnection) -> bool:
        for client in self.broker.clients.connected.values():
            if client is connection.client or client.connection in self.broker.clients.leaving:
                continue
            for session in client.sessions.values():
                for target, _ in session.producers.values():
                    if target == address:
                        return True
        return False

    def _pauses(self, moving: Moving, silent_ns: int, now: int) -> bool:
        """Will its next call not come just now?"""
        if moving.looks >= LOOKS_MIN:
            if silent_ns >= SILENCE_NS:
                return True
            if moving.credits and silent_ns >= WITHOUT_CREDIT_NS:
                return True
            shortest_ns = moving.shortest_ns
            if moving.gaps >= GAPS_MIN and moving.gaps * shortest_ns >= RHYTHM_NS:
                least_ns = max(NOTICE_NS, shortest_ns // 2)
                if PAUSE_NS <= silent_ns <= shortest_ns - least_ns:
                    return True
        # However late this look is: its next call is not due for seven times as long.
        resting_ns = now - moving.answered_at
        return self.rests(moving) and resting_ns <= moving.shortest_rest_ns // 8

    def rests(self, moving: Moving) -> bool:
        """Between its calls, for long enough to hear what it is told right behind an answer."""
        return moving.rests >= BRIEF_RESTS_MIN and moving.shortest_rest_ns >= BRIEF_REST_NS

    def hurried(self, moving: Moving) -> bool:
        """It calls so quickly that no pause will do."""
        often = moving.gaps >= HURRIED_GAPS_MIN and moving.shortest_ns < HURRIED_NS
        return often and not self.rests(moving)

    def unrest(self, connection: CoreConnection, now: int) -> str | None:
        """What must end before it can be told to go; the connection is held back already."""
        moving = connection.moving
        assert moving is not None
        moving.looks = 0 if now - moving.looked_at > LATE_NS else moving.looks + 1
        moving.looked_at = now
        reason = self._begun(connection, moving, now)
        if reason is not None:
            return reason
        if moving.last or self._pauses(moving, now - connection.last_seen, now):
            return None
        return "is talking"

    def _begun(self, connection: CoreConnection, moving: Moving, now: int) -> str | None:
        """What it has begun and not ended, or waits for."""
        in_hand = 0
        reason: str | None = None
        for session in connection.sessions.values():
            held, why = _work(session)
            in_hand += held
            reason = reason or why
            if reason is None and session.kernel is not None and session.kernel.xa:
                reason = self._in_branch(connection)
        if in_hand < moving.in_hand:
            moving.worked_at = now
        moving.in_hand = in_hand
        if in_hand:
            moving.gaps = 0  # its acknowledgements are no rhythm of calls
        if reason is not None:
            silent_ns = now - connection.last_seen
            if moving.credits and in_hand > 1 and silent_ns >= STALLED_NS:
                moving.hand_out()  # it answers what it receives, and has more of that
            elif moving.credits and in_hand <= 1 and silent_ns >= DRIP_AFTER_NS:
                moving.drip()
            return reason
        if self.broker.journal.durable < moving.mark:
            return "waits for the disk"
        if (
            connection.holds > 0
            or connection.blocked
            or connection.login.waiting
            or len(connection.out)
        ):
            return "has bytes on their way"
        return None

    def _in_branch(self, connection: CoreConnection) -> str | None:
        """Its transaction manager ends a branch where the branch is; between two of them it may go like others."""
        for branch in self.broker.branches.by_xid.values():
            if connection.conn in branch.clients:
                return "has a distributed transaction that is not finished"
        return None


def _work(session: CoreSession) -> tuple[int, str | None]:
    """(messages that it has not acknowledged, what the session has begun and not ended).

    Waiting for a message is nothing of the kind: the client asks for it again (moving.py).
    """
    kernel = session.kernel
    in_hand = 0
    reason = "is sending a large message" if session.large is not None else None
    if kernel is None:
        return in_hand, reason
    if not kernel.transaction.empty() or kernel.branch is not None:
        reason = "has a transaction open"
    for consumer in kernel.consumers.values():
        in_hand += len(consumer.unacknowledged)
        if in_hand or consumer.stream is not None:
            reason = reason or "has messages that it has not acknowledged"
    return in_hand, reason
