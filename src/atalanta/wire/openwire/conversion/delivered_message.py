"""The OpenWire message for a message of the broker."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.sessions.ingress_headers import VALIDATED_USER
from atalanta.message.message import COMPRESSED, LARGE_SIZE, Message
from atalanta.message.properties import STRING, PropertyValue
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import BrokerId, MessageId
from atalanta.wire.openwire.commands.messages import (
    ActiveMQBytesMessage,
    ActiveMQMapMessage,
    ActiveMQMessage,
    ActiveMQObjectMessage,
    ActiveMQStreamMessage,
    ActiveMQTextMessage,
)
from atalanta.wire.openwire.conversion.body import openwire_body, primitive_of
from atalanta.wire.openwire.conversion.destination import of_text
from atalanta.wire.openwire.conversion.message_id import made_id, parsed_id, with_text
from atalanta.wire.openwire.conversion.sent_message import (
    BROKERS_PREFIX,
    CONNECTION_ID,
    CORRELATION_ID,
    GROUP_ID,
    GROUP_SEQUENCE,
    MESSAGE_ID,
    OPENWIRE_PREFIX,
    ORIGINAL_DESTINATION,
    REPLY_TO,
    TYPE,
)
from atalanta.wire.openwire.encoding.primitives import encode_map
from atalanta.wire.openwire.networks.broker_path import BROKER_PATH, path_of

ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
# Told to an OpenWire client that gets the encoded body of a message that cannot be converted.
NOT_CONVERTED: Final = "AtalantaNotConverted"
CLASSES: Final[dict[int, type[ActiveMQMessage]]] = {
    codes.MESSAGE: ActiveMQMessage,
    codes.BYTES_MESSAGE: ActiveMQBytesMessage,
    codes.MAP_MESSAGE: ActiveMQMapMessage,
    codes.OBJECT_MESSAGE: ActiveMQObjectMessage,
    codes.STREAM_MESSAGE: ActiveMQStreamMessage,
    codes.TEXT_MESSAGE: ActiveMQTextMessage,
}
OWN_FIELDS: Final = dict.fromkeys((CORRELATION_ID, REPLY_TO, TYPE, CONNECTION_ID, LARGE_SIZE, COMPRESSED), True)


class Fields:
    """The fields of OpenWire that stand for properties of the broker, and the other properties.

    `temporary` as in `delivered_message`.
    """

    def __init__(self, temporary: dict[str, int]) -> None:
        self.temporary = temporary
        self.correlation_id: str | None = None
        self.jms_type: str | None = None
        self.group_id: str | None = None
        self.group_sequence: int = 0
        self.user_id: str | None = None
        self.reply_to: ActiveMQDestination | None = None
        self.original_destination: ActiveMQDestination | None = None
        self.broker_path: list[BrokerId] | None = None
        self.properties: dict[str, object] = {}

    def take(self, name: str, code: int, value: PropertyValue) -> None:
        """Takes a property of type `code`."""
        if not (name in OWN_FIELDS or name.startswith((BROKERS_PREFIX, OPENWIRE_PREFIX))):
            self.properties[name] = value.hex() if isinstance(value, bytes) else primitive_of(code, value)
        elif isinstance(value, bytes) and name == CORRELATION_ID:
            self.correlation_id = value.decode("utf-8", "replace")
        elif isinstance(value, int) and name == GROUP_SEQUENCE:
            self.group_sequence = value
        elif isinstance(value, str):
            self._take_text(name, value)

    def _take_text(self, name: str, value: str) -> None:
        if name == CORRELATION_ID:
            self.correlation_id = value
        elif name == TYPE:
            self.jms_type = value
        elif name == GROUP_ID:
            self.group_id = value
        elif name == VALIDATED_USER:
            self.user_id = value
        elif name == REPLY_TO:
            self.reply_to = reply_destination(value, self.temporary)
        elif name == BROKER_PATH:
            self.broker_path = path_of(value)
        elif name == ORIGINAL_DESTINATION:
            self.original_destination = of_text(value)
        elif name == ORIGINAL_ADDRESS and self.original_destination is None:
            self.original_destination = ActiveMQQueue(value)

    def encoded(self) -> bytes | None:
        """Returns the other properties in OpenWire's encoding; None without any."""
        return encode_map("properties", self.properties) if self.properties else None


def delivered_message(
    message: Message,
    body: bytes,
    destination: ActiveMQDestination,
    message_id: MessageId,
    redeliveries: int,
    temporary: dict[str, int],
) -> ActiveMQMessage:
    """Returns the message for a client that consumes `destination`.

    `temporary`: the temporary destinations of OpenWire clients here, name to type. A reply goes to any other one as to
    a queue or topic, which clients accept without having heard of it.
    """
    converted = openwire_body(message, body)
    fields = Fields(temporary)
    for name, (code, value) in message.properties.entries.items():
        fields.take(name, code, value)
    if converted.failure:
        fields.take(NOT_CONVERTED, STRING, converted.failure)
    return CLASSES[converted.code](
        producer_id=message_id.producer_id,
        destination=destination,
        original_destination=fields.original_destination,
        message_id=message_id,
        group_id=fields.group_id,
        group_sequence=fields.group_sequence,
        correlation_id=fields.correlation_id,
        persistent=message.durable,
        expiration=message.expiration,
        priority=message.priority,
        reply_to=fields.reply_to,
        timestamp=message.timestamp,
        jms_type=fields.jms_type,
        content=converted.content,
        marshalled_properties=fields.encoded(),
        redelivery_counter=redeliveries,
        user_id=fields.user_id,
        broker_path=fields.broker_path,
    )


def message_id_of(message: Message, node_id: str, number: int) -> MessageId:
    """Returns the id that the sender gave, or one of the broker's; `number`: of this delivery, at the connection."""
    text = message.property_value(MESSAGE_ID)
    if not isinstance(text, str):
        return made_id(node_id, int(message.id), message.user_id, number)
    found = parsed_id(text, number)
    return with_text(made_id(node_id, int(message.id), None, number), text) if found is None else found


def reply_destination(text: str, temporary: dict[str, int]) -> ActiveMQDestination:
    """Returns the destination for replies that a client of any protocol named; a plain name is a queue."""
    found = of_text(text)
    if found is None:
        return ActiveMQQueue(text)
    name = found.physical_name or ""
    code = found.code()
    if code == codes.TEMP_QUEUE and temporary.get(name) != code:
        return ActiveMQQueue(name)
    if code == codes.TEMP_TOPIC and temporary.get(name) != code:
        return ActiveMQTopic(name)
    return found
