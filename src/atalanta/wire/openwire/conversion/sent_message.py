"""The broker's message for one that an OpenWire client sent (OpenWireMessageConverter of Artemis).

Reply destination, correlation id, type, group and delivery time become the fields that CORE's clients read. The id of
OpenWire is kept in a property, and the UUID for CORE's clients is made of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import MULTICAST
from atalanta.kernel.registry.duplicate_spaces import (
    CLIENT,
    NETWORK,
    NETWORK_USER,
    SEPARATOR,
    begin_of_sent,
    sent_id,
    user_space,
)
from atalanta.message.instant import later_ms
from atalanta.message.message import Message
from atalanta.message.message_writer import MessageWriter, encoded_property
from atalanta.message.properties import Int
from atalanta.message.repetition import (
    CRON_OPTION,
    PERIOD_OPTION,
    REPETITION_OPTIONS,
    SCHEDULED,
    TIMES_OPTION,
    wanted_repetition,
)
from atalanta.wire.openwire.bodies import properties_of
from atalanta.wire.openwire.broker_path import BROKER_PATH, path_text
from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
from atalanta.wire.openwire.commands.identifiers import MessageId
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.conversion.body import core_body
from atalanta.wire.openwire.conversion.destination import (
    BrokerDestination,
    Route,
    text_of_destination,
)
from atalanta.wire.openwire.conversion.message_id import IdTexts, id_text, with_text
from atalanta.wire.openwire.conversion.nested_values import (
    NESTED_BODY,
    NESTED_PROPERTIES,
    NestedValues,
)
from atalanta.wire.openwire.conversion.sent_pattern import SentPattern, sent_pattern
from atalanta.wire.openwire.encoding.frame_pattern import CONTENT_BYTES_MAX

if TYPE_CHECKING:
    from atalanta.kernel.ports import Trace
    from atalanta.kernel.settings.scheduler import Scheduler

MESSAGE_ID: Final = "__HDR_MESSAGE_ID"
ORIGINAL_DESTINATION: Final = "__HDR_ORIG_DESTINATION"
OPENWIRE_PREFIX: Final = "__HDR_"
CONNECTION_ID: Final = "__AMQ_CID"  # the client id, for noLocal
BROKERS_PREFIX: Final = "_AMQ_"
GROUP_ID: Final = "_AMQ_GROUP_ID"
GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
LAST_VALUE: Final = "_AMQ_LVQ_NAME"
CORRELATION_ID: Final = "JMSCorrelationID"
REPLY_TO: Final = "JMSReplyTo"
TYPE: Final = "JMSType"
DELAY: Final = "AMQ_SCHEDULED_DELAY"
SCHEDULE: Final = dict.fromkeys((DELAY, *REPETITION_OPTIONS), True)
OWN_PROPERTIES: Final = dict.fromkeys((CORRELATION_ID, REPLY_TO, TYPE, CONNECTION_ID), True)
# Properties of the broker that applications set.
FOR_SENDERS: Final = (DUPLICATE_ID, LAST_VALUE)
PRIORITY_MAX: Final = 9
DELAY_MS_MAX: Final = 100 * 365 * 86_400_000
SHOWN_MAX: Final = 40  # characters of a value in an error
PATTERNS_MAX: Final = 4  # of one connection: it may have several producers
QUEUE_AND_TOPIC: Final = "::"  # no queue has that name
NUMBER: Final = re.compile(r"-?[0-9]{1,18}\Z")


T = TypeVar("T")


class Sender:
    """The sender as the broker knows it.

    `space`: of the duplicate ids that are made of its messages' ids (kernel/registry/duplicate_spaces.py), as it may
    send again after a failover; or empty. `bridge`: it is the bridge of another broker, whose messages have ids of
    their own senders.
    """

    def __init__(self, client_id: str, body_bytes_max: int, scheduler: Scheduler, trace: Trace) -> None:
        self.client_id = client_id
        self.connection_id = encoded_property(CONNECTION_ID, client_id)
        self.writer = MessageWriter()
        self.ids = IdTexts()
        self.body_bytes_max = body_bytes_max
        self.scheduler = scheduler
        self.trace = trace
        self.last_route: Route | None = None
        self.space: bytes = b""
        self.bridge: bool = False
        self._seen: list[OpenWireMessage] = []
        self._patterns: list[SentPattern] = []

    def repeated_message(self, source: OpenWireMessage, target: BrokerDestination) -> Message | None:
        """Returns the message of a command that differs from one before it in its id, its times and its body only."""
        for pattern in self._patterns:
            if pattern.covers(source, target):
                return pattern.message(source, self.body_bytes_max)
        return None

    def learn(self, source: OpenWireMessage, target: BrokerDestination, message: Message, text: str) -> None:
        """Keeps the pattern of a command that comes for the second time: the decoder found the frame to be a repeat."""
        size = len(source.content or b"") + len(source.marshalled_properties or b"")
        if size > CONTENT_BYTES_MAX:
            return
        if not any(source is each for each in self._seen):
            _append(self._seen, source)
            return
        found = sent_pattern(source, target, message, MESSAGE_ID, text)
        if found is not None:
            self._patterns = [each for each in self._patterns if not each.covers(source, target)]
            _append(self._patterns, found)

    def become_bridge(self, user: str, trusted: bool) -> None:
        """Records that the client is the bridge of another broker: it sends again what was not confirmed.

        `trusted`: its user has the right to name messages for all bridges.
        """
        self.space = NETWORK if trusted else user_space(NETWORK_USER, user)
        self.bridge = True

    def may_repeat(self, user: str) -> None:
        """Records that the client of that user sends again after a failover."""
        self.space = user_space(CLIENT, user)


def _append(kept: list[T], value: T) -> None:
    if len(kept) == PATTERNS_MAX:
        kept.pop(0)
    kept.append(value)


def sent_message(
    source: OpenWireMessage,
    target: BrokerDestination,
    sender: Sender,
    now_ms: int,
    original: ActiveMQDestination | None,
) -> Message:
    """Returns the message for the target. `original`: the composite destination of which it is a part.

    DecodeError: damaged. BrokerError: something in it is not supported.
    """
    if original is None:
        found = sender.repeated_message(source, target)
        if found is not None:
            return found
    nested_body, nested = NestedValues(), NestedValues()
    kind, body = core_body(source, sender.body_bytes_max, nested_body)
    priority = min(max(source.priority, 0), PRIORITY_MAX)
    timestamp = max(source.timestamp, 0)  # 0: its client writes none (setDisableMessageTimestamp)
    message_id = source.message_id
    user_id = None if message_id is None else sender.ids.uuid(message_id)
    properties = sender.writer
    properties.begin(
        target.encoded, user_id, kind, source.persistent, max(source.expiration, 0), timestamp, priority
    )
    properties.add(target.encoded_routing_type)
    properties.add(sender.connection_id)
    _put_fields(properties, source)
    if original is not None:
        properties.put(ORIGINAL_DESTINATION, text_of_destination(original))
    schedule: dict[str, object] = {}
    hops = len(source.broker_path or [])
    scheduler = sender.scheduler
    named = _put_properties(properties, source, nested, schedule, hops > 0, scheduler.on)
    if nested_body.by_name:
        properties.put(NESTED_BODY, nested_body.encoded())
    if nested.by_name:
        properties.put(NESTED_PROPERTIES, nested.encoded())
    text, duplicate_id = "", None
    if message_id is not None:
        text = sender.ids.text(message_id)
        properties.put(MESSAGE_ID, text)
        if sender.space and not target.temporary and not named:
            duplicate_id = _duplicate_id(sender, message_id, text, target, hops)
    message = properties.finish(body)
    if not schedule:
        message.sent_id = duplicate_id
        if original is None and not named:
            sender.learn(source, target, message, text)
        return message
    if scheduler.on:
        _schedule(message, schedule, now_ms, scheduler.period_ms_min)
    else:
        scheduler.pass_over(sender.trace, sender.client_id)
    # A copy has its properties encoded only: messages may wait long, and there may be many.
    found = message.copy(0)
    found.sent_id = duplicate_id
    return found


def _duplicate_id(sender: Sender, message_id: MessageId, text: str, target: BrokerDestination, hops: int) -> bytes:
    """Returns the id by which a repeat is found at the address.

    A message of a queue may come back after it has passed more brokers; one of a topic that comes two ways is a repeat.
    One that another broker has copied to several queues of one address comes once for each, and so does one for a queue
    and a topic of one name.

    What a client has sent here is no repeat of what a bridge brings: the client may have sent it to both brokers, and
    if each took the other's copy for a repeat, the message would be lost.
    """
    if message_id.text_view:  # a client writes there what it likes
        text = f"{text}{SEPARATOR}{id_text(with_text(message_id, ''))}"
    counted = 0 if target.routing_type == MULTICAST and not target.queue else hops
    queue = QUEUE_AND_TOPIC if target.again else target.queue
    return sent_id(begin_of_sent(sender.space, queue, counted), text)


def _put_fields(properties: MessageWriter, source: OpenWireMessage) -> None:
    """Copies the fields of OpenWire that CORE has as properties."""
    if source.reply_to is not None:
        properties.put(REPLY_TO, text_of_destination(source.reply_to))
    if source.correlation_id is not None:
        properties.put(CORRELATION_ID, source.correlation_id)
    if source.jms_type is not None:
        properties.put(TYPE, source.jms_type)
    if source.group_id is not None:
        properties.put(GROUP_ID, source.group_id)
        properties.put(GROUP_SEQUENCE, Int(source.group_sequence))
    if source.broker_path:
        properties.put(BROKER_PATH, path_text(source.broker_path))


def _put_properties(
    properties: MessageWriter, source: OpenWireMessage, nested: NestedValues, schedule: dict[str, object],
    passed: bool, schedules: bool,
) -> bool:  # fmt: skip
    """Copies the application's properties; those of a schedule into `schedule`, unless nothing is scheduled also there.

    Returns True if a duplicate id is among them. It counts at the broker of its sender alone (`passed`: not here).
    """
    if source.marshalled_properties is None:
        return False
    named = False
    for name, value in properties_of(source).items():
        if name in SCHEDULE:
            schedule[name] = value
            if schedules:
                continue
        if passed and name == DUPLICATE_ID:
            continue
        elif name in FOR_SENDERS or not (name in OWN_PROPERTIES or name.startswith((BROKERS_PREFIX, OPENWIRE_PREFIX))):
            properties.put(name, nested.flat(name, value))
            named = named or name == DUPLICATE_ID
    return named


def _schedule(message: Message, options: dict[str, object], now_ms: int, period_ms_min: int) -> None:
    """Schedules the message. Its time to live begins when it is delivered (SchedulerBroker of ActiveMQ Classic)."""
    delay_ms = min(_number(DELAY, options), DELAY_MS_MAX)
    cron = options.get(CRON_OPTION)
    try:
        repetition = wanted_repetition(
            _number(PERIOD_OPTION, options), _number(TIMES_OPTION, options), "" if cron is None else str(cron),
            period_ms_min,
        )  # fmt: skip
    except ValueError as error:
        raise BrokerError(ILLEGAL_STATE, str(error)) from None
    if repetition is None and delay_ms <= 0:
        return
    at_ms = later_ms(now_ms, delay_ms) if repetition is None else repetition.first_ms(now_ms, delay_ms)
    if message.expiration > 0:
        message.expiration = later_ms(message.expiration, at_ms - (message.timestamp or now_ms))
    if repetition is None:
        message.properties.put(SCHEDULED, at_ms)
    else:
        repetition.put(message, at_ms)


def _number(name: str, options: dict[str, object]) -> int:
    """Returns a number that clients send as any type, 0 without one. BrokerError for another value."""
    value = options.get(name)
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and NUMBER.match(value):
        return int(value)
    shown = "its value"
    if isinstance(value, str):
        shown = f"'{value[:SHOWN_MAX]}'"
    elif isinstance(value, bool | float):
        shown = str(value).lower()
    raise BrokerError(ILLEGAL_STATE, f"{name}: {shown} is no number")
