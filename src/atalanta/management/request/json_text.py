"""JSON of single messages in management answers (Message.toMap, JsonUtil.truncate)."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.routing.uuid_namespace import uuid_text
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.internal_headers import ORIGIN
from atalanta.message.message import LARGE_SIZE, TEXT

if TYPE_CHECKING:
    from atalanta.kernel.queue.reference import Reference
    from atalanta.message.message import Message
    from atalanta.message.properties import PropertyValue



def encode_json(value: object) -> str:
    """Encodes JSON without blanks, like Artemis' JSON writer; tools replace text in it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def read_object(text: str) -> dict[str, object]:
    """Returns the JSON object in `text`. BrokerError if it is something else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrokerError(ILLEGAL_STATE, f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BrokerError(ILLEGAL_STATE, "a JSON object is needed")
    return found


def message_map(message: Message, limit: int) -> dict[str, object]:
    """Returns headers and properties of one message. Values longer than `limit` (-1: unlimited) are cut."""
    found: dict[str, object] = {
        name: plain(value, limit) for name, value in message.properties.items() if name != ORIGIN
    }
    found["messageID"] = int(message.id)
    if message.user_id is not None:
        found["userID"] = "ID:" + uuid_text(message.user_id)
    found["address"] = message.address
    found["type"] = message.kind
    found["durable"] = message.durable
    found["expiration"] = message.expiration
    found["timestamp"] = message.timestamp
    found["priority"] = message.priority
    return found


def browsed_map(reference: Reference, limit: int) -> dict[str, object]:
    """Returns `message_map` with the further fields of CompositeData: body, redelivered, large.

    Artemis answers `browse` with serialized Java objects. These maps have the same keys.
    """
    message = reference.message
    found = message_map(message, limit)
    found["redelivered"] = reference.delivery_count > 0
    found["largeMessage"] = message.has_property(LARGE_SIZE)
    found["persistentSize"] = persistent_size(message)
    if message.kind == TEXT and not found["largeMessage"]:
        try:
            found["text"] = plain(message.text(), limit)
            return found
        except DecodeError:
            pass  # declared as text by the sender, but malformed: its bytes are shown
    found["BodyPreview"] = plain(bytes(message.body), limit)
    return found


def persistent_size(message: Message) -> int:
    """Returns the bytes of a message on disk, with its large body (LargeServerMessageImpl.getPersistentSize)."""
    large = message.large
    return message.size if large is None else message.size + large.size


def plain(value: PropertyValue, limit: int) -> object:
    """Returns a property as JSON: bytes become signed numbers, null an empty text."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        cut = value if limit < 0 else value[:limit]
        return [number - 256 if number > 127 else number for number in cut]
    if isinstance(value, str):
        if 0 <= limit < len(value):
            return f"{value[:limit]}, + {len(value) - limit} more"
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
