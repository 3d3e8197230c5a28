"""The OpenWire message for a message of the broker."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.queue.spec import MULTICAST
from atalanta.kernel.sessions.ingress_headers import VALIDATED_USER
from atalanta.message.encoding.buffer import decode_utf16, encode_utf16
from atalanta.message.message import COMPRESSED, LARGE_SIZE, Message, properties_reader, usual_text
from atalanta.message.properties import (
    ENTRY_BYTES_MIN,
    STRING,
    PropertyValue,
    decode_value,
    skip_value,
)
from atalanta.wire.openwire.broker_path import BROKER_PATH, path_of
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import BrokerId, MessageId
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.conversion.body import Body, openwire_body, primitive_of
from atalanta.wire.openwire.conversion.destination import ROUTING_TYPE, of_text
from atalanta.wire.openwire.conversion.message_id import (
    Correlations,
    IdTexts,
    made_id,
    with_text,
)
from atalanta.wire.openwire.conversion.nested_values import NESTED_PROPERTIES, nested_values
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

INT_MIN: Final = -(1 << 31)
INT_MAX: Final = (1 << 31) - 1
ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
NOTIFICATION: Final = "_AMQ_NotifType"  # of a message that is one; OpenWireMessageConverter hides others' properties
ORIGINAL_ROUTING_TYPE: Final = "_AMQ_ORIG_ROUTING_TYPE"
# Told to an OpenWire client that gets the encoded body of a message that cannot be converted.
NOT_CONVERTED: Final = "AtalantaNotConverted"
OWN_FIELDS: Final = dict.fromkeys((CORRELATION_ID, REPLY_TO, TYPE, CONNECTION_ID, LARGE_SIZE, COMPRESSED), True)

# Properties that every message of an OpenWire client has, and none of the fields.
UNUSED: Final = {encode_utf16(name): True for name in (ROUTING_TYPE, CONNECTION_ID, MESSAGE_ID)}


class Fields:
    """The fields of OpenWire that stand for properties of the broker, and the other properties.

    The arguments are as in `delivered_message`.
    """

    def __init__(self, temporary: dict[str, int], correlations: Correlations) -> None:
        self.temporary = temporary
        self.correlations = correlations
        self.correlation_id: str | None = None
        self.jms_type: str | None = None
        self.group_id: str | None = None
        self.group_sequence: int = 0
        self.user_id: str | None = None
        self.reply_to: ActiveMQDestination | None = None
        self.original_destination: ActiveMQDestination | None = None
        self.original_address: str | None = None
        self.broker_path: list[BrokerId] | None = None
        self.notification: bool = False
        self.properties: dict[str, object] = {}
        self.kept: bytes | None = None  # the maps and lists of the properties

    def take_all(self, message: Message) -> None:
        """Takes the properties of a message, which stay encoded."""
        reader = properties_reader(message)
        if reader.uint8("properties") == 0:
            return
        self.notification = message.has_property(NOTIFICATION)
        for _ in range(reader.count("properties.count", ENTRY_BYTES_MIN)):
            key = reader.blob("property name")
            code = reader.uint8("property name")
            if key in UNUSED:
                skip_value(reader, code, "property value")
            else:
                name = decode_utf16(key)
                self.take(name, code, decode_value(reader, code, name))

    def take(self, name: str, code: int, value: PropertyValue) -> None:
        """Takes a property of type `code`."""
        if self.notification and name.startswith(BROKERS_PREFIX):
            self.properties[name] = value.hex() if isinstance(value, bytes) else primitive_of(code, value)
        elif not (name in OWN_FIELDS or name.startswith((BROKERS_PREFIX, OPENWIRE_PREFIX))):
            self.properties[name] = value.hex() if isinstance(value, bytes) else primitive_of(code, value)
        elif isinstance(value, bytes) and name == CORRELATION_ID:
            self.correlation_id = value.decode("utf-8", "replace")
        elif isinstance(value, bytes) and name == NESTED_PROPERTIES:
            self.kept = value
        elif name == ORIGINAL_ROUTING_TYPE and value == MULTICAST and self.original_address is not None:
            self.original_destination = ActiveMQTopic(self.original_address)
        elif isinstance(value, int) and name == GROUP_SEQUENCE:
            self.group_sequence = min(max(value, INT_MIN), INT_MAX)  # of another protocol: any number
        elif isinstance(value, str):
            self._take_text(name, value)

    def _take_text(self, name: str, value: str) -> None:
        if name == CORRELATION_ID:
            self.correlation_id = self.correlations.original(value)
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
            self.original_address = value
            self.original_destination = ActiveMQQueue(value)  # a topic, if its routing type says so

    def encoded(self) -> bytes | None:
        """Returns the other properties in OpenWire's encoding; None without any."""
        if not self.properties:
            return None
        if self.kept is not None:
            nested = nested_values(self.kept)
            for name in nested.by_name:
                if name in self.properties:
                    self.properties[name] = nested.put_back(name, self.properties[name])
        return encode_map("properties", self.properties)


class DeliveredMessage(OpenWireMessage):
    """A message for a client, of any type."""

    def __init__(
        self,
        body: Body,
        fields: Fields,
        message: Message,
        destination: ActiveMQDestination,
        message_id: MessageId,
        redeliveries: int,
    ) -> None:
        super().__init__(
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
            content=body.content,
            marshalled_properties=fields.encoded(),
            redelivery_counter=redeliveries,
            user_id=fields.user_id,
            broker_path=fields.broker_path,
        )
        self._code = body.code

    def code(self) -> int:
        return self._code


def delivered_message(
    message: Message,
    body: bytes,
    destination: ActiveMQDestination,
    message_id: MessageId,
    redeliveries: int,
    temporary: dict[str, int],
    correlations: Correlations,
) -> DeliveredMessage:
    """Returns the message for a client that consumes `destination`.

    `temporary`: the temporary destinations of OpenWire clients here, name to type. A reply goes to any other one as to
    a queue or topic, which clients accept without having heard of it. `correlations` of the node.
    """
    converted = openwire_body(message, body)
    fields = Fields(temporary, correlations)
    fields.take_all(message)
    if converted.failure:
        fields.take(NOT_CONVERTED, STRING, converted.failure)
    return DeliveredMessage(converted, fields, message, destination, message_id, redeliveries)


def message_id_of(message: Message, node_id: str, number: int, ids: IdTexts) -> MessageId:
    """Returns the id that the sender gave, or one of the broker's; `number`: of this delivery, at the connection."""
    text = usual_text(message, MESSAGE_ID)
    if text is None:
        return made_id(node_id, int(message.id), message.user_id, number)
    found = ids.parsed(text, number)
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
