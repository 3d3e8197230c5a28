"""SUBSCRIBE and UNSUBSCRIBE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.endpoint import SILENT
from atalanta.kernel.errors import ILLEGAL_STATE, SECURITY, BrokerError
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.routing.wildcard_addresses import AddressPattern
from atalanta.kernel.security.permissions import refusal_text
from atalanta.kernel.security.security import BROWSE, CONSUME
from atalanta.kernel.sessions.subscription_queue import (
    end_queue,
    report_unkept,
    take_selectors,
)
from atalanta.message.fqqn import join_fqqn, split_fqqn
from atalanta.message.selector.parser import CONVERT, NO_CONVERT
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.credits import begin_credits
from atalanta.wire.stomp.frame import V10
from atalanta.wire.stomp.named_destinations import ADVISORY_PREFIX, all_destinations
from atalanta.wire.stomp.subscription import (
    CLIENT,
    DURABLE_NAMES,
    UNLIMITED,
    Part,
    Subscription,
    Window,
    mode_of,
    window_of,
)
from atalanta.wire.stomp.subscription_queue import durable_queue_name, queue_for, routing_type_of
from atalanta.wire.stomp.transformation import check_transformation
from atalanta.wire.wildcard_queues import WildcardConsumer

if TYPE_CHECKING:
    from collections.abc import Callable

    from atalanta.kernel.queue.queue import Queue
    from atalanta.wire.stomp.destination import Destination
    from atalanta.wire.stomp.frame import Frame
    from atalanta.wire.stomp.session import StompSession

NO_LOCAL: Final = ("no-local", "activemq.noLocal")
BROWSER: Final = ("browser", "activemq.browser")
PRIORITY: Final = 0  # of a consumer, as in the other protocols
PRIORITY_MIN: Final = -128
PRIORITY_MAX: Final = 127
# What Classic lets a subscription hold, in messages.
CLASSIC_QUEUE: Final = 1_000
CLASSIC_TOPIC: Final = 32_767
CLASSIC_DURABLE: Final = 100
CLASSIC_BROWSER: Final = 500


class Wish:
    """What SUBSCRIBE asks of each consumer. `selector` as the kernel reads it."""

    def __init__(self, frame: Frame) -> None:
        self.plain_selector = frame.get("selector")
        self.selector = selector_of(frame)
        self.durable_name = frame.first(DURABLE_NAMES)
        self.exclusive: bool = frame.flag("activemq.exclusive")
        self.retroactive: bool = frame.flag("activemq.retroactive")
        self.pending_max: int = frame.number("activemq.maximumPendingMessageLimit", 0)
        self.prefetch: int = UNLIMITED  # in messages, also of mode auto
        self.priority: int = frame.number("activemq.priority", PRIORITY)
        if not PRIORITY_MIN <= self.priority <= PRIORITY_MAX:
            raise ProtocolError(
                f"SUBSCRIBE: activemq.priority is {self.priority}, not between {PRIORITY_MIN} and {PRIORITY_MAX}"
            )


    def take_prefetch(self, window: Window) -> None:
        """Takes the window of a client that acknowledges."""
        if window.counts_messages:
            self.prefetch = window.size


def selector_of(frame: Frame) -> str | None:
    """Returns the selector of SUBSCRIBE. Headers are texts: in comparisons they count as numbers and booleans, too."""
    if "activemq.selector" in frame.headers:  # of Classic, which takes it as it is
        return frame.headers["activemq.selector"]
    selector = frame.get("selector")
    if not selector or selector.startswith((CONVERT, NO_CONVERT)):
        return selector
    return CONVERT + selector


def subscribe(session: StompSession, now: int, frame: Frame) -> None:
    """Processes SUBSCRIBE."""
    for name in NO_LOCAL:
        if frame.flag(name):
            raise ProtocolError(f"SUBSCRIBE: the header {name} is not supported: use a selector on a property of yours")
    check_transformation(frame)
    sub_id = frame.get("id")
    if sub_id is None and session.classic and session.connection.version != V10:  # Artemis asks for none
        raise ProtocolError("SUBSCRIBE without the header id")
    text = frame.required("destination")
    key = text if sub_id is None else sub_id
    if key in session.subscriptions:
        raise BrokerError(ILLEGAL_STATE, f"there is a subscription {key[:40]!r} already")
    mode = mode_of(frame)
    wish = Wish(frame)
    browser = any([frame.flag(name) for name in BROWSER])
    destinations = all_destinations(session, now, frame, "subscription-type")
    if wish.durable_name is not None:
        _check_durable(session, destinations)
    usual = _usual_window(session, wish, destinations[0], browser)
    window = window_of(frame, mode, usual)
    wish.take_prefetch(window_of(frame, CLIENT, usual))
    receipt = frame.get("receipt")
    subscription = Subscription(sub_id, text, mode, window, browser, browser or receipt is None)
    session.subscriptions[key] = subscription
    looked = session.wildcard_queues.looked
    for destination in destinations:
        _add(session, now, subscription, wish, destination)
    if len(destinations) > 1:
        subscription.order_parts()
    session.confirm_later(subscription, session.token_for(receipt))
    if browser:
        if not subscription.parts:
            session.end_browser(subscription)
        for number in list(subscription.parts):
            session.kernel.drain(now, number, SILENT)
    session.wildcard_queues.pace(session.connection, looked)


def _check_durable(session: StompSession, destinations: list[Destination]) -> None:
    """Raises ProtocolError unless a durable subscription has one topic. Artemis takes one of a queue as if it were not.
    """
    if len(destinations) > 1:
        raise ProtocolError("SUBSCRIBE: a durable subscription has one topic: make one for each topic")
    if session.classic and _is_queue(session, destinations[0]):
        raise ProtocolError(
            f"SUBSCRIBE to {destinations[0].text[:100]}: a queue has no durable subscriptions, and needs none"
        )


def _usual_window(session: StompSession, wish: Wish, destination: Destination, browser: bool) -> Window:
    """Returns the window of a client that asks for none. In Classic that is the address' (PolicyEntry), or 1,000 …"""
    if not session.classic:
        return Window(session.options.window_bytes, False)
    addresses = session.kernel.services.queue_registry.addresses
    settings = addresses.settings.match(split_fqqn(destination.name)[0])
    if browser:
        usual, wanted = CLASSIC_BROWSER, settings.openwire_browser_prefetch
    elif _is_queue(session, destination):
        usual, wanted = CLASSIC_QUEUE, settings.openwire_queue_prefetch
    elif wish.durable_name is None:
        usual, wanted = CLASSIC_TOPIC, settings.openwire_topic_prefetch
    else:
        usual, wanted = CLASSIC_DURABLE, settings.openwire_durable_prefetch
    return Window(usual if wanted is None else wanted, True)


def _is_queue(session: StompSession, destination: Destination) -> bool:
    if destination.virtual:
        return True
    return routing_type_of(session.kernel, destination, split_fqqn(destination.name)[0]) == ANYCAST


def _add(
    session: StompSession, now: int, subscription: Subscription, wish: Wish, destination: Destination
) -> None:
    """Adds one destination of a subscription: a part, or a part for each queue that its wildcards mean."""
    name = destination.name
    queue = _is_queue(session, destination)
    if not queue:
        if name.startswith(ADVISORY_PREFIX):
            raise ProtocolError(
                f"SUBSCRIBE to {destination.text[:100]}: only OpenWire clients get advisories; ask"
                " activemq.management (docs/reference/management.md)"
            )
        if subscription.browser:
            raise ProtocolError(f"SUBSCRIBE: browser:true needs a queue, and {destination.text[:100]} is a topic")
        if wish.pending_max > 0 and not _limits_pending(session, wish, name):
            raise ProtocolError(
                "SUBSCRIBE: activemq.maximumPendingMessageLimit has no effect here: write a pendingMessageLimitStrategy"
                " for the topic (pending-message-limit), or leave the header out"
            )
        if wish.retroactive:
            report_unkept(session.kernel, name)
    elif session.classic and not destination.virtual and _has_wildcard(session, name):
        _add_matching(session, now, subscription, wish, destination)
        return
    _add_part(session, now, subscription, wish, destination, False)


def _limits_pending(session: StompSession, wish: Wish, name: str) -> bool:
    """Returns True if the topic limits the messages that wait for a subscription, which counts messages."""
    addresses = session.kernel.services.queue_registry.addresses
    settings = addresses.settings.match(split_fqqn(name)[0])
    limits = settings.pending_message_limit >= 0 or settings.pending_message_prefetch_rate >= 0
    return limits and wish.prefetch != UNLIMITED and wish.durable_name is None


# -- queues by wildcards --------------------------------------------------------------------------
def _has_wildcard(session: StompSession, name: str) -> bool:
    """Returns True if a whole word of the name is a wildcard, and it is not the name of a queue."""
    services = session.kernel.services
    wildcard = services.config.wildcard
    if name in services.queue_registry.by_name:
        return False
    return any([word in (wildcard.any_words, wildcard.single_word) for word in name.split(wildcard.delimiter)])


def _add_matching(
    session: StompSession, now: int, subscription: Subscription, wish: Wish, destination: Destination
) -> None:
    """Adds the queues that the wildcards mean, and those that come later unless it is a browser."""
    services = session.kernel.services
    subscription.order_parts()
    consumer = WildcardConsumer(
        AddressPattern(destination.name, services.config.wildcard),
        not subscription.browser,
        _adder(session, subscription, wish, destination),
    )
    wildcard_queues = session.wildcard_queues
    wildcard_queues.watch(session.kernel.identity, session.connection.conn, subscription.key(), consumer)
    wildcard_queues.add_all(now, consumer, list(services.queue_registry.by_name.values()))


def _adder(
    session: StompSession, subscription: Subscription, wish: Wish, destination: Destination
) -> Callable[[int, Queue], None]:
    """Returns the function that adds a queue to a subscription with wildcards."""
    return lambda now, queue: _add_queue(session, now, subscription, wish, destination, queue)


def _add_queue(
    session: StompSession,
    now: int,
    subscription: Subscription,
    wish: Wish,
    destination: Destination,
    queue: Queue,
) -> None:
    """Adds a queue. One that the user may not consume, or that takes no further consumer, is left out."""
    name = queue.name
    if subscription.has_queue(name):
        return
    kernel = session.kernel
    permission = BROWSE if subscription.browser else CONSUME
    wanted = join_fqqn(queue.spec.address, name)
    if not kernel.services.permissions.allows(kernel.identity, permission, wanted):
        session.report_left_out(name, BrokerError(SECURITY, refusal_text(kernel.identity.user, permission, wanted)))
        return
    try:
        _add_part(session, now, subscription, wish, destination.matched(name), True)
    except BrokerError as error:
        session.report_left_out(name, error)


def _add_part(
    session: StompSession, now: int, subscription: Subscription, wish: Wish, destination: Destination, matched: bool
) -> None:
    kernel = session.kernel
    queue = queue_for(
        kernel, now, destination, wish.selector, wish.plain_selector, wish.durable_name, wish.retroactive
    )
    number = session.take_consumer_number()
    part = Part(subscription, number, destination, queue.name if queue.own else None, matched)
    session.add_part(part)
    try:
        kernel.create_consumer(
            now, number, queue.name, queue.selector, subscription.browser, wish.priority, wish.exclusive
        )
    except BrokerError:
        session.remove_part(part)
        raise
    if wish.prefetch != UNLIMITED:
        kernel.count_messages(number, wish.prefetch, wish.pending_max)
    if destination.selector_aware and not subscription.browser:
        take_selectors(kernel, now, split_fqqn(destination.name)[1])
    if subscription.confirmed:
        begin_credits(session, part)


# -- the end --------------------------------------------------------------------------------------
def unsubscribe(session: StompSession, now: int, frame: Frame) -> None:
    """Ends a subscription, by its id or destination. With the name of a durable one its queue is deleted, too."""
    durable_name = frame.first(DURABLE_NAMES)
    if durable_name is None and session.classic and session.connection.version != V10:
        frame.required("id")
    key = _key_of(session, frame)
    subscription = None if key is None else session.subscriptions.pop(key, None)
    if subscription is not None:
        _close(session, now, subscription)
    elif durable_name is None:
        raise BrokerError(ILLEGAL_STATE, f"there is no subscription {(key or '')[:40]!r}")
    if durable_name is not None:
        session.kernel.delete_queue(now, durable_queue_name(session.kernel, durable_name))
    session.done_when_durable(session.token_for(frame.get("receipt")))


def _key_of(session: StompSession, frame: Frame) -> str | None:
    """Returns the key of the subscription that UNSUBSCRIBE names by its id or, as in STOMP 1.0, its destination."""
    key = frame.get("id")
    if key is not None:
        return key
    text = frame.get("destination")
    if text is not None and text not in session.subscriptions:
        for each, subscription in session.subscriptions.items():
            if subscription.text == text:
                return each
    return text


def _close(session: StompSession, now: int, subscription: Subscription) -> None:
    """Closes the kernel's consumers. In Classic the messages that the client holds count as delivered."""
    kernel = session.kernel
    session.wildcard_queues.unwatch(kernel.identity, session.connection.conn, subscription.key())
    subscription.end()
    for part in list(subscription.parts.values()):
        session.remove_part(part)
        if part.number in kernel.consumers:
            kernel.close_consumer(now, part.number, session.classic)
        queue = part.own_queue
        if queue is not None and session.has_queue(queue):  # it may be deleted with its last consumer
            end_queue(kernel, now, queue)
