"""The kernel's view of an OpenWire client: one kernel session for all sessions of a connection.

Deliveries become MessageDispatch, answers Response or ExceptionResponse. Nothing is confirmed before it is durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.virtual_topics import virtual_topics
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.conversion.destination import BrokerDestination, has_wildcard, target_of
from atalanta.wire.openwire.server.sessions.answers import Answers
from atalanta.wire.openwire.server.sessions.dispatches import Dispatches
from atalanta.wire.openwire.server.sessions.errors import throwable_of
from atalanta.wire.openwire.server.sessions.inflations import Inflation, Inflations
from atalanta.wire.openwire.server.sessions.large_delivery import LargeDelivery
from atalanta.wire.openwire.server.sessions.producers import Producers
from atalanta.wire.openwire.server.sessions.subscription import (
    Delivery,
    SubscribedDestination,
    Subscription,
)
from atalanta.wire.sender_control import SenderControl

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.reference import Reference
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import (
        ConnectionId,
        ConsumerId,
        SessionId,
    )
    from atalanta.wire.openwire.commands.transactions import TransactionId
    from atalanta.wire.openwire.conversion.message_id import Correlations
    from atalanta.wire.openwire.conversion.sent_message import Sender
    from atalanta.wire.openwire.server.advisories.advisories import Advisories
    from atalanta.wire.openwire.server.sessions.local_transaction import LocalTransaction
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput
    from atalanta.wire.openwire.server.sessions.pulls import Pulls
    from atalanta.wire.wildcard_queues import WildcardQueues

SESSIONS_MAX: Final = 10_000  # of one connection


class OpenWireSession(SenderControl):
    """The sessions of a connection. `subscriptions` by the client's id, `parts` by the kernel's number of a consumer.

    `branches`: xids of distributed transactions that the client has begun.
    """

    def __init__(
        self,
        connection: OpenWireOutput,
        connection_id: ConnectionId,
        sender: Sender,
        advisories: Advisories,
        pulls: Pulls,
        wildcard_queues: WildcardQueues,
        correlations: Correlations,
        inflations: Inflations,
    ) -> None:
        super().__init__(connection)
        self.connection = connection
        self.inflations = inflations
        self.inflation: Inflation | None = None  # of the message that waits
        self.connection_id = connection_id
        self.sender = sender
        self.patient = sender.bridge
        self.answers = Answers(connection, self.waiting)
        self.dispatches = Dispatches(connection, advisories, pulls, wildcard_queues, correlations)
        self.sessions: dict[SessionId, bool] = {}
        self.producers = Producers()
        self.subscriptions: dict[ConsumerId, Subscription] = {}
        self.watchers: dict[ConsumerId, bool] = {}
        self.parts: dict[int, Subscription] = {}
        self.temporary: dict[str, bool] = {}
        self.transactions: dict[TransactionId, LocalTransaction] = {}
        self.branches: dict[bytes, list[tuple[Subscription, Delivery]]] = {}
        correlations.add(connection.conn, connection_id.value or "")
        self.last_consumer: int = 0
        self.last_delivery: int = 0

    def target(self, destination: ActiveMQDestination) -> BrokerDestination:
        """Returns the address or queue behind one destination that is not composite. BrokerError: its name."""
        services = self.kernel.services
        config = services.config
        found = target_of(destination, config.wildcard, virtual_topics(config.virtual_topic_forms))
        if found.queue and found.routing_type == ANYCAST:  # as in AMQSession.checkAutoCreateQueue of Artemis
            addresses = services.queue_registry.addresses
            address = addresses.by_name.get(found.address)
            if address is None:
                multicast = addresses.settings.match(found.address).default_address_routing_type == MULTICAST
            else:
                multicast = address.multicast and not address.anycast
            if multicast:
                return BrokerDestination(found.address, MULTICAST, False, found.queue)
        elif found.queue and not found.virtual:
            known = services.queue_registry.by_name.get(found.queue)
            if known is not None and known.spec.address == found.address and known.spec.routing_type == ANYCAST:
                return BrokerDestination(found.address, ANYCAST, False, found.queue)
        return found

    # -- registers ------------------------------------------------------------------------------
    def add_session(self, session_id: SessionId) -> None:
        """Registers a session of the client. BrokerError if there are too many."""
        if len(self.sessions) >= SESSIONS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"a connection has at most {SESSIONS_MAX} sessions")
        self.sessions[session_id] = True

    def take_consumer_number(self) -> int:
        """Returns the kernel's number of a new consumer."""
        self.last_consumer += 1
        return self.last_consumer

    def add_part(self, subscription: Subscription, part: SubscribedDestination) -> None:
        """Registers a part of a consumer, before the kernel's consumer is created."""
        subscription.add_part(part)
        self.parts[part.number] = subscription

    def remove_part(self, subscription: Subscription, number: int) -> None:
        """Removes a part of a consumer."""
        subscription.remove_part(number)
        self.parts.pop(number, None)

    # -- answers --------------------------------------------------------------------------------
    def done(self, token: int) -> None:
        self.answers.done(token)

    def failed(self, token: int, error: BrokerError) -> None:
        known = token in self.answers.waiting
        command_id = self.answers.refused(token, error)
        if command_id >= 0:
            self.connection.respond_error(command_id, throwable_of(error))
        elif not known:
            self.connection.report(error)

    def done_when_durable(self, token: int) -> None:
        """Sends the answer once all records so far are on disk."""
        if token in self.answers.waiting:
            self.kernel.services.store.reply_when_all_is_durable(self, token)

    # -- deliveries -----------------------------------------------------------------------------
    def deliver(self, consumer: QueueConsumer, reference: Reference) -> int:
        message = reference.message
        if consumer.marked is not None:
            message = consumer.marked
        subscription = self.parts[consumer.id]
        self.last_delivery += 1
        dispatches, kernel, large = self.dispatches, self.kernel, message.large
        delivery = dispatches.deliver(kernel, consumer, subscription, reference, message, self.last_delivery)
        if delivery is not None and large is not None:
            LargeDelivery(kernel, dispatches, consumer, subscription, delivery, message, large).begin()
        if subscription.pulling:
            self.dispatches.pulls.delivered(self.kernel, subscription, consumer.id)
        return 1

    def refill(self, subscription: Subscription) -> None:
        """Gives the kernel's consumers the credits that the client's window allows.

        One that has more than half of the window gets none, as it needs none yet: acknowledgements come one by one.
        """
        if subscription.pulls():
            return
        kernel = self.kernel
        for part in subscription.parts.values():
            consumer = kernel.consumers.get(part.number)
            if consumer is None or (subscription.browser and subscription.has_ended(part.number)):
                continue
            missing = subscription.room(part) - consumer.credits
            if missing > 0:
                if 2 * consumer.credits > subscription.prefetch and not subscription.browser:
                    continue
                kernel.add_credits(part.number, missing)
                if subscription.drains_now(part.number):
                    kernel.drain(self.kernel.services.store.now, part.number, SILENT)
            elif missing < 0:
                consumer.take_credits(-missing)

    def top_up(self, consumer: QueueConsumer) -> bool:
        subscription = self.parts.get(consumer.id)
        if subscription is None or subscription.pulls() or consumer.unlimited:
            return False
        missing = subscription.room(subscription.parts[consumer.id]) - consumer.credits
        if missing <= 0:
            return False
        self.kernel.add_credits(consumer.id, missing)
        return True

    def drained(self, consumer: QueueConsumer, token: int) -> None:
        """Ends a browser, or a pull that found nothing."""
        subscription = self.parts.get(consumer.id)
        if subscription is None:
            return
        if not subscription.browser:
            self.dispatches.pulls.found_nothing(self.kernel, self.connection, subscription, token)
            return
        if consumer.credits <= 0:  # the client's window is used up: there may be more
            subscription.drain_later(consumer.id)
            return
        consumer.take_credits(consumer.credits)  # what comes later is not sent
        if subscription.end_part(consumer.id):
            self.end_browser(subscription)

    def end_browser(self, subscription: Subscription) -> None:
        """Ends a browser: the end is a dispatch with a destination, but without a message."""
        self.connection.answer(MessageDispatch(subscription.id, subscription.info.destination, None, 0))

    def report_left_out(self, queue: str, error: BrokerError) -> None:
        """Reports a queue that matches the wildcards of a consumer, but cannot be consumed."""
        self.connection.left_out(
            queue, error, self.dispatches.wildcard_queues.is_news(self.kernel.identity.user, queue, error.text)
        )

    def consumer_gone(self, consumer: QueueConsumer, why: str) -> None:
        """Closes the connection: a failover client comes back, and creates queue and consumer again."""
        subscription = self.parts.get(consumer.id)
        self.kernel.consumers.pop(consumer.id, None)
        if subscription is None:
            return
        part = subscription.parts[consumer.id]
        self.remove_part(subscription, consumer.id)
        if part.destination is not subscription.info.destination and has_wildcard(subscription.name()):
            return  # one of the queues that its wildcards mean
        text = f"the queue of the consumer of {subscription.info.destination} has ended: {why}"
        self.connection.report(BrokerError(ILLEGAL_STATE, text))
        self.connection.end(text)

    def cut_off(self, why: str) -> None:
        self.connection.end(why)

    # -- the end --------------------------------------------------------------------------------
    def ended_by_operator(self, now: int) -> None:
        self.leave(now)
        self.kernel.close(now, True)
        self.connection.report(BrokerError(ILLEGAL_STATE, "an operator has closed the session"))
        self.connection.end("an operator has closed the session")

    def leave(self, now: int) -> None:
        """Ends what the kernel does not know of: advisories, waiting pulls and unprepared branches."""
        conn = self.connection.conn
        self.dispatches.correlations.remove(conn, self.connection_id.value or "")
        advisories = self.dispatches.advisories
        for consumer_id in list(self.watchers):
            advisories.watchers.remove(conn, consumer_id)
        self.watchers.clear()
        for subscription in list(self.subscriptions.values()):
            self.dispatches.pulls.end(subscription)
            self.dispatches.wildcard_queues.unwatch(self.kernel.identity, conn, subscription.id)
            advisories.consumers.remove(conn, subscription.id)
        for producer_id in list(self.producers.by_id):
            advisories.producers.remove(conn, producer_id)
        advisories.temporary.remove_all(list(self.temporary))
        self.temporary.clear()  # another connection of the client may have them by now
        branches = self.kernel.services.branches
        for xid in list(self.branches):
            branch = branches.by_xid.get(xid)
            if branch is not None:
                branches.abandon(now, branch)
        self.branches.clear()
