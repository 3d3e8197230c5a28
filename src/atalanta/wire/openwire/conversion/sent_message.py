"""The broker's message for one that an OpenWire client sent (OpenWireMessageConverter of Artemis).

Reply destination, correlation id, type, group and delivery time become the fields that CORE's clients read. The id of
OpenWire is kept in a property, and the UUID for CORE's clients is made of it.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.message.message import Message
from atalanta.message.message_writer import MessageWriter, encoded_property
from atalanta.message.properties import Int
from atalanta.wire.openwire.bodies import properties_of
from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.conversion.body import core_body, property_of
from atalanta.wire.openwire.conversion.destination import Route, Target, text_of_destination
from atalanta.wire.openwire.conversion.message_id import IdTexts

MESSAGE_ID: Final = "__HDR_MESSAGE_ID"
ORIGINAL_DESTINATION: Final = "__HDR_ORIG_DESTINATION"
OPENWIRE_PREFIX: Final = "__HDR_"
CONNECTION_ID: Final = "__AMQ_CID"  # the client id, for noLocal
BROKERS_PREFIX: Final = "_AMQ_"
GROUP_ID: Final = "_AMQ_GROUP_ID"
GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
SCHEDULED: Final = "_AMQ_SCHED_DELIVERY"
DUPLICATE_ID: Final = "_AMQ_DUPL_ID"
LAST_VALUE: Final = "_AMQ_LVQ_NAME"
CORRELATION_ID: Final = "JMSCorrelationID"
REPLY_TO: Final = "JMSReplyTo"
TYPE: Final = "JMSType"
DELAY: Final = "AMQ_SCHEDULED_DELAY"
# ScheduledMessage of activemq-client: what is not there yet.
REPEATED: Final = ("AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT", "AMQ_SCHEDULED_CRON")
OWN_PROPERTIES: Final = dict.fromkeys((CORRELATION_ID, REPLY_TO, TYPE, DELAY, CONNECTION_ID), True)
# Properties of the broker that applications set.
FOR_SENDERS: Final = (DUPLICATE_ID, LAST_VALUE)
PRIORITY_MAX: Final = 9
DELAY_MS_MAX: Final = 100 * 365 * 86_400_000


class Sender:
    """The sender as the broker knows it. `repeats`: it may send again after a failover, so ids are checked."""

    def __init__(self, client_id: str, body_bytes_max: int) -> None:
        self.client_id = client_id
        self.connection_id = encoded_property(CONNECTION_ID, client_id)
        self.writer = MessageWriter()
        self.ids = IdTexts()
        self.body_bytes_max = body_bytes_max
        self.last_route: Route | None = None
        self.repeats: bool = False

    def remember_route(self, route: Route) -> None:
        """Keeps the route of the last message."""
        self.last_route = route

    def may_repeat(self) -> None:
        """Records that the client sends again after a failover."""
        self.repeats = True


def sent_message(
    source: OpenWireMessage, target: Target, sender: Sender, now_ms: int, original: ActiveMQDestination | None
) -> Message:
    """Returns the message for the target. `original`: the composite destination of which it is a part.

    DecodeError: damaged. BrokerError: something in it is not supported.
    """
    kind, body = core_body(source, sender.body_bytes_max)
    priority = min(max(source.priority, 0), PRIORITY_MAX)
    timestamp = source.timestamp if source.timestamp > 0 else now_ms
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
    named = False if source.marshalled_properties is None else _put_properties(properties, source, now_ms)
    if message_id is not None:
        text = sender.ids.text(message_id)
        properties.put(MESSAGE_ID, text)
        if sender.repeats and not target.temporary and not named:
            properties.put(DUPLICATE_ID, text)
    return properties.finish(body)


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


def _put_properties(properties: MessageWriter, source: OpenWireMessage, now_ms: int) -> bool:
    """Copies the application's properties; returns True if a duplicate id is among them."""
    delay: object = None
    named = False
    for name, value in properties_of(source).items():
        if name == DELAY:
            delay = value
        elif name in REPEATED and value:
            raise BrokerError(
                ILLEGAL_STATE, f"{name}: repeated delivery is not supported yet: send with AMQ_SCHEDULED_DELAY alone"
            )
        elif name in FOR_SENDERS or not (name in OWN_PROPERTIES or name.startswith((BROKERS_PREFIX, OPENWIRE_PREFIX))):
            properties.put(name, property_of(name, value))
            named = named or name == DUPLICATE_ID
    delay_ms = _number(delay)
    if delay_ms > 0:
        properties.put(SCHEDULED, now_ms + min(delay_ms, DELAY_MS_MAX))
    return named


def _number(value: object) -> int:
    """Returns a number that clients send as any type. BrokerError for another value."""
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    raise BrokerError(ILLEGAL_STATE, f"{DELAY}: {value!r} is no number of milliseconds")
