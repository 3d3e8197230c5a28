"""The headers of a MESSAGE frame."""

from __future__ import annotations

from typing import Final

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.kernel.routing.uuid_namespace import uuid_text
from atalanta.kernel.sessions.ingress_headers import INGRESS_TIMESTAMP, VALIDATED_USER
from atalanta.message.internal_headers import MEMBERS_ONLY
from atalanta.message.message import COMPRESSED, LARGE_SIZE, Message
from atalanta.message.properties import PropertyValue
from atalanta.message.repetition import JOB, SCHEDULED
from atalanta.wire.stomp.body_text import property_text
from atalanta.wire.stomp.destination import ROUTING_NAMES, Destinations
from atalanta.wire.stomp.sent_message import (
    CONTENT_TYPE,
    CORRELATION_ID,
    GROUP_ID,
    GROUP_SEQUENCE,
    REPLY_TO,
    ROUTING_TYPE,
    TYPE,
)

# Properties with a name of their own in STOMP.
NAMES: Final = {
    CORRELATION_ID: "correlation-id",
    TYPE: "type",
    CONTENT_TYPE: "content-type",
    GROUP_ID: "JMSXGroupID",
    GROUP_SEQUENCE: "JMSXGroupSeq",
    VALIDATED_USER: "JMSXUserID",
    INGRESS_TIMESTAMP: "ingress-timestamp",
}
BROKERS_OWN: Final = "_AMQ_"
# Of a dead letter: where it comes from.
ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ORIGINAL_ROUTING_TYPE: Final = "_AMQ_ORIG_ROUTING_TYPE"
HIDDEN: Final = dict.fromkeys((*MEMBERS_ONLY, LARGE_SIZE, COMPRESSED, SCHEDULED, JOB), True)
# Names that a property must not take: the frame's own headers.
FRAMES_OWN: Final = dict.fromkeys((
    "subscription", "message-id", "destination", "destination-type", "expires", "redelivered", "priority", "persistent",
    "reply-to", "timestamp", "ack", "content-length", "content-encoding", "JMSMessageID", "receipt", "transaction",
    *NAMES.values(),
), True)  # fmt: skip


def message_headers(
    message: Message, delivery_count: int, names: Destinations, classic: bool
) -> list[tuple[str, str]]:
    """Returns the headers that come from the message; the subscription and the body have their own.

    `classic`: `redelivered` and `persistent` are there only if they are true, and `original-destination` says where a
    dead letter comes from.
    """
    headers: list[tuple[str, str]] = []
    if message.user_id is not None:
        headers.append(("JMSMessageID", f"ID:{uuid_text(message.user_id)}"))
    if message.expiration:
        headers.append(("expires", str(message.expiration)))
    if not classic or delivery_count > 1:
        headers.append(("redelivered", "true" if delivery_count > 1 else "false"))
    headers.append(("priority", str(message.priority)))
    if not classic or message.durable:
        headers.append(("persistent", "true" if message.durable else "false"))
    headers.append(("timestamp", str(message.timestamp)))
    if classic:
        address = message.property_value(ORIGINAL_ADDRESS)
        if isinstance(address, str):
            routing_type = message.property_value(ORIGINAL_ROUTING_TYPE)
            topic = routing_type == MULTICAST
            headers.append(("original-destination", names.name_as(address, MULTICAST if topic else ANYCAST)))
    for name, value in message.properties.items():
        _add(headers, name, value, names)
    return headers


def _add(headers: list[tuple[str, str]], name: str, value: PropertyValue, names: Destinations) -> None:
    if value is None or name in HIDDEN:
        return
    known = NAMES.get(name)
    if known is not None:
        headers.append((known, property_text(value)))
    elif name == REPLY_TO:
        headers.append(("reply-to", names.own_name(property_text(value))))
    elif name == ROUTING_TYPE:
        if isinstance(value, int) and value in ROUTING_NAMES:
            headers.append(("destination-type", ROUTING_NAMES[value]))
    elif name not in FRAMES_OWN and not (isinstance(value, bytes) and name.startswith(BROKERS_OWN)):
        headers.append((name, property_text(value)))
