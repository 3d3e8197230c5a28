"""Readers of fields: the loose encoding, and the tight one, which packs booleans into bits before all other bytes.

Sources: BaseDataStreamMarshaller, BooleanStream and OpenWireFormat of activemq-client.
"""

from __future__ import annotations

from typing import Final, TypeVar, cast

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.encoding.java_utf8 import decode_java_utf8
from atalanta.wire.openwire.encoding.cache import ReadCache
from atalanta.wire.openwire.encoding.frame_pattern import (
    CONTENT_SIZE,
    MESSAGE_FIELDS,
    VariableField,
)
from atalanta.wire.openwire.encoding.structure import Command, DataStructure, FieldReader
from atalanta.wire.openwire.encoding.throwable import StackFrame, Throwable

# Real commands nest four deep: a dispatch, its message, its structure, an identifier.
DEPTH_MAX: Final = 16
# Structures of one frame: an empty one takes a byte here and some hundred in memory.
STRUCTURES_MAX: Final = 100_000
CAUSES_MAX: Final = 32
# A line of a stack has a line number and three texts, which may be null.
STACK_FRAME_BYTES_MIN: Final = 4

# Lengths of the bits: one byte, or these marks before a longer length.
BITS_UINT8: Final = 0xC0
BITS_INT16: Final = 0x80

S = TypeVar("S", bound=DataStructure)


class LooseReader(FieldReader):
    """The loose encoding: a boolean is a byte, a long has eight.

    `kinds` has an object of each class by their codes, which the version decides. `cache` is None if caching is off.
    """

    def __init__(
        self,
        version: int,
        kinds: list[DataStructure | None],
        cache: ReadCache | None,
        stack_traces: bool,
    ) -> None:
        super().__init__(b"")
        self.version = version
        self._kinds = kinds
        self._cache = cache
        self._stack_traces = stack_traces
        self._depth: int = 0
        self._structures: int = 0
        self._fields: list[VariableField] | None = None  # while `variable_fields` reads
        self._start: i64 = 0

    def cache_changes(self) -> int:
        """Returns how often the cache has changed."""
        return 0 if self._cache is None else self._cache.changes

    def variable_fields(self, data: bytes, start: i64, end: i64) -> list[VariableField]:
        """Returns the fields of the frame `data[start:end]` in which others of its sender differ, in their order."""
        fields: list[VariableField] = []
        self._fields = fields
        self._start = start
        try:
            self.command(data, start, end)
        finally:
            self._fields = None
        return fields

    def _record(self, what: str, size: i64) -> None:
        """Records a field that was just read."""
        fields = self._fields
        if fields is not None and what in MESSAGE_FIELDS:
            fields.append(VariableField(what, self.position - size - self._start, size))

    def _record_content(self, what: str, size: i64) -> None:
        fields = self._fields
        if fields is not None and what in MESSAGE_FIELDS:
            fields.append(VariableField(what, self.position - size - 4 - self._start, CONTENT_SIZE))

    def command(self, data: bytes, start: i64, end: i64) -> DataStructure | None:
        """Returns the structure that fills `data[start:end]`, None for the code 0."""
        self.begin(data, start, end)
        self._depth = 0
        self._structures = 0
        code = self.uint8("type")
        if code == 0:
            found = None
        else:
            found = self._new(code, "type")
            self._begin_bits()
            if self._fields is not None and isinstance(found, Command):
                self._fields.append(VariableField("command_id", self.position - self._start, 4))
            self._read(found, "type")
        self._end()
        if self.position != self.end:
            left = self.left()
            raise DecodeError("end", self.position, f"{left} bytes behind the last field")
        return found

    def _begin_bits(self) -> None:
        return None

    def _end(self) -> None:
        return None

    def _new(self, code: int, what: str) -> DataStructure:
        kind = self._kinds[code]
        if kind is None:
            text = f"unknown type {code} in version {self.version}"
            raise DecodeError(what, self.position - 1, text)
        self._structures += 1
        if self._structures > STRUCTURES_MAX:
            raise DecodeError(what, self.position, f"more than {STRUCTURES_MAX} structures")
        return kind.fresh()

    def _read(self, found: DataStructure, what: str) -> None:
        """Reads the fields of a structure. An error names its class, too."""
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise DecodeError(what, self.position, f"nested more than {DEPTH_MAX} deep")
        try:
            found.read(self)
        except DecodeError as error:
            name = f"{found.__class__.__name__}.{error.field}"
            raise DecodeError(name, error.offset, error.text) from None
        self._depth -= 1

    def flag(self, what: str) -> bool:
        return self.data[self.advance(1, what)] != 0

    def long(self, what: str) -> int:
        value = int(read_i64_be(self.data, self.advance(8, what)))
        if self._fields is not None:
            self._record(what, 8)
        return value

    def text(self, what: str) -> str | None:
        return self._utf(what) if self.flag(what) else None

    def _utf(self, what: str) -> str:
        """Reads an uint16 length and modified UTF-8."""
        size = i64(read_i16_be(self.data, self.advance(2, what))) & 0xFFFF
        start = self.advance(size, what)
        encoded = self.data[start : self.position]
        if encoded.isascii():
            return encoded.decode("ascii")
        text = decode_java_utf8(encoded)
        if text is None:
            raise DecodeError(what, start, "not Java's UTF-8")
        return text

    def octets(self, what: str) -> bytes | None:
        if not self.flag(what):
            return None
        size = i64(read_i32_be(self.data, self.advance(4, what)))
        start = self.advance(size, what)
        if self._fields is not None:
            self._record_content(what, size)
        return self.data[start : self.position]

    def structure(self, what: str, kind: type[S]) -> S | None:
        if not self.flag(what):
            return None
        found = self._new(self.uint8(what), what)
        self._check(found, what, kind)
        self._begin_nested(found, what)
        self._read(found, what)
        return cast(S, found)

    def _begin_nested(self, found: DataStructure, what: str) -> None:
        return None

    def _check(self, found: DataStructure, what: str, kind: type[DataStructure]) -> None:
        if not isinstance(found, kind):
            text = f"{found.__class__.__name__} instead of {kind.__name__}"
            raise DecodeError(what, self.position - 1, text)

    def cached(self, what: str, kind: type[S]) -> S | None:
        cache = self._cache
        if cache is None:
            return self.structure(what, kind)
        new = self.flag(what)
        index = int(read_i16_be(self.data, self.advance(2, what)))
        start = self.position
        if new:
            made = self.structure(what, kind)
            cache.put(index, made, int(self.position - start), what, int(start) - 2)
            return made
        found = cache.get(index, what, int(start) - 2)
        if found is not None:
            self._check(found, what, kind)
        return cast("S | None", found)

    def structures(self, what: str, kind: type[S]) -> list[S] | None:
        if not self.flag(what):
            return None
        count = self._count(what)
        found: list[S] = []
        for _ in range(count):
            each = self.structure(what, kind)
            if each is None:
                raise DecodeError(what, self.position, "null in a list")
            found.append(each)
        return found

    def _count(self, what: str) -> int:
        """Reads an int16 number of entries. Each has a byte at least: its type."""
        count = self.int16(what)
        if count < 0 or count > self.left():
            raise DecodeError(what, self.position - 2, f"{count} entries in {self.left()} bytes")
        return count

    def throwable(self, what: str) -> Throwable | None:
        first: Throwable | None = None
        last: Throwable | None = None
        for _ in range(CAUSES_MAX):
            if not self.flag(what):
                return first
            name = self.text(what)
            message = self.text(what)
            found = Throwable(name, message, self._stack(what) if self._stack_traces else None)
            if last is None:
                first = found
            else:
                last.cause = found
            if not self._stack_traces:
                return first
            last = found
        raise DecodeError(what, self.position, f"more than {CAUSES_MAX} causes")

    def _stack(self, what: str) -> list[StackFrame]:
        count = self.int16(what)
        if count < 0 or count * STACK_FRAME_BYTES_MIN > self.left():
            raise DecodeError(what, self.position - 2, f"{count} lines in {self.left()} bytes")
        return [
            StackFrame(self.text(what), self.text(what), self.text(what), self.int32(what))
            for _ in range(count)
        ]


class TightReader(LooseReader):
    """The tight encoding. The bits of all structures of a frame are together behind its type."""

    def __init__(
        self,
        version: int,
        kinds: list[DataStructure | None],
        cache: ReadCache | None,
        stack_traces: bool,
    ) -> None:
        super().__init__(version, kinds, cache, stack_traces)
        # The next bit and the end of the bits, counted from the begin of the data.
        self._bit: i64 = 0
        self._bits_end: i64 = 0

    def _begin_bits(self) -> None:
        size: i64 = self.data[self.advance(1, "bits")]
        if size == BITS_UINT8:
            size = self.data[self.advance(1, "bits")]
        elif size == BITS_INT16:
            size = i64(read_i16_be(self.data, self.advance(2, "bits")))
        self._bit = self.advance(size, "bits") * 8
        self._bits_end = self.position * 8

    def _end(self) -> None:
        if self._bits_end - self._bit >= 8:
            raise DecodeError("end", self._bit >> 3, "bits behind the last field")
        self._bit = 0
        self._bits_end = 0

    def _begin_nested(self, found: DataStructure, what: str) -> None:
        # Java has a form with bits of its own here, which no known client has ever sent.
        if found.aware() and self.flag(what):
            raise DecodeError(what, self.position, "a structure in marshalled form")

    def flag(self, what: str) -> bool:
        bit = self._bit
        if bit >= self._bits_end:
            raise DecodeError(what, bit >> 3, "the bits end here")
        self._bit = bit + 1
        octet: i64 = self.data[bit >> 3]
        return (octet >> (bit & 7)) & 1 != 0

    def long(self, what: str) -> int:
        """Reads 0, 2, 4 or 8 bytes; the shorter ones without a sign."""
        value, size = 0, 0
        if self.flag(what):
            if self.flag(what):
                value, size = int(read_i64_be(self.data, self.advance(8, what))), 8
            else:
                value, size = int(i64(read_i32_be(self.data, self.advance(4, what))) & 0xFFFFFFFF), 4
        elif self.flag(what):
            value, size = int(i64(read_i16_be(self.data, self.advance(2, what))) & 0xFFFF), 2
        if self._fields is not None:
            self._record(what, size)
        return value

    def text(self, what: str) -> str | None:
        """Reads a text: a second bit says that it is ASCII without U+0000, with a signed length."""
        if not self.flag(what):
            return None
        if not self.flag(what):
            return self._utf(what)
        size = i64(read_i16_be(self.data, self.advance(2, what)))
        start = self.advance(size, what)
        # Java takes each byte for one character.
        return self.data[start : self.position].decode("latin-1")
