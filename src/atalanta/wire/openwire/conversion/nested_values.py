"""Maps and lists in maps, streams and properties of OpenWire messages. CORE has none: there they are texts, in JSON.

A property of the message keeps them, so that they reach OpenWire clients as they were. It counts as long as the texts
are there: an application may have sent the message again with another body.
"""

from __future__ import annotations

import json
from typing import Final

from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.properties import PropertyValue
from atalanta.wire.openwire.encoding.primitives import decode_map, encode_map

NESTED_BODY: Final = "__HDR_NESTED_BODY"
NESTED_PROPERTIES: Final = "__HDR_NESTED_PROPERTIES"


class NestedValues:
    """The maps and lists of one body, or of the properties, by name; those of a stream by their position in it."""

    def __init__(self) -> None:
        self.by_name: dict[str, object] = {}

    def flat(self, name: str, value: object) -> PropertyValue:
        """Returns a primitive of OpenWire as CORE has it; a map or list is kept, and becomes a text."""
        if value is None or isinstance(value, (bool, str, bytes)):
            return value
        if isinstance(value, (int, float)):
            return value
        self.by_name[name] = value
        return _json(value)

    def put_back(self, name: str, value: object) -> object:
        """Returns the map or list whose text the value is, or else the value."""
        found = self.by_name.get(name)
        return found if found is not None and value == _json(found) else value

    def encoded(self) -> bytes:
        """Returns the bytes that a property of the message keeps."""
        return encode_map("nested", self.by_name)


def nested_values(kept: PropertyValue) -> NestedValues:
    """Returns the values that a property of a message keeps. Other clients may set it: what is damaged is nothing."""
    found = NestedValues()
    if isinstance(kept, bytes):
        try:
            found.by_name = decode_map(kept, "nested")
        except DecodeError:  # the texts stay, and say the same
            found.by_name = {}
    return found


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=_digits)


def _digits(value: bytes) -> str:
    """Returns bytes as JSON has them."""
    return value.hex()
