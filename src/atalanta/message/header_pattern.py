"""The header that the messages of one sender share, but for their user id, their times and a number in texts.

Protocols whose message ids are texts keep them in properties. Where such an id ends with a number, the headers of one
sender are equal otherwise, so they are written and read by comparison.

Who uses it: docs/internals/protocols/openwire.md#repeated-messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i16_le, write_i64_be
from mypy_extensions import i64, u8

from atalanta.message.encoding.buffer import encode_utf16
from atalanta.message.message import HEAD_FIXED_BYTES, USER_ID_BYTES, Message, key_of, with_header
from atalanta.message.properties import STRING, find_value

if TYPE_CHECKING:
    from collections.abc import Sequence

# The first two fields before the properties.
KIND_BYTES: Final = 2
# The type of a property's value, and the length of a text.
TEXT_BEGIN: Final = 5
DIGITS_MAX: Final = 18
NO_NUMBER: Final = -1
ZERO: Final = 48  # the digit


class HeaderPattern:
    """The header of a message with a user id of 16 bytes. `number` is in its texts as decimal digits."""

    def __init__(self, message: Message, cuts: Sequence[int], digits: int) -> None:
        head = message.head
        offset = i64(message._properties_offset)
        self._offset: i64 = offset
        self._size: i64 = len(head)
        self._digit_bytes: i64 = 2 * digits
        self._least: i64 = 10 ** (digits - 1) if digits > 1 else 0
        self._most: i64 = 10**digits - 1
        # Priority and what is before the first number; what follows each number.
        ends = [*cuts[1:], len(head)]
        self._middle: bytes = head[offset - 1 : cuts[0]]
        self._rest: list[bytes] = [head[cut + 2 * digits : end] for cut, end in zip(cuts, ends, strict=True)]
        # Address and the mark of a user id; kind and durable.
        fixed = offset - HEAD_FIXED_BYTES
        self._begin: bytes = head[: fixed - USER_ID_BYTES]
        self._kind: bytes = head[fixed : fixed + KIND_BYTES]
        self._model = message.copy(0)
        self._model.body = b""

    def number_of(self, message: Message) -> i64:
        """Returns the number in the header of a message, NO_NUMBER if the header differs otherwise."""
        head = message.head
        model = self._model
        offset = i64(message._properties_offset)
        if (
            offset != self._offset
            or len(head) != self._size
            or not message._user_id_in_head
            or message._kind != model._kind
            or message._durable != model._durable
            or message.address != model.address
        ):
            return NO_NUMBER
        position = offset - 1 + len(self._middle)
        if head[offset - 1 : position] != self._middle:
            return NO_NUMBER
        number: i64 = NO_NUMBER
        for each in self._rest:
            value: i64 = 0
            end = position + self._digit_bytes
            while position < end:
                digit = i64(read_i16_le(head, position)) - ZERO
                if digit < 0 or digit > 9:
                    return NO_NUMBER
                value = value * 10 + digit
                position += 2
            if number != NO_NUMBER and value != number:
                return NO_NUMBER
            number = value
            if each:
                position = end + len(each)
                if head[end:position] != each:
                    return NO_NUMBER
        return number

    def fits(self, number: i64) -> bool:
        """Returns True if the number has as many digits as that of the pattern."""
        return self._least <= number <= self._most

    def message(
        self, number: i64, user_id_high: bytes, user_id_low: i64, expiration_ms: i64, timestamp_ms: i64, body: bytes
    ) -> Message:
        """Returns a message with this header. `user_id_high` are the first 8 bytes of the user id."""
        out = BytesWriter()
        out.write(self._begin)
        out.write(user_id_high)
        write_i64_be(out, user_id_low)
        out.write(self._kind)
        write_i64_be(out, expiration_ms)
        write_i64_be(out, timestamp_ms)
        out.write(self._middle)
        for each in self._rest:
            power = self._least if self._least else 1
            while power:
                out.append(u8(ZERO + number // power % 10))
                out.append(u8(0))
                power //= 10
            out.write(each)
        return with_header(self._model, out.getvalue(), int(expiration_ms), int(timestamp_ms), body)


def header_pattern(message: Message, names: Sequence[str], prefix: str, number: int) -> HeaderPattern | None:
    """Returns the pattern of a message's header: the texts of these properties begin with `prefix` and the number.

    None if one of them, or a user id, is not there.
    """
    shown = str(number)
    head = message.head
    if not message._user_id_in_head or number < 0 or len(shown) > DIGITS_MAX:
        return None
    cuts: list[int] = []
    begin = encode_utf16(prefix + shown)
    for name in names:
        position = int(find_value(head, i64(message._properties_offset), key_of(name)))
        text = position + TEXT_BEGIN
        if position < 0 or head[position] != STRING or head[text : text + len(begin)] != begin:
            return None
        cuts.append(text + len(begin) - 2 * len(shown))
    return HeaderPattern(message, sorted(cuts), len(shown)) if cuts else None
