"""Encoding of messages for speed, and decoding of typed properties to Python values.

This code is interpreted and runs for every sent message. Names are encoded once; a value takes one struct call, a
message one join. docs/internals/protocols/core.md has the layouts of properties and HDR.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from atalanta.message.encoding.buffer import Reader, utf16_units
from atalanta.message.properties import (
    BYTE,
    CHAR,
    FLOAT,
    INT,
    SHORT,
    Byte,
    Char,
    Float,
    Int,
    PropertyValue,
    Short,
    TypedProperties,
    fits_float,
)

# Properties that are attributes of a message, or internal to the protocol.
RESERVED: Final = (
    "JMSCorrelationID", "JMSReplyTo", "_AMQ_DUPL_ID", "_AMQ_GROUP_ID", "_AMQ_LARGE_COMPRESSED",
    "_AMQ_LARGE_SIZE", "_AMQ_ROUTING_TYPE", "__AMQ_CID",
)  # fmt: skip
NAMES_MAX: Final = 4_096  # property names cached in encoded form

_pack_size = struct.Struct(">i").pack
_pack_long = struct.Struct(">Bq").pack
_pack_int = struct.Struct(">Bi").pack
_pack_short = struct.Struct(">Bh").pack
_pack_byte = struct.Struct(">Bb").pack
_pack_double = struct.Struct(">Bd").pack
_pack_float = struct.Struct(">Bf").pack
_pack_sized = struct.Struct(">Bi").pack
_pack_count = struct.Struct(">Bi").pack

_names: dict[str, bytes] = {}


def encoded_name(name: str) -> bytes:
    """Returns the name as a SimpleString, cached for frequent names."""
    known = _names.get(name)
    if known is None:
        if not isinstance(name, str):
            raise TypeError(f"a property name must be str, not {type(name).__name__}: {name!r}")
        if not name:
            raise ValueError("a property name is empty")
        text = name.encode("utf-16-le", "surrogatepass")
        known = _pack_size(len(text)) + text
        if len(_names) < NAMES_MAX:
            _names[name] = known
    return known


def _string(value: str) -> bytes:
    text = value.encode("utf-16-le", "surrogatepass")
    return _pack_sized(10, len(text)) + text


def _boolean(value: bool) -> bytes:
    return b"\x02\x01" if value else b"\x02\x00"


def _long(value: int) -> bytes:
    return _pack_long(7, value)


def _double(value: float) -> bytes:
    return _pack_double(9, value)


def _bytes(value: bytes) -> bytes:
    return _pack_sized(4, len(value)) + value


def _null(value: None) -> bytes:
    return b"\x00"


def _int(value: int) -> bytes:
    return _pack_int(6, value)


def _short(value: int) -> bytes:
    return _pack_short(5, value)


def _byte(value: int) -> bytes:
    return _pack_byte(3, value)


def _float(value: float) -> bytes:
    if not fits_float(value):
        raise ValueError("is too large for a float")
    return _pack_float(8, value)


def _char(value: str) -> bytes:
    if utf16_units(value) != 1:
        raise ValueError("is not one UTF-16 unit")
    return b"\x0b" + value.encode("utf-16-be", "surrogatepass")


_ENCODERS: Final[dict[type, Callable[[Any], bytes]]] = {
    str: _string,
    bool: _boolean,
    int: _long,
    float: _double,
    bytes: _bytes,
    type(None): _null,
    Int: _int,
    Short: _short,
    Byte: _byte,
    Float: _float,
    Char: _char,
    bytearray: _bytes,
}


def encode_value(name: str, value: object) -> bytes:
    """Encodes type code and value. Raises TypeError or ValueError, which names the property."""
    encoder = _ENCODERS.get(value.__class__)
    if encoder is None:
        for base, found in _ENCODERS.items():
            if isinstance(value, base):
                encoder = found
                break
        else:
            kind = type(value).__name__
            raise TypeError(f"property {name}: a {kind} cannot be sent as a property")
    try:
        return encoder(value)
    except (struct.error, ValueError) as error:
        raise ValueError(f"property {name}: {value!r}: {error}") from None


def append_properties(parts: list[bytes], properties: Mapping[str, PropertyValue]) -> None:
    """Appends name, type and value of each property. The caller writes the count."""
    names = _names
    encoders = _ENCODERS
    for name, value in properties.items():
        key = names.get(name)
        parts.append(encoded_name(name) if key is None else key)
        encoder = encoders.get(value.__class__)
        if encoder is None:
            parts.append(encode_value(name, value))
            continue
        try:
            parts.append(encoder(value))
        except (struct.error, ValueError) as error:
            raise ValueError(f"property {name}: {value!r}: {error}") from None


def properties_prefix(count: int) -> bytes:
    """Returns the bytes before `count` properties (at least one)."""
    return _pack_count(1, count)


def encode_map(entries: Mapping[str, PropertyValue]) -> bytes:
    """Encodes the body of a map message."""
    if not entries:
        return b"\x00"
    parts = [properties_prefix(len(entries))]
    append_properties(parts, entries)
    return b"".join(parts)


def encode_text(text: str) -> bytes:
    """Encodes the body of a text message: a nullable SimpleString."""
    raw = text.encode("utf-16-le", "surrogatepass")
    return _pack_sized(1, len(raw)) + raw


_WRAPPERS: Final[dict[int, Callable[[Any], PropertyValue]]] = {
    INT: Int,
    SHORT: Short,
    BYTE: Byte,
    FLOAT: Float,
    CHAR: Char,
}


def python_values(properties: TypedProperties) -> dict[str, PropertyValue]:
    """Returns the values by name. Java types without a Python counterpart keep their wrappers."""
    wrappers = _WRAPPERS
    found: dict[str, PropertyValue] = {}
    for name, (code, value) in properties.entries.items():
        wrapper = wrappers.get(code)
        found[name] = value if wrapper is None else wrapper(value)
    return found


def decode_map(body: bytes) -> dict[str, PropertyValue]:
    """Decodes the entries of a map message."""
    return python_values(TypedProperties.decode(Reader(body))) if body else {}
