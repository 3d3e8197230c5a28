"""The commands of consumers: ConsumerInfo, ConsumerControl, MessagePull and their removal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ADDRESS_DOES_NOT_EXIST, ILLEGAL_STATE, SECURITY, BrokerError
from atalanta.kernel.queue.reference import DELIVERING
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.routing.wildcard_addresses import AddressPattern
from atalanta.kernel.security.permissions import refusal_text
from atalanta.kernel.security.security import BROWSE, CONSUME
from atalanta.kernel.sessions.subscription_queue import (
    end_queue,
    report_unkept,
    take_selectors,
)
from atalanta.message.fqqn import join_fqqn
from atalanta.wire.openwire.bridge_filter import message_selector
from atalanta.wire.openwire.commands.brokers import NetworkBridgeFilter
from atalanta.wire.openwire.commands.consumers import ConsumerControl
from atalanta.wire.openwire.commands.destinations import ActiveMQDestination, ActiveMQQueue
from atalanta.wire.openwire.conversion.destination import (
    CLASSIC_WILDCARDS,
    BrokerDestination,
    consumed_parts,
    has_wildcard,
    is_queue,
    name_of,
    names_advisories,
    parts_of,
)
from atalanta.wire.openwire.server.advisories.subscription_name import durable_name
from atalanta.wire.openwire.server.advisories.watcher import OPEN_TOPICS, Watcher
from atalanta.wire.openwire.server.requests.subscription_queue import (
    check_exists,
    durable_queue_for,
    queue_for,
    selector_text,
)
from atalanta.wire.openwire.server.sessions.subscription import SubscribedDestination, Subscription
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.wildcard_queues import WildcardConsumer

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.sessions.subscription_queue import SubscriptionQueue
    from atalanta.wire.openwire.commands.consumers import (
        ConsumerInfo,
        MessagePull,
        RemoveSubscriptionInfo,
    )
    from atalanta.wire.openwire.commands.identifiers import ConsumerId
    from atalanta.wire.openwire.server.sessions.session import OpenWireSession


WATCHERS_MAX: Final = 1_000
# ActiveMQPrefetchPolicy of activemq-client.
QUEUE_PREFETCHES: Final[tuple[int, ...]] = (1_000,)
BROWSER_PREFETCHES: Final[tuple[int, ...]] = (500,)
TOPIC_PREFETCHES: Final[tuple[int, ...]] = (32_766,)
DURABLE_PREFETCHES: Final[tuple[int, ...]] = (100, 1_000)


def add_consumer(session: OpenWireSession, now: int, info: ConsumerInfo) -> None:
    """Processes ConsumerInfo. An id that is known is a repeat after a failover, and answered as if it were new."""
    consumer_id = info.consumer_id
    if consumer_id is None:
        raise ProtocolError("ConsumerInfo without ConsumerId")
    token = session.answers.token_for(info)
    if consumer_id in session.subscriptions or consumer_id in session.watchers:
        session.done(token)
        return
    destination = info.destination
    name_of(destination)
    assert destination is not None
    try:
        if names_advisories(destination):
            _watch(session, consumer_id, destination, info.no_local)
        else:
            _subscribe(session, now, consumer_id, info, destination)
    except BrokerError:
        session.answers.forget(token)
        raise
    session.done_when_durable(token)


def _watch(
    session: OpenWireSession, consumer_id: ConsumerId, destination: ActiveMQDestination, no_local: bool
) -> None:
    """Adds a consumer of advisories: it hears of what is there before it has its answer.

    Its user needs the permission to consume, but for the topics of temporary destinations.
    """
    if len(session.watchers) >= WATCHERS_MAX:
        raise BrokerError(ILLEGAL_STATE, f"a connection has at most {WATCHERS_MAX} consumers of advisories")
    kernel = session.kernel
    for part in parts_of(destination):
        if name_of(part) not in OPEN_TOPICS:
            kernel.check(CONSUME, session.target(part).address)
    advisories = session.dispatches.advisories
    watcher = Watcher(session.connection, kernel, consumer_id, destination, no_local, not session.watchers)
    session.watchers[consumer_id] = True  # before it is added: whatever happens then, it goes with the session
    try:
        advisories.watchers.add(watcher)
    except BrokerError:
        del session.watchers[consumer_id]
        raise


def _subscribe(
    session: OpenWireSession, now: int, consumer_id: ConsumerId, info: ConsumerInfo, destination: ActiveMQDestination
) -> None:
    """Creates the kernel's consumers, one for each part of the destination; all of them or none."""
    subscription = Subscription(consumer_id, info)
    _take_prefetch(session, subscription, destination)
    try:
        for part in consumed_parts(destination):
            if is_queue(part) and has_wildcard(name_of(part)) and not session.target(part).queue:
                _add_matching(session, now, subscription, part)
            else:
                _add_part(session, now, subscription, part)
    except BrokerError:
        _close(session, now, subscription, [])
        raise
    session.subscriptions[consumer_id] = subscription
    if info.subscription_name is not None and not info.network_subscription:
        info.client_id = session.sender.client_id  # whose it is: OpenWire before 10 has no field for it
    session.dispatches.advisories.consumers.add(session.connection.conn, consumer_id, info, destination)
    session.refill(subscription)
    if subscription.browser:
        if not subscription.parts:
            session.end_browser(subscription)
        for number in list(subscription.parts):
            session.kernel.drain(now, number, SILENT)


def _take_prefetch(session: OpenWireSession, subscription: Subscription, destination: ActiveMQDestination) -> None:
    """Gives a consumer that has activemq-client's own prefetch that of its address (PolicyEntry.configurePrefetch).

    A client that is to ask for each message is told so.
    """
    info, part = subscription.info, parts_of(destination)[0]
    addresses = session.kernel.services.queue_registry.addresses
    settings = addresses.settings.match(session.target(part).address)
    if info.browser:
        usual, wanted = BROWSER_PREFETCHES, settings.openwire_browser_prefetch
    elif is_queue(part):
        usual, wanted = QUEUE_PREFETCHES, settings.openwire_queue_prefetch
    elif info.subscription_name is not None:
        usual, wanted = DURABLE_PREFETCHES, settings.openwire_durable_prefetch
    else:
        usual, wanted = TOPIC_PREFETCHES, settings.openwire_topic_prefetch
    subscription.set_strict(not settings.openwire_prefetch_extension)
    if wanted is not None and info.prefetch_size in usual:
        subscription.set_prefetch(wanted)
        if wanted == 0:
            session.connection.answer(ConsumerControl(info.destination, consumer_id=subscription.id, prefetch=0))


def _add_matching(
    session: OpenWireSession, now: int, subscription: Subscription, pattern: ActiveMQDestination
) -> None:
    """Adds a part for each queue that the pattern means. A browser does not get the queues that come later."""
    wanted = AddressPattern(name_of(pattern), CLASSIC_WILDCARDS)
    consumer = WildcardConsumer(wanted, not subscription.browser, _adder(session, subscription))
    wildcard_queues = session.dispatches.wildcard_queues
    wildcard_queues.watch(session.kernel.identity, session.connection.conn, subscription.id, consumer)
    wildcard_queues.add_all(now, consumer, list(session.kernel.services.queue_registry.by_name.values()))


def _adder(session: OpenWireSession, subscription: Subscription) -> Callable[[int, Queue], None]:
    """Returns the function that adds a queue to a consumer with wildcards."""
    return lambda now, queue: _add_queue(session, now, subscription, queue)


def _add_queue(session: OpenWireSession, now: int, subscription: Subscription, queue: Queue) -> None:
    """Adds a queue. One that the user may not consume, or that takes no further consumer, is left out.

    The user has not asked for that very queue: to be without the right is no event of security.
    """
    name = queue.name
    part = ActiveMQQueue(name)
    if subscription.has_part(part):
        return
    kernel = session.kernel
    permission = BROWSE if subscription.browser else CONSUME
    wanted = join_fqqn(queue.spec.address, name)
    if not kernel.services.permissions.allows(kernel.identity, permission, wanted):
        session.report_left_out(name, BrokerError(SECURITY, refusal_text(kernel.identity.user, permission, wanted)))
        return
    try:
        _add_part(session, now, subscription, part)
    except BrokerError as error:
        session.report_left_out(name, error)
        return
    session.refill(subscription)


def _add_part(session: OpenWireSession, now: int, subscription: Subscription, part: ActiveMQDestination) -> None:
    info = subscription.info
    kernel = session.kernel
    target = session.target(part)
    queue = _queue_of(session, now, info, part, target)
    number = session.take_consumer_number()
    made = SubscribedDestination(number, part, queue.name if queue.own else None, target.virtual)
    session.add_part(subscription, made)
    try:
        kernel.create_consumer(now, number, queue.name, queue.selector, info.browser, info.priority, info.exclusive)
        kernel.count_messages(number, subscription.prefetch, info.maximum_pending_message_limit)
    except BrokerError:
        session.remove_part(subscription, number)
        if queue.own:
            end_queue(kernel, now, queue.name)
        raise
    if target.selector_aware and not info.browser:
        take_selectors(kernel, now, target.queue)


def _queue_of(
    session: OpenWireSession, now: int, info: ConsumerInfo, part: ActiveMQDestination, target: BrokerDestination
) -> SubscriptionQueue:
    """Returns the queue that a part reads. BrokerError for what is not supported or allowed: rights come first."""
    kernel = session.kernel
    name = name_of(part)
    if target.temporary or (not info.browser and target.address in session.dispatches.advisories.temporary.kinds):
        if is_queue(part):
            check_exists(kernel, target)
        if target.address not in session.temporary:
            raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"temporary destination {name} belongs to another connection")
    client_id = session.sender.client_id
    durable = ""
    if info.subscription_name is not None and not is_queue(part):
        durable = durable_name(client_id, info.subscription_name)
    _check_right(session, info, target, durable)
    if info.retroactive and not is_queue(part):
        report_unkept(kernel, target.address)
    selector = selector_text(info.selector, info.no_local and not is_queue(part), client_id)
    predicate = info.additional_predicate
    if isinstance(predicate, NetworkBridgeFilter) and predicate.network_broker_id is not None:
        selector = message_selector(predicate.network_broker_id, predicate.message_ttl, selector)
    if not durable:
        return queue_for(kernel, now, target, selector, info.retroactive)
    if "," in name_of(info.destination):
        raise BrokerError(ILLEGAL_STATE, "a durable subscription has one topic: make one for each topic")
    return durable_queue_for(kernel, now, target, durable, selector, info.retroactive)


def _check_right(session: OpenWireSession, info: ConsumerInfo, target: BrokerDestination, durable: str) -> None:
    """Raises BrokerError unless the user may read the queue, before anything is made of the command."""
    kernel = session.kernel
    name = join_fqqn(target.address, durable) if durable else target.name()
    if target.routing_type == ANYCAST:
        known = session.kernel.services.queue_registry.by_name.get(target.queue or target.address)
        if known is not None:  # perhaps at another address, as dead-letter queues are
            name = join_fqqn(known.spec.address, known.name)
    permission = BROWSE if info.browser else CONSUME
    if not kernel.services.permissions.allows(kernel.identity, permission, name):
        kernel.check(permission, name)


# -- changes --------------------------------------------------------------------------------------
def control(session: OpenWireSession, now: int, command: ConsumerControl) -> None:
    """Processes ConsumerControl: a new prefetch, or the end of the consumer."""
    token = session.answers.token_for(command)
    consumer_id = command.consumer_id
    subscription = None if consumer_id is None else session.subscriptions.get(consumer_id)
    if subscription is not None and consumer_id is not None:
        if command.close:
            remove_consumer(session, now, consumer_id, -1)
        else:
            subscription.set_prefetch(command.prefetch)
            session.refill(subscription)
    session.done(token)


def pull(session: OpenWireSession, now: int, command: MessagePull) -> None:
    """Processes MessagePull."""
    consumer_id = command.consumer_id
    subscription = None if consumer_id is None else session.subscriptions.get(consumer_id)
    if subscription is None:
        raise BrokerError(ILLEGAL_STATE, f"there is no consumer {consumer_id or 'without an id'}")
    if subscription.pulls():
        session.dispatches.pulls.pull(session.kernel, session.connection, now, subscription, command)
    session.done(session.answers.token_for(command))


# -- the end --------------------------------------------------------------------------------------
def remove_consumer(session: OpenWireSession, now: int, consumer_id: ConsumerId, last_delivered: int) -> None:
    """Closes a consumer; `last_delivered`: the number of the last delivery that its application has."""
    advisories = session.dispatches.advisories
    session.kernel.services.command.begin_change()
    if session.watchers.pop(consumer_id, None) is not None:
        advisories.watchers.remove(session.connection.conn, consumer_id)
        return
    subscription = session.subscriptions.pop(consumer_id, None)
    if subscription is None:
        return
    _close(session, now, subscription, [delivery.number for delivery in subscription.uncounted(last_delivered)])
    advisories.consumers.remove(session.connection.conn, consumer_id)


def _close(
    session: OpenWireSession, now: int, subscription: Subscription, unseen: list[int]
) -> None:
    """Closes the kernel's consumers. The deliveries in `unseen` count as if they were not made."""
    session.dispatches.pulls.end(subscription)
    kernel = session.kernel
    session.dispatches.wildcard_queues.unwatch(kernel.identity, session.connection.conn, subscription.id)
    if not subscription.browser:
        for number in unseen:
            reference = subscription.held[number].reference
            if reference.state == DELIVERING:
                reference.uncount_delivery()
    for part in list(subscription.parts.values()):
        session.remove_part(subscription, part.number)
        if part.number in kernel.consumers:
            kernel.close_consumer(now, part.number, True)
        queue = part.own_queue
        if queue is not None and queue in session.kernel.services.queue_registry.by_name:
            end_queue(kernel, now, queue)


def remove_durable(session: OpenWireSession, now: int, command: RemoveSubscriptionInfo) -> None:
    """Processes RemoveSubscriptionInfo: the end of a durable subscription."""
    own = session.sender.client_id
    if command.client_id and command.client_id != own:
        text = f"the subscription {command.subscription_name} belongs to client id '{command.client_id[:100]}'"
        raise BrokerError(SECURITY, f"{text}, and this connection has '{own}': log in with that client id to end it")
    name = durable_name(own, command.subscription_name or "")
    queue = session.kernel.services.queue_registry.by_name.get(name)
    if queue is None:
        raise BrokerError(ADDRESS_DOES_NOT_EXIST, f"No durable subscription exists for: {command.subscription_name}")
    if queue.consumer_count() > 0:
        raise BrokerError(ILLEGAL_STATE, "Durable consumer is in use")
    session.kernel.delete_queue(now, name)
    session.done_when_durable(session.answers.token_for(command))
