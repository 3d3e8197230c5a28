"""Typed properties of a message, which keep their Java types (Artemis' TypedProperties).

Layout: int8 0, or 1 · int32 count · count × { SimpleString name · int8 type · value }.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64, mypyc_attr

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer, utf16_units

PropertyValue = bool | int | float | str | bytes | None

NULL: Final = 0
BOOLEAN: Final = 2
BYTE: Final = 3
BYTES: Final = 4
SHORT: Final = 5
INT: Final = 6
LONG: Final = 7
FLOAT: Final = 8
DOUBLE: Final = 9
STRING: Final = 10
CHAR: Final = 11

TYPE_NAMES: Final = (
    "null", "type 1", "boolean", "byte", "bytes", "short", "int", "long", "float", "double",
    "string", "char",
)  # fmt: skip

# Bytes of a value of each type. VARIABLE: an int32 length precedes the value. UNKNOWN: no such type.
VARIABLE: Final = 254
UNKNOWN: Final = 255
VALUE_BYTES: Final = bytes([0, UNKNOWN, 1, 1, VARIABLE, 2, 4, 8, 4, 8, VARIABLE, 2])

# The smallest number that rounds to more than the largest float.
FLOAT_LIMIT: Final = (2 - 2**-24) * 2.0**127
INFINITY: Final = float("inf")

ENTRY_BYTES_MIN: Final = 5  # an empty name of 4 bytes and a null value

# Parts of the result of scan_properties. A frame is far smaller than SCAN_END.
SCAN_END: Final = (1 << 40) - 1
SCAN_SPECIAL: Final = 1 << 40
SCAN_ROUTING_SHIFT: Final = 41
# Pieces of `_AMQ_ROUTING_TYPE` in UTF-16LE: `_AMQ` and `_`, `ROUT`, `ING_`, `TYPE`.
AMQ: Final = 0x5F0041004D005100
UNDERSCORE: Final = 0x5F
ROUT: Final = 0x52004F0055005400
ING_: Final = 0x49004E0047005F00
TYPE: Final = 0x5400590050004500
AMQ_BYTES: Final = 10
ROUTING_TYPE_BYTES: Final = 34
# `__HD`, with which `__HDR_BROKER_PATH` begins (internal_headers.py).
HEADER: Final = 0x5F005F0048004400
BROKER_PATH_BYTES: Final = 34


@mypyc_attr(native_class=False)
class Byte(int):
    """An int that is sent as Java's byte."""


@mypyc_attr(native_class=False)
class Short(int):
    """An int that is sent as Java's short."""


@mypyc_attr(native_class=False)
class Int(int):
    """An int that is sent as Java's int (a plain int is a long)."""


@mypyc_attr(native_class=False)
class Float(float):
    """A float that is sent as Java's float (a plain float is a double)."""


@mypyc_attr(native_class=False)
class Char(str):
    """A text of one UTF-16 unit that is sent as Java's char."""


class TypedProperties:
    """An ordered map of names to a type code and a plain value (bool, int, float, str, bytes or None)."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[int, PropertyValue]] = {}
        # Set by every change; Message reads it to detect an outdated encoding.
        self.changed: bool = False

    def get(self, name: str) -> PropertyValue:
        """Returns the plain value, None also if the property does not exist."""
        entry = self.entries.get(name)
        return None if entry is None else entry[1]

    def put(self, name: str, value: PropertyValue) -> None:
        """Sets a property. The value decides the type: int is long, float is double, a wrapper has its own type."""
        self.put_typed(name, type_of_value(value), value)

    def put_typed(self, name: str, code: int, value: PropertyValue) -> None:
        """Sets a property of type `code`. Raises ValueError, which names the property, if the value does not fit."""
        self.entries[name] = (code, plain_value(name, code, value))
        self.changed = True

    def remove(self, name: str) -> bool:
        """Removes a property and returns True if it existed."""
        if name not in self.entries:
            return False
        del self.entries[name]
        self.changed = True
        return True

    def __contains__(self, name: str) -> bool:
        return name in self.entries

    def __len__(self) -> int:
        return len(self.entries)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedProperties) and self.entries == other.entries

    def __hash__(self) -> int:
        raise TypeError("TypedProperties can change, so they have no hash")

    def __repr__(self) -> str:
        parts = [f"{name}={value!r}" for name, (_, value) in self.entries.items()]
        return f"TypedProperties({', '.join(parts)})"

    def names(self) -> list[str]:
        return list(self.entries)

    def items(self) -> list[tuple[str, PropertyValue]]:
        return [(name, entry[1]) for name, entry in self.entries.items()]

    def copy(self) -> TypedProperties:
        twin = TypedProperties()
        twin.entries = self.entries.copy()
        twin.changed = self.changed
        return twin

    @staticmethod
    def decode(reader: Reader) -> TypedProperties:
        """Decodes properties. A repeated name keeps its first position and its last value.

        Raises DecodeError, which names the property.
        """
        properties = TypedProperties()
        if reader.int8("properties") == 0:
            return properties
        for _ in range(reader.count("properties.count", ENTRY_BYTES_MIN)):
            name = reader.simple_string("property name")
            code = reader.uint8(name)
            properties.entries[name] = (code, decode_value(reader, code, name))
        return properties

    def encode(self, writer: Writer) -> None:
        """Encodes the properties. An empty map is one zero byte, like in Artemis."""
        if not self.entries:
            writer.int8(0)
            return
        writer.int8(1)
        writer.int32(len(self.entries))
        for name, (code, value) in self.entries.items():
            writer.simple_string(name)
            writer.int8(code)
            encode_value(writer, code, value)


def type_of_value(value: PropertyValue) -> int:
    """Returns the default type code of a Python value."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        if isinstance(value, Byte):
            return BYTE
        if isinstance(value, Short):
            return SHORT
        return INT if isinstance(value, Int) else LONG
    if isinstance(value, float):
        return FLOAT if isinstance(value, Float) else DOUBLE
    if isinstance(value, str):
        return CHAR if isinstance(value, Char) else STRING
    if isinstance(value, bytes):
        return BYTES
    raise TypeError(f"a property cannot hold a {type(value).__name__}")


def plain_value(name: str, code: int, value: PropertyValue) -> PropertyValue:
    """Returns `value` without its wrapper. Raises ValueError if it does not fit type `code`."""
    if code == NULL and value is None:
        return None
    if code == BOOLEAN and isinstance(value, bool):
        return value
    if code == BYTES and isinstance(value, bytes):
        return bytes(value)
    if (code == STRING or code == CHAR) and isinstance(value, str):
        text = str(value)
        if code == STRING or utf16_units(text) == 1:
            return text
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if code == DOUBLE or (code == FLOAT and fits_float(float(value))):
            return float(value)
        if isinstance(value, int):
            number = int(value)
            if fits(code, number):
                return number
    kind = TYPE_NAMES[code] if 0 <= code < len(TYPE_NAMES) else f"type {code}"
    raise ValueError(f"property {name}: {value!r} does not fit {kind}")


def fits(code: int, number: int) -> bool:
    """Returns True if the integer type `code` can represent `number`."""
    if code == LONG:
        return -(1 << 63) <= number < 1 << 63
    if code == INT:
        return -(1 << 31) <= number < 1 << 31
    if code == SHORT:
        return -(1 << 15) <= number < 1 << 15
    return code == BYTE and -128 <= number < 128


def fits_float(number: float) -> bool:
    """Returns True if a Java float can represent `number` after rounding. Infinities and NaN are accepted."""
    return not FLOAT_LIMIT <= abs(number) < INFINITY


def decode_value(reader: Reader, code: int, what: str) -> PropertyValue:
    """Decodes the value that follows its type code."""
    if code == STRING:
        return reader.simple_string(what)
    if code == LONG:
        return reader.int64(what)
    if code == INT:
        return reader.int32(what)
    if code == DOUBLE:
        return reader.float64(what)
    if code == BOOLEAN:
        return reader.boolean(what)
    if code == BYTE:
        return reader.int8(what)
    if code == BYTES:
        return reader.blob(what)
    if code == NULL:
        return None
    if code == SHORT:
        return reader.int16(what)
    if code == FLOAT:
        return reader.float32(what)
    if code == CHAR:
        return chr(reader.int16(what) & 0xFFFF)
    raise DecodeError(what, int(reader.position) - 1, f"unknown property type {code}")


def skip_value(reader: Reader, code: int, what: str) -> None:
    """Advances behind the value that follows its type code."""
    size: i64 = VALUE_BYTES[code] if code <= CHAR else UNKNOWN
    if size == UNKNOWN:
        raise DecodeError(what, int(reader.position) - 1, f"unknown property type {code}")
    reader.advance(i64(reader.int32(what)) if size == VARIABLE else size, what)


def encode_value(writer: Writer, code: int, value: PropertyValue) -> None:
    """Encodes `value`, a result of plain_value: `code` determines its Python type."""
    if isinstance(value, bool):
        # True is 1 here, 0xFF in packets: TypedProperties writes through netty's own buffer.
        writer.uint8(1 if value else 0)
    elif isinstance(value, int):
        if code == LONG:
            writer.int64(value)
        elif code == INT:
            writer.int32(value)
        elif code == SHORT:
            writer.int16(value)
        else:
            writer.int8(value)
    elif isinstance(value, float):
        if code == DOUBLE:
            writer.float64(value)
        else:
            writer.float32(value)
    elif isinstance(value, str):
        if code == CHAR:
            writer.raw(value.encode("utf-16-be", "surrogatepass"))
        else:
            writer.simple_string(value)
    elif isinstance(value, bytes):
        writer.blob(value)


def scan_properties(data: bytes, position: i64, end: i64) -> i64:
    """Returns the offset after the properties (& SCAN_END) and flags above it.

    SCAN_SPECIAL: a name begins with `_AMQ_` and is not `_AMQ_ROUTING_TYPE`, or is `__HDR_BROKER_PATH`. The two bits
    from SCAN_ROUTING_SHIFT on are the value of `_AMQ_ROUTING_TYPE` + 1; 0 means that it is missing. The loop is written
    out by hand for speed: every received message passes through it. Raises DecodeError like decode.
    """
    if end - position < 1:
        raise DecodeError("properties", int(position), "missing")
    if data[position] == 0:
        return position + 1
    if end - position < 5:
        raise DecodeError("properties.count", int(position), "missing")
    count: i64 = i64(read_i32_be(data, position + 1))
    position += 5
    if count < 0 or count * ENTRY_BYTES_MIN > end - position:
        raise DecodeError("properties.count", int(position) - 4, f"{count} do not fit")
    marks: i64 = 0
    for _ in range(count):
        if end - position < 5:
            raise DecodeError("property name", int(position), "missing")
        length: i64 = i64(read_i32_be(data, position))
        if length < 0 or length & 1 or length > end - position - 5:
            raise DecodeError("property name", int(position), f"length {length}")
        name = position + 4
        position += length + 5
        code: i64 = i64(data[position - 1])
        if length >= AMQ_BYTES and read_i64_be(data, name) == AMQ and data[name + 8] == UNDERSCORE:
            if (
                length == ROUTING_TYPE_BYTES
                and code == BYTE
                and end > position
                and data[name + 9] == 0
                and read_i64_be(data, name + 10) == ROUT
                and read_i64_be(data, name + 18) == ING_
                and read_i64_be(data, name + 26) == TYPE
            ):
                if data[position] <= 1:
                    marks |= (i64(data[position]) + 1) << SCAN_ROUTING_SHIFT
                else:
                    marks |= SCAN_SPECIAL
            else:
                marks |= SCAN_SPECIAL
        elif length == BROKER_PATH_BYTES and read_i64_be(data, name) == HEADER:
            marks |= SCAN_SPECIAL
        size: i64 = VALUE_BYTES[code] if code <= CHAR else UNKNOWN
        if size == VARIABLE:
            if end - position < 4:
                raise DecodeError("property value", int(position), "missing")
            size = i64(read_i32_be(data, position))
            position += 4
            if size < 0 or (code == STRING and size & 1):
                raise DecodeError("property value", int(position) - 4, f"length {size}")
        elif size == UNKNOWN:
            raise DecodeError("property value", int(position) - 1, f"unknown property type {code}")
        if size > end - position:
            raise DecodeError("property value", int(position), f"needs {size} bytes")
        position += size
    return position | marks


def find_value(data: bytes, position: i64, key: bytes) -> i64:
    """Returns the offset of the type code of the name `key` (UTF-16LE) in the properties at `position`, or -1.

    The properties must have passed scan_properties. A byte search answers most calls. A match needs a walk over
    the entries, since a value may contain the same bytes.
    """
    return -1 if data.find(key, position) < 0 else walk_to_value(data, position, key)


def walk_to_value(data: bytes, position: i64, key: bytes) -> i64:
    """Returns the same as find_value without a byte search: for a name that is usually there."""
    if data[position] == 0:
        return -1
    count: int = read_i32_be(data, position + 1)
    position += 5
    size = len(key)
    for _ in range(count):
        length: int = read_i32_be(data, position)
        position += length + 5
        if length == size and data.startswith(key, position - 1 - length):
            return position - 1
        step: int = VALUE_BYTES[data[position - 1]]
        if step == VARIABLE:
            step = read_i32_be(data, position) + 4
        position += step
    return -1
