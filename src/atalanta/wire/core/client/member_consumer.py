"""The consumer of one queue at one member of a cluster, as a part of MemberConsumers (member_consumers.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.core.client.consumer import ClientConsumer
from atalanta.wire.core.client.errors import ClientError, IllegalState, QueueDoesNotExist
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.packets.query import (
    SETTLE_ADDRESS,
    BindingQuery,
    BindingQueryResponseV4,
    QueueQuery,
    QueueQueryResponseV3,
)

if TYPE_CHECKING:
    from atalanta.wire.core.client.member_consumers import MemberConsumers
    from atalanta.wire.core.client.session import ClientSession

ILLEGAL_STATE: Final = 104
MULTICAST: Final = 0
ASKED: Final = "asked"
CONSUMES: Final = "consumes"
MISSING: Final = "the queue is missing"
REFUSED: Final = "refused"


class MemberConsumer:
    """One member: `consumer` while it has the queue. Its session is created again after each loss.

    `state`: ASKED until the member has told whether it has the queue, then CONSUMES, MISSING or REFUSED (`why`).
    """

    def __init__(self, owner: MemberConsumers, node_id: str, session: ClientSession) -> None:
        self.owner = owner
        self.node_id = node_id
        self.session = session
        self.consumer: ClientConsumer | None = None
        self.state: str = ASKED
        self.why: ClientError | None = None
        self.settles: bool = False
        self.left: bool = False
        if session.opened.done:
            self._opened(session.opened)
        else:
            session.opened.on_done = self._opened

    @property
    def open(self) -> bool:
        """Returns whether the member can be asked for a message now."""
        consumer = self.consumer
        return consumer is not None and consumer.failed is None and self.session.open

    @property
    def elsewhere(self) -> bool:
        """Returns whether another node answers at the member's address.

        An Atalanta node names itself first. An Artemis node names the members in any order, itself always among them.
        """
        connection = self.session.connection
        if self.settles and connection.node_id not in (None, self.node_id):
            return True
        return connection.topology_complete and self.node_id not in connection.topology

    def _opened(self, reply: Reply) -> None:
        if self.left:
            return
        if reply.error is not None:
            self._settled(REFUSED, reply.error)
            return
        self.session.start()
        self.session.request(BindingQuery(SETTLE_ADDRESS)).on_done = self._told_settling
        self.ask()

    def _told_settling(self, reply: Reply) -> None:
        found = reply.value
        self.settles = isinstance(found, BindingQueryResponseV4) and found.exists

    def ask(self) -> None:
        """Asks the member for the queue, and consumes it if it is there. None is created."""
        if self.left or self.consumer is not None or self.session.closed:
            return
        self.session.request(QueueQuery(self.owner.queue)).on_done = self._answered

    def _answered(self, reply: Reply) -> None:
        if self.left:
            return
        found = reply.value
        if reply.error is not None or not isinstance(found, QueueQueryResponseV3):
            self._settled(REFUSED, reply.error)
            return
        if not found.exists:
            self._settled(MISSING, None)
            return
        kind = ""
        if found.temporary:
            kind = "temporary: it exists at one member only"
        elif found.routing_type == MULTICAST:
            kind = "a subscription: each member has its own"
        if kind:
            text = f"queue {self.owner.queue} is {kind}; consume it without members"
            self._settled(REFUSED, IllegalState(text, ILLEGAL_STATE))
            return
        self._consume()

    def _consume(self) -> None:
        owner = self.owner
        consumer, created = self.session.consumer(
            owner.queue, owner.selector, owner.browse_only, owner.priority, owner.share()
        )
        consumer.recreates = False
        consumer.sinks = owner.sinks
        consumer.on_news = self._news
        self.consumer = consumer
        created.on_done = self._created

    def _created(self, reply: Reply) -> None:
        if reply.error is None and not self.left:
            self._settled(CONSUMES, None)

    def _news(self) -> None:
        """Handles a message that arrived, or the consumer's end: the queue was deleted, or the member refuses it."""
        consumer = self.consumer
        if consumer is None or self.left:
            return
        error = consumer.failed
        if error is None:
            self.owner.arrived()
            return
        self.consumer = None
        self.session.close_consumer(consumer)
        if isinstance(error, QueueDoesNotExist):
            self._settled(MISSING, None)
        else:
            self._settled(REFUSED, error)

    def _settled(self, state: str, why: ClientError | None) -> None:
        self.state = state
        self.why = why
        self.owner.settled(self)

    def leave(self, lost: ClientError | None = None) -> Reply:
        """Ends the consumer: its messages without acknowledgement return to the queue. Returns the broker's answer.

        `lost`: what acknowledgements of its messages are told. A member that is away needs no answer.
        """
        self.left = True
        consumer, self.consumer = self.consumer, None
        if consumer is not None:
            if lost is not None:
                consumer.fail(lost)
            closed = self.session.close_consumer(consumer)
            if self.session.open:
                return closed
        nothing = Reply()
        nothing.resolve(None)
        return nothing
