"""Messages as JSON objects, one per line: written by consume, browse and `data export`, read by `produce
--json-lines`.

Text is `text`, a map `map`, any other body `body_base64`. Property types that JSON does not distinguish are in
`property_types`; times are milliseconds since the epoch.
"""

from __future__ import annotations

import base64
import json
import math
from typing import Final

from atalanta.cli.messages.typed_properties import typed
from atalanta.cli.output.outcome import Refused
from atalanta.client import (
    Byte,
    Char,
    ClientError,
    Float,
    Int,
    Message,
    MessageTooLarge,
    Property,
    ReceivedMessage,
    Short,
)
from atalanta.client.encoding import encode_value
from atalanta.message.encoding.buffer import DecodeError
from atalanta.runtime.process.exit_codes import BAD_DATA

TYPE_NAMES: Final = {0: "default", 2: "object", 3: "text", 4: "bytes", 5: "map", 6: "stream"}
TYPE_NUMBERS: Final = {name: number for number, name in TYPE_NAMES.items()}
# Keys of the lines in an export of all queues that define what they name (cli/data/node_export.py).
EXPORT: Final = "export"
ADDRESS: Final = "export_address"
QUEUE: Final = "export_queue"
PRIORITY_MAX: Final = 9
LONG_MAX: Final = (1 << 63) - 1
WRAPPERS: Final = ((Byte, "byte"), (Short, "short"), (Int, "int"), (Float, "float"))


def type_name(number: int) -> str:
    return TYPE_NAMES.get(number, str(number))


def json_of(message: ReceivedMessage, oversized: bool = False) -> dict[str, object]:
    """Returns the message as a JSON object; absent values are left out.

    A body too large for memory raises MessageTooLarge. With `oversized` only its size is given, as `body_bytes`.
    """
    found: dict[str, object] = {
        "message_id": message.message_id,
        "address": message.address,
        "queue": message.queue,
        "type": type_name(message.type),
        "durable": message.durable,
        "priority": message.priority,
        "timestamp": message.timestamp_ms,
        "expiration": message.expires_at_ms,
        "delivery_count": message.delivery_count,
    }
    optional = {
        "routing_type": message.routing_type,
        "user_id": None if message.user_id is None else str(message.user_id),
        "group_id": message.group_id,
        "correlation_id": message.correlation_id,
        "reply_to": message.reply_to,
        "duplicate_id": message.duplicate_id,
    }
    for name, value in optional.items():
        if isinstance(value, bytes):
            found[f"{name}_base64"] = encoded(value)
        elif value is not None:
            found[name] = value
    try:
        _put_body(found, message)
    except MessageTooLarge:
        if not oversized:
            raise
        found["body_bytes"] = message.body_bytes
    _put_properties(found, message.properties)
    return found


def line_of_message(message: ReceivedMessage, oversized: bool = False) -> str:
    """Returns a line of valid UTF-8: lone surrogates, which Java's texts may have, are written as escapes."""
    line = json.dumps(json_of(message, oversized), ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _put_body(found: dict[str, object], message: ReceivedMessage) -> None:
    try:
        text, entries = message.text, message.map
    except MessageTooLarge:
        raise
    except (DecodeError, ClientError):
        text = entries = None  # the body does not match its type: written as bytes
    if text is not None:
        found["text"] = text
    elif entries is not None:
        values, types = plain(entries)
        found["map"] = values
        if types:
            found["map_types"] = types
    else:
        try:
            body = message.body
        except MessageTooLarge:
            raise
        except ClientError:
            body = message.stored_body  # any sender may say that a body is compressed
        if body:
            found["body_base64"] = encoded(body)


def _put_properties(found: dict[str, object], properties: dict[str, Property]) -> None:
    if properties:
        found["properties"], types = plain(properties)
        if types:
            found["property_types"] = types


def plain(properties: dict[str, Property]) -> tuple[dict[str, object], dict[str, str]]:
    """Returns values for JSON, and the types that JSON cannot distinguish."""
    values: dict[str, object] = {}
    types: dict[str, str] = {}
    for name, value in properties.items():
        values[name] = value
        for wrapper, kind in WRAPPERS:
            if isinstance(value, wrapper):
                types[name] = kind
        if isinstance(value, bytes):
            values[name], types[name] = encoded(value), "bytes"
        elif isinstance(value, Char):
            values[name], types[name] = str(value), "char"
        if isinstance(value, float) and not math.isfinite(value):
            values[name] = str(float(value))
            types.setdefault(name, "double")
    return values, types


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def decoded(text: object, place: str) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except ValueError as error:  # binascii.Error, or characters outside ASCII
        raise Refused(f"{place}: not base64: {error}", BAD_DATA) from None


def message_of(line: str, place: str) -> Message:
    """Returns the message of such a line. Refused (65) names `place` and the field."""
    return message_of_object(object_of(line, place), place)


def is_definition(line: str) -> bool:
    """Returns whether the line is a definition of an export, and not a message."""
    return line.startswith(tuple(f'{{"{name}":' for name in (EXPORT, ADDRESS, QUEUE)))


def object_of(line: str, place: str) -> dict[str, object]:
    """Returns the JSON object of a line. Refused (65) names `place`."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{place}: not JSON: {error}", BAD_DATA) from None
    if not isinstance(given, dict):
        raise Refused(f"{place}: not a JSON object", BAD_DATA)
    return given


def message_of_object(given: dict[str, object], place: str) -> Message:
    """Returns the message that a line's object describes. Refused (65) names `place` and the field."""
    try:
        return _message(given, place)
    except (TypeError, ValueError) as error:
        raise Refused(f"{place}: {error}", BAD_DATA) from None


def _message(given: dict[str, object], place: str) -> Message:
    text = given.get("text")
    raw = given.get("body_base64")
    entries = given.get("map")
    kind = given.get("type")
    correlation, duplicate = given.get("correlation_id"), given.get("duplicate_id")
    message = Message(
        None if raw is None else decoded(raw, f"{place}: body_base64"),
        text=None if text is None else str(text),
        map=None if entries is None else _values(entries, given.get("map_types"), place),
        properties=_values(given.get("properties") or {}, given.get("property_types"), place),
        durable=given.get("durable") is not False,
        priority=_whole(given, "priority", 4, PRIORITY_MAX),
        expires_at_ms=_whole(given, "expiration", 0, LONG_MAX),
        timestamp_ms=_whole(given, "timestamp", 0, LONG_MAX) or None,
        group_id=_text(given.get("group_id")),
        correlation_id=_text(correlation),
        reply_to=_text(given.get("reply_to")),
        duplicate_id=_text(duplicate),
    )
    if "correlation_id_base64" in given:
        message.correlation_id = decoded(given["correlation_id_base64"], f"{place}: correlation_id")
    if "duplicate_id_base64" in given:
        message.duplicate_id = decoded(given["duplicate_id_base64"], f"{place}: duplicate_id")
    if isinstance(kind, str) and kind in TYPE_NUMBERS:
        message.type = TYPE_NUMBERS[kind]
    return message


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _whole(given: dict[str, object], name: str, default: int, most: int) -> int:
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} is not a whole number")
    if not 0 <= value <= most:
        raise ValueError(f"{name} is not between 0 and {most}")
    return value


def _values(values: object, types: object, place: str) -> dict[str, Property]:
    if not isinstance(values, dict):
        raise ValueError("properties or map: not a JSON object")
    kinds = types if isinstance(types, dict) else {}
    found: dict[str, Property] = {}
    for name, value in values.items():
        kind = kinds.get(name)
        if kind == "bytes":
            found[name] = decoded(value, f"{place}: {name}")
        elif kind is not None:
            try:
                found[name] = typed(name, str(kind), str(value))
            except Refused as error:
                raise ValueError(str(error)) from None
        elif value is None or isinstance(value, bool | int | float | str):
            encode_value(name, value)
            found[name] = value
        else:
            raise ValueError(f"property {name}: neither text, number, boolean nor null")
    return found
