"""The broker's message for one that an OpenWire client sent (OpenWireMessageConverter of Artemis).

Reply destination, correlation id, type, group and delivery time become the fields that CORE's clients read. The id of
OpenWire is kept in a property, and the UUID for CORE's clients is made of it.
"""

from __future__ import annotations

from typing import Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import MULTICAST
from atalanta.message.message import Message
from atalanta.message.properties import Byte, Int
from atalanta.wire.openwire.bodies import properties_of
from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.conversion.body import core_body, property_of
from atalanta.wire.openwire.conversion.destination import Target, text_of_destination
from atalanta.wire.openwire.conversion.message_id import id_text, uuid_of
from atalanta.wire.openwire.networks.broker_path import BROKER_PATH, path_text

MESSAGE_ID: Final = "__HDR_MESSAGE_ID"
ORIGINAL_DESTINATION: Final = "__HDR_ORIG_DESTINATION"
OPENWIRE_PREFIX: Final = "__HDR_"
CONNECTION_ID: Final = "__AMQ_CID"  # the client id, for noLocal
BROKERS_PREFIX: Final = "_AMQ_"
GROUP_ID: Final = "_AMQ_GROUP_ID"
GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
SCHEDULED: Final = "_AMQ_SCHED_DELIVERY"
ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE"
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
    """The sender as the broker knows it. `repeats`: it may send again after a failover, so ids are checked.

    `bridge`: it is the bridge of another broker, whose messages have ids of their own senders.
    """

    def __init__(self, client_id: str, body_bytes_max: int) -> None:
        self.client_id = client_id
        self.body_bytes_max = body_bytes_max
        self.repeats: bool = False
        self.bridge: bool = False

    def become_bridge(self) -> None:
        """Records that the client is the bridge of another broker: it sends again what was not confirmed."""
        self.repeats = True
        self.bridge = True

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
    message = Message.create(target.name(), body, kind, source.persistent, timestamp, priority)
    message.expiration = max(source.expiration, 0)
    properties = message.properties
    properties.put(ROUTING_TYPE, Byte(target.routing_type))
    properties.put(CONNECTION_ID, sender.client_id)
    _put_fields(message, source)
    if original is not None:
        properties.put(ORIGINAL_DESTINATION, text_of_destination(original))
    delay: object = None
    for name, value in properties_of(source).items():
        if name == DELAY:
            delay = value
        elif name in REPEATED and value:
            raise BrokerError(
                ILLEGAL_STATE, f"{name}: repeated delivery is not supported yet: send with AMQ_SCHEDULED_DELAY alone"
            )
        elif name in FOR_SENDERS or not (name in OWN_PROPERTIES or name.startswith((BROKERS_PREFIX, OPENWIRE_PREFIX))):
            properties.put(name, property_of(name, value))
    delay_ms = _number(delay)
    if delay_ms > 0:
        properties.put(SCHEDULED, now_ms + min(delay_ms, DELAY_MS_MAX))
    message_id = source.message_id
    if message_id is not None:
        text = id_text(message_id)
        properties.put(MESSAGE_ID, text)
        message.user_id = uuid_of(text)
        if sender.repeats and not target.temporary:
            hops = len(source.broker_path or [])
            if hops > 1 or DUPLICATE_ID not in properties:
                properties.put(DUPLICATE_ID, _repeat_id(text, target, hops))
    # A copy has its properties encoded only: messages may wait long, and there may be many.
    return message.copy(0)


def _repeat_id(text: str, target: Target, hops: int) -> str:
    """Returns the id by which a repeat is found at the address.

    A message of a queue may come back after it has passed more brokers; one of a topic that comes two ways is a repeat.
    One that another broker has copied to several queues of one address comes once for each.
    """
    if target.queue:
        text = f"{text} {target.queue}"
    elif target.routing_type == MULTICAST:
        return text
    return f"{text} {hops}" if hops > 1 else text


def _put_fields(message: Message, source: OpenWireMessage) -> None:
    """Copies the fields of OpenWire that CORE has as properties."""
    properties = message.properties
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


def _number(value: object) -> int:
    """Returns a number that clients send as any type. BrokerError for another value."""
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    raise BrokerError(ILLEGAL_STATE, f"{DELAY}: {value!r} is no number of milliseconds")
