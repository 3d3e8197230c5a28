"""The broker's message. Its canonical encoding is CORE's HDR and MSG (docs/internals/protocols/core.md).

Received bytes are kept. `head` is the encoded header after the message id; it is sent unchanged until a header
or a property changes. Properties are decoded only on demand.
"""

from __future__ import annotations

import zlib
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from mypy_extensions import i16, i32, i64

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer, encode_utf16
from atalanta.message.properties import (
    SCAN_SPECIAL,
    STRING,
    PropertyValue,
    TypedProperties,
    decode_value,
    find_value,
    scan_properties,
    walk_to_value,
)
from atalanta.message.property_splice import with_entries, without

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atalanta.kernel.memory.address_memory import Account
    from atalanta.kernel.memory.large_body import LargeBody
    from atalanta.message.stored_reference import StoredReference

DEFAULT: Final = 0
OBJECT: Final = 2
TEXT: Final = 3
BYTES: Final = 4
MAP: Final = 5
STREAM: Final = 6
# A message of another protocol that a broker forwards (EmbedMessageUtil); the latter one streamed.
EMBEDDED: Final = 7
LARGE_EMBEDDED: Final = 8

NO_ROUTING_TYPE: Final = -1
ROUTING_TYPE_UNREAD: Final = -2

# Memory of one message beyond its body and head, for paging and credits.
MESSAGE_OVERHEAD_BYTES: Final = 24
# Of a message in the CORE encoding, beyond its body and head: end of the body, message id.
ENCODED_OVERHEAD_BYTES: Final = 12
# Type, durable, expiration, timestamp, priority.
HEAD_FIXED_BYTES: Final = 19
USER_ID_BYTES: Final = 16
# Number of property names whose encoding is cached.
KEYS_MAX: Final = 4096

# Formats of the bytes of a message, `Message.format`.
FORMAT_CORE: Final = 0

# Properties that brokers add for each other.
ROUTE_TO: Final = "_AMQ_ROUTE_TO"
LARGE_SIZE: Final = "_AMQ_LARGE_SIZE"
COMPRESSED: Final = "_AMQ_LARGE_COMPRESSED"
# Before the characters of a text body: the null mark and the length.
TEXT_LENGTHS_BYTES: Final = 5

ROUTING_TYPE_KEY: Final = "_AMQ_ROUTING_TYPE".encode("utf-16-le")
DUPLICATE_ID_BYTES_MAX: Final = 1_024
DUPLICATE_ID_KEY: Final = "_AMQ_DUPL_ID".encode("utf-16-le")
GROUP_ID_KEY: Final = "_AMQ_GROUP_ID".encode("utf-16-le")
SCHEDULED_KEY: Final = "_AMQ_SCHED_DELIVERY".encode("utf-16-le")

_keys: dict[str, bytes] = {}


def _routing_type_of(value: PropertyValue) -> int:
    """Returns the routing type that the property means (RoutingType.getType): any type of number counts."""
    return value if isinstance(value, int) and (value == 0 or value == 1) else NO_ROUTING_TYPE


def short_duplicate_id(value: bytes) -> bytes:
    """Returns the duplicate id as the caches keep it: they hold thousands of every address, so a long one is hashed."""
    return value if len(value) <= DUPLICATE_ID_BYTES_MAX else sha256(value).digest()


class Message:
    """A message. Sizes are in bytes, times in milliseconds since the epoch; expiration 0 means never.

    `body` is raw, without a length. The body of a large message is in a file and counts in no size. `kind` is CORE's
    message type. `references` and `lsn` belong to the broker. A change of `properties` or of a header causes a new
    encoding.

    `format` is the protocol whose encoding `head` and `body` have: FORMAT_CORE, the only one so far.
    """

    def __init__(self, message_id: i64, body: bytes) -> None:
        self.id: i64 = message_id
        self.body: bytes = body
        self.large: LargeBody | None = None  # the file of a large message; `body` is then empty
        # `address` is null on the wire if it is the session's default address.
        self._address: str | None = None
        self._expiration: int = 0
        self._timestamp: int = 0
        self._user_id: bytes | None = None  # or still inside _head: see _user_id_in_head
        self._head: bytes = b""  # empty: has to be encoded
        self._properties: TypedProperties | None = None  # None: still encoded in _head
        self._group_id: str | None = None
        self.lsn: int = -1
        # References for which the journal keeps the message. Usually there is one, so a list is avoided.
        self._stored: StoredReference | list[StoredReference] | None = None
        # The duplicate id that the broker has made (kernel/registry/duplicate_spaces.py). A copy has none.
        self.sent_id: bytes | None = None
        self.account: Account | None = None  # charged for the message (kernel/memory/memory.py)
        # Small fields are adjacent: in the compiled build they share words, and messages are many.
        self.holders: i32 = 0  # number of clients' queues that contain the message
        self._properties_offset: i32 = 0  # offset in _head
        self.format: i16 = FORMAT_CORE
        self._kind: i16 = DEFAULT
        self._priority: i16 = 4
        self._routing_type: i16 = ROUTING_TYPE_UNREAD
        self._durable: bool = False
        self._user_id_in_head: bool = False
        # True if the message may have properties of the broker (`_AMQ_…`, other than the routing type). If False, the
        # search for a duplicate id, a group or a delivery time is skipped.
        self.special: bool = True
        self._group_read: bool = False
        self.plain: bool = False  # the record at `lsn` is a PLAIN_MESSAGE, which the journal counts

    @staticmethod
    def create(
        address: str,
        body: bytes = b"",
        kind: int = DEFAULT,
        durable: bool = True,
        timestamp_ms: int = 0,
        priority: int = 4,
    ) -> Message:
        """Creates a message without properties. Its id is 0 until the broker assigns one."""
        message = Message(0, body)
        message._address = address
        message._kind = kind
        message._durable = durable
        message._timestamp = timestamp_ms
        message._priority = priority
        message._properties = TypedProperties()
        return message

    # -- journal ------------------------------------------------------------------------------------
    @property
    def references(self) -> list[StoredReference]:
        """Returns a new list of the references for which the journal keeps the message."""
        stored = self._stored
        if stored is None:
            return []
        return list(stored) if isinstance(stored, list) else [stored]

    def store_for(self, references: Sequence[StoredReference], lsn: int = 0) -> None:
        """Records the references for which the journal keeps the message, and the lsn of its record (0: unchanged)."""
        if lsn:
            self.lsn = lsn
        if len(references) > 1:
            self._stored = list(references)
        else:
            self._stored = references[0] if references else None

    def unstore(self, reference: StoredReference) -> bool:
        """Removes a reference for which the journal kept the message. Returns True if none is left."""
        stored = self._stored
        if stored is reference:
            self._stored = None
        elif isinstance(stored, list) and reference in stored:
            stored.remove(reference)
            if len(stored) == 1:
                self._stored = stored[0]
        return self._stored is None

    # -- headers --------------------------------------------------------------------------------
    @property
    def address(self) -> str:
        """Returns the address, empty if none was given."""
        address = self._address
        return "" if address is None else address

    @address.setter
    def address(self, address: str) -> None:
        self._forget_head()
        self._address = address

    @property
    def kind(self) -> int:
        return self._kind

    @kind.setter
    def kind(self, kind: int) -> None:
        self._forget_head()
        self._kind = kind

    @property
    def durable(self) -> bool:
        return self._durable

    @durable.setter
    def durable(self, durable: bool) -> None:
        self._forget_head()
        self._durable = durable

    @property
    def expiration(self) -> int:
        return self._expiration

    @expiration.setter
    def expiration(self, expiration_ms: int) -> None:
        self._forget_head()
        self._expiration = expiration_ms

    @property
    def timestamp(self) -> int:
        return self._timestamp

    @timestamp.setter
    def timestamp(self, timestamp_ms: int) -> None:
        self._forget_head()
        self._timestamp = timestamp_ms

    @property
    def priority(self) -> int:
        return self._priority

    @priority.setter
    def priority(self, priority: int) -> None:
        self._forget_head()
        self._priority = priority

    @property
    def user_id(self) -> bytes | None:
        """Returns the 16 bytes of a UUID (JMSMessageID), or None."""
        if self._user_id_in_head:
            end = int(self._properties_offset) - HEAD_FIXED_BYTES
            return self._head[end - USER_ID_BYTES : end]
        return self._user_id

    @user_id.setter
    def user_id(self, user_id: bytes | None) -> None:
        if user_id is not None and len(user_id) != 16:
            raise ValueError(f"user_id has {len(user_id)} bytes, a UUID has 16")
        self._forget_head()
        self._user_id = user_id

    # -- properties -----------------------------------------------------------------------------
    @property
    def properties(self) -> TypedProperties:
        """Returns the properties, decoded at the first call. A later change of them updates the encoding."""
        properties = self._properties
        if properties is None:
            if self._head:
                reader = Reader(self._head, int(self._properties_offset))
                properties = TypedProperties.decode(reader)
            else:
                properties = TypedProperties()
            self._properties = properties
            self.special = True  # the caller may add any property
        return properties

    def properties_changed(self) -> None:
        """Records that a caller changed `properties.entries` directly. put and remove record it themselves."""
        self.properties.changed = True

    def put_property(self, name: str, value: PropertyValue) -> None:
        self.properties.put(name, value)

    def remove_property(self, name: str) -> bool:
        """Removes a property and returns True if it existed. Properties that are still encoded stay encoded."""
        if self._properties is not None:
            return self._properties.remove(name)
        head = without(self._head, i64(self._properties_offset), key_of(name))
        if len(head) == len(self._head):
            return False
        self._set_spliced(head)
        return True

    def _set_spliced(self, head: bytes) -> None:
        """Replaces the header by one with other properties, which stay encoded."""
        self._head = head
        scanned = scan_properties(head, i64(self._properties_offset), len(head))
        self.special = (scanned & SCAN_SPECIAL) != 0
        self._routing_type = ROUTING_TYPE_UNREAD
        self._group_read = False

    def settle(self) -> None:
        """Keeps the properties encoded only, and scans them as those of a received message. No caller may hold them."""
        head = self.head
        self._properties = None
        self._set_spliced(head)

    def copy_with(self, message_id: i64, entries: bytes, count: i64) -> Message:
        """Copies the message and adds `count` encoded properties. No existing property may have one of their names."""
        twin = self.copy(message_id)
        twin._set_spliced(
            with_entries(twin._head, i64(twin._properties_offset), entries, count)
        )
        return twin

    def has_property(self, name: str) -> bool:
        """Returns True if the property exists. The answer is exact, and cheap if it does not exist."""
        if self._properties is not None:
            return name in self._properties
        return find_value(self._head, i64(self._properties_offset), key_of(name)) >= 0

    def property_value(self, name: str) -> PropertyValue:
        """Returns one value, or None. The other properties stay encoded if they are not decoded yet."""
        if self._properties is None:
            return self._raw_value(key_of(name))
        return self._properties.get(name)

    @property
    def routing_type(self) -> int:
        """Returns MULTICAST 0, ANYCAST 1, or -1 if the sender set neither: another number means nothing."""
        if self._properties is not None:
            return _routing_type_of(self._properties.get("_AMQ_ROUTING_TYPE"))
        if self._routing_type == ROUTING_TYPE_UNREAD:
            self._routing_type = _routing_type_of(self._raw_value(ROUTING_TYPE_KEY))
        return self._routing_type

    @property
    def duplicate_id(self) -> bytes | None:
        """Returns `_AMQ_DUPL_ID`. A text becomes its UTF-16LE bytes, like SimpleString.getData in Artemis."""
        if not self.special:
            return None
        if self._properties is not None:
            value = self._properties.get("_AMQ_DUPL_ID")
        else:
            value = self._raw_value(DUPLICATE_ID_KEY)
        if isinstance(value, str):
            value = encode_utf16(value)
        return short_duplicate_id(value) if isinstance(value, bytes) else None

    @property
    def grouped(self) -> bool:
        """Returns True if the message has a group id. Each message is searched once, without decoding."""
        return self.group_id is not None

    @property
    def group_id(self) -> str | None:
        """Returns `_AMQ_GROUP_ID`. The value is cached: the group of an enqueued message does not change."""
        if not self.special:
            return None
        if not self._group_read:
            self._read_group()
        return self._group_id

    def _read_group(self) -> None:
        if self._properties is not None:
            value = self._properties.get("_AMQ_GROUP_ID")
        else:
            value = self._raw_value(GROUP_ID_KEY)
        self._group_id = value if isinstance(value, str) else None
        self._group_read = True

    @property
    def scheduled_ms(self) -> int:
        """Returns `_AMQ_SCHED_DELIVERY`, the earliest delivery time; 0 means immediately."""
        if not self.special:
            return 0
        if self._properties is not None:
            value = self._properties.get("_AMQ_SCHED_DELIVERY")
        else:
            value = self._raw_value(SCHEDULED_KEY)
        return value if isinstance(value, int) and value > 0 else 0

    def text(self) -> str | None:
        """Returns the body of a text message (kind 3), None for a null text. Raises DecodeError if malformed."""
        return text_of_body(self.body)

    def text_in_memory(self, characters_max: i64) -> str | None:
        """Returns the text of a text message that is not large. None for any other and for a longer or malformed one.

        A large message that its sender compressed below the limit of large messages is decompressed.
        """
        if self._kind != TEXT or self.large is not None:
            return None
        bytes_max = 2 * int(characters_max) + TEXT_LENGTHS_BYTES
        body = self.body
        try:
            if self.property_value(COMPRESSED) is True:
                body = zlib.decompressobj().decompress(body, bytes_max)
            if len(body) > bytes_max:
                return None
            return Reader(body).nullable_simple_string("text body")
        except (DecodeError, zlib.error):
            return None

    # -- encoding -------------------------------------------------------------------------------
    @property
    def head(self) -> bytes:
        """Returns the encoded header after the message id: the received bytes as long as nothing changed."""
        properties = self._properties
        if not self._head or (properties is not None and properties.changed):
            self._make_head()
        return self._head

    @property
    def size(self) -> int:
        """Returns the bytes for paging and credits: body, head and a constant."""
        return len(self.body) + len(self.head) + MESSAGE_OVERHEAD_BYTES

    @property
    def encoded_size(self) -> int:
        """Returns the bytes of the CORE encoding, which management shows (CoreMessage.getEncodeSize)."""
        return len(self.body) + len(self.head) + ENCODED_OVERHEAD_BYTES

    def copy(self, message_id: i64) -> Message:
        """Copies the message under another id. The broker's own fields get their initial values."""
        twin = Message(message_id, self.body)
        twin.format = self.format
        twin.large = self.large
        twin._address = self._address
        twin._kind = self._kind
        twin._durable = self._durable
        twin._expiration = self._expiration
        twin._timestamp = self._timestamp
        twin._priority = self._priority
        # `head` brings the encoding up to date, so that no decoded field has to be copied.
        twin._head = self.head
        twin._user_id = self._user_id
        twin._user_id_in_head = self._user_id_in_head
        twin._properties_offset = self._properties_offset
        twin._routing_type = self._routing_type
        twin.special = self.special
        return twin

    def __repr__(self) -> str:
        return f"Message(id={self.id}, address={self.address!r}, {len(self.body)} bytes)"

    def _raw_value(self, key: bytes) -> PropertyValue:
        position = find_value(self._head, i64(self._properties_offset), key)
        if position < 0:
            return None
        reader = Reader(self._head, int(position) + 1)
        return decode_value(reader, self._head[position], "property value")

    def _forget_head(self) -> None:
        """Discards the encoding before a header changes. The properties are decoded first if only the head has them."""
        if self._head:
            if self._user_id_in_head:
                self._user_id = self.user_id
                self._user_id_in_head = False
            self.properties.changed = True
            self._head = b""

    def _make_head(self) -> None:
        writer = Writer()
        writer.nullable_simple_string(self._address)
        user_id = self.user_id
        if user_id is None:
            writer.uint8(0)
        else:
            writer.uint8(1)
            writer.raw(user_id)
        writer.int8(i64(self._kind))
        # CoreMessage writes through netty's own buffer: true is 1 here, not 0xFF.
        writer.uint8(1 if self._durable else 0)
        writer.int64(self._expiration)
        writer.int64(self._timestamp)
        writer.int8(i64(self._priority))
        self._properties_offset = len(writer)
        properties = self.properties
        properties.encode(writer)
        properties.changed = False
        self._head = writer.getvalue()


def text_of_body(body: bytes) -> str | None:
    """Returns the text of a body of kind 3, None for a null text. Raises DecodeError if malformed."""
    if not body:
        return None
    reader = Reader(body)
    text = reader.nullable_simple_string("text body")
    # Clients also send 4 zero bytes for an empty body.
    if text is None and body.strip(b"\x00"):
        raise DecodeError("text body", int(reader.position), "bytes after a null text")
    return text


def properties_reader(message: Message) -> Reader:
    """Returns a reader at the encoded properties of the message, which it does not decode."""
    head = message.head
    return Reader(head, int(message._properties_offset))


def usual_text(message: Message, name: str) -> str | None:
    """Returns the text of a property that the message usually has, None without one. The properties stay encoded."""
    head = message.head
    position = walk_to_value(head, i64(message._properties_offset), key_of(name))
    if position < 0 or head[position] != STRING:
        return None
    return Reader(head, int(position) + 1).simple_string(name)


def key_of(name: str) -> bytes:
    """Returns the name in its encoded form (UTF-16LE). Up to KEYS_MAX names are cached."""
    key = _keys.get(name)
    if key is None:
        key = encode_utf16(name)
        if len(_keys) < KEYS_MAX:
            _keys[name] = key
    return key


def with_body(message: Message, body: bytes) -> Message:
    """Copies a message under its id, with another body, which is in memory."""
    twin = message.copy(message.id)
    twin.large = None
    twin.body = body
    return twin


def with_header(model: Message, head: bytes, expiration_ms: int, timestamp_ms: int, body: bytes) -> Message:
    """Copies a message with another header, whose fields are the same but for user id, times and texts."""
    twin = model.copy(0)
    twin.body = body
    twin._expiration = expiration_ms
    twin._timestamp = timestamp_ms
    twin._head = head
    return twin
