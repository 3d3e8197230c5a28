"""Writers of fields, the counterparts of the readers.

Java goes over a structure twice in tight form, first for the bits, then for the bytes. Here both are written in one
pass into two buffers: the order in each is the same.
"""

from __future__ import annotations

from typing import Final, TypeVar

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64, u8

from atalanta.wire.openwire.encoding.cache import NOT_CACHED, WriteCache
from atalanta.wire.openwire.encoding.modified_utf8 import encode_modified_utf8
from atalanta.wire.openwire.encoding.reader import BITS_INT16, BITS_UINT8
from atalanta.wire.openwire.encoding.structure import (
    DataStructure,
    EncodeError,
    FieldWriter,
    Identifier,
)
from atalanta.wire.openwire.encoding.throwable import Throwable

# Bytes of a text, of DataOutput.writeUTF and of the tight form.
TEXT_BYTES_MAX: Final = 65_535
TIGHT_TEXT_BYTES_MAX: Final = 32_766
ENTRIES_MAX: Final = 32_767
BITS_BYTES_MAX: Final = 32_767
# Longer lengths of the bits have a mark before them.
SHORT_BITS_BYTES: Final = 64

S = TypeVar("S", bound=DataStructure)


class LooseWriter(FieldWriter):
    """The loose encoding. `cache` is None if caching is off."""

    def __init__(self, version: int, cache: WriteCache | None, stack_traces: bool) -> None:
        super().__init__()
        self.version = version
        self._cache = cache
        self._stack_traces = stack_traces
        self._code: i64 = 0

    def command(self, value: DataStructure) -> i64:
        """Encodes a structure with its type and returns its bytes.

        Whatever goes wrong is an EncodeError: nothing is written, and the cache is as before.
        """
        self.clear()
        cache = self._cache
        if cache is not None:
            cache.begin()
        try:
            value.write(self)
            self._code = value.code()
            return self._size()
        except Exception as error:
            self.undo()
            name = value.__class__.__name__
            if isinstance(error, EncodeError):
                raise EncodeError(f"{name}.{error.field}", error.text) from error
            raise EncodeError(name, f"{error.__class__.__name__}: {error}") from error

    def undo(self) -> None:
        """Forgets the frame of the last `command`: it is not sent."""
        if self._cache is not None:
            self._cache.undo()

    def _size(self) -> i64:
        return len(self.out) + 1

    def copy_to(self, out: BytesWriter) -> None:
        """Writes the frame of the last `command`, without a length."""
        out.append(u8(self._code))
        out.write(self.out.getvalue())

    def flag(self, value: bool) -> None:
        self.out.append(u8(1) if value else u8(0))

    def long(self, value: int) -> None:
        write_i64_be(self.out, value)

    def text(self, what: str, value: str | None) -> None:
        self.flag(value is not None)
        if value is not None:
            self._utf(what, encode_modified_utf8(value), TEXT_BYTES_MAX)

    def _utf(self, what: str, encoded: bytes, bytes_max: int) -> None:
        size: i64 = len(encoded)
        if size > bytes_max:
            raise EncodeError(what, f"a text of {size} bytes: at most {bytes_max} can be sent")
        self.out.append(u8(size >> 8))
        self.out.append(u8(size & 0xFF))
        self.out.write(encoded)

    def octets(self, value: bytes | None) -> None:
        self.flag(value is not None)
        if value is not None:
            write_i32_be(self.out, i32(len(value)))
            self.out.write(value)

    def structure(self, value: DataStructure | None) -> None:
        self.flag(value is not None)
        if value is not None:
            self._begin_nested(value)
            self.out.append(u8(value.code()))
            value.write(self)

    def _begin_nested(self, value: DataStructure) -> None:
        return None

    def cached(self, value: Identifier | None) -> None:
        cache = self._cache
        if cache is None:
            self.structure(value)
            return
        index = cache.index(value)
        self.flag(index == NOT_CACHED)
        if index == NOT_CACHED:
            self._new_entry(cache, value)
        else:
            write_i16_be(self.out, i16(index))

    def _new_entry(self, cache: WriteCache, value: Identifier | None) -> None:
        """Writes an entry. Its index is taken before those of the structures inside it."""
        write_i16_be(self.out, i16(cache.add(value)))
        self.structure(value)

    def structures(self, what: str, values: list[S] | None) -> None:
        self.flag(values is not None)
        if values is None:
            return
        if len(values) > ENTRIES_MAX:
            raise EncodeError(what, f"{len(values)} entries: at most {ENTRIES_MAX} can be sent")
        write_i16_be(self.out, i16(len(values)))
        for each in values:
            self.structure(each)

    def throwable(self, what: str, value: Throwable | None) -> None:
        while value is not None:
            self.flag(True)
            self.text(what, value.class_name)
            self.text(what, value.message)
            if not self._stack_traces:
                return
            stack = value.stack[:ENTRIES_MAX]
            write_i16_be(self.out, i16(len(stack)))
            for each in stack:
                self.text(what, each.class_name)
                self.text(what, each.method)
                self.text(what, each.file)
                self.int32(each.line)
            value = value.cause
        self.flag(False)


class TightWriter(LooseWriter):
    """The tight encoding."""

    def __init__(self, version: int, cache: WriteCache | None, stack_traces: bool) -> None:
        super().__init__(version, cache, stack_traces)
        self._bits: BytesWriter = BytesWriter()
        self._octet: i64 = 0
        self._count: i64 = 0

    def clear(self) -> None:
        self.out.truncate(0)
        self._bits.truncate(0)
        self._octet = 0
        self._count = 0

    def _size(self) -> i64:
        if self._count:
            self._bits.append(u8(self._octet))
            self._count = 0
        size: i64 = len(self._bits)
        if size > BITS_BYTES_MAX:
            raise EncodeError("bits", f"{size} bytes of bits: at most {BITS_BYTES_MAX} can be sent")
        mark = 1 if size < SHORT_BITS_BYTES else 2 if size < 256 else 3
        return 1 + mark + size + len(self.out)

    def copy_to(self, out: BytesWriter) -> None:
        size: i64 = len(self._bits)
        out.append(u8(self._code))
        if size < SHORT_BITS_BYTES:
            out.append(u8(size))
        elif size < 256:
            out.append(u8(BITS_UINT8))
            out.append(u8(size))
        else:
            out.append(u8(BITS_INT16))
            write_i16_be(out, i16(size))
        out.write(self._bits.getvalue())
        out.write(self.out.getvalue())

    def flag(self, value: bool) -> None:
        if value:
            self._octet |= i64(1) << self._count
        self._count += 1
        if self._count == 8:
            self._bits.append(u8(self._octet))
            self._octet = 0
            self._count = 0

    def long(self, value: int) -> None:
        number: i64 = value
        if number & ~0xFFFF == 0:
            self.flag(False)
            self.flag(number != 0)
            if number != 0:
                self.out.append(u8(number >> 8))
                self.out.append(u8(number & 0xFF))
        elif number & ~0xFFFFFFFF == 0:
            self.flag(True)
            self.flag(False)
            write_i32_be(self.out, i32(number if number < 1 << 31 else number - (1 << 32)))
        else:
            self.flag(True)
            self.flag(True)
            write_i64_be(self.out, number)

    def text(self, what: str, value: str | None) -> None:
        self.flag(value is not None)
        if value is None:
            return
        encoded = encode_modified_utf8(value)
        self.flag(len(encoded) == len(value))
        self._utf(what, encoded, TIGHT_TEXT_BYTES_MAX)

    def _begin_nested(self, value: DataStructure) -> None:
        if value.aware():
            self.flag(False)

    def _new_entry(self, cache: WriteCache, value: Identifier | None) -> None:
        """Writes an entry. Its index is taken behind those of the structures inside it."""
        at: i64 = len(self.out)
        write_i16_be(self.out, i16(0))
        self.structure(value)
        index: i64 = cache.add(value)
        self.out[at] = u8((index >> 8) & 0xFF)
        self.out[at + 1] = u8(index & 0xFF)
