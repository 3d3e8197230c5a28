"""A list of messages, as the bundler of JGroups' transport sends it, and what else a member sends to its group.

A list names the cluster itself, so its messages need no header: members of 3.6 to 5.x take one that differs in two
bytes only. Neither a protocol's id nor a header's, which differ between versions, is in it (TP.writeMessageList).
"""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.wire.jgroups.address import (
    NULL,
    UUID,
    name_bytes,
    read_address,
    read_name,
    write_name,
)
from atalanta.wire.jgroups.version import FIVE, FOUR, is_spoken
from atalanta.wire.protocol_error import ProtocolError

LIST: Final = 1
TO_ALL: Final = 2
# Message flags, the same in all versions: OOB, NO_FC, NO_RELIABILITY, NO_TOTAL_ORDER, NO_RELAY. So neither the
# order of a sender, nor retransmission, nor flow control counts a message of one who is no member.
FLAGS: Final = 1 | 4 | 16 | 32 | 64
# The leading byte of a message.
DESTINATION: Final = 1
SOURCE: Final = 2
PAYLOAD: Final = 4  # up to 4.x
MESSAGES_MAX: Final = 10_000
PAYLOADS_MAX: Final = 200
BUNDLE_BYTES_MAX: Final = 1 << 17  # of a list of ours
# Ids of headers, up to 3.6 and from 4.0 on.
TRANSPORT: Final = (56, 60)
MULTICASTS: Final = ((93,), (78, 99))  # NakAckHeader2; NakAckHeader of NAKACK3 and NAKACK4, from 5.4 on
DATA: Final = 1
REQUEST: Final = 2
FLAGGED: Final = 5 << 11 | 3 << 6 | 8  # from 5.3.8 on a transport header ends with a flag


class Datagram:
    """The content of one datagram, or of one frame of a connection, for the application.

    `payloads` are the messages for the cluster. `ours`: it is a list as `encode_bundle` makes it, so its version tells
    nothing about members.
    """

    def __init__(self, version: int, named: bool) -> None:
        self.version = version
        self.named = named
        self.ours = False
        self.payloads: list[bytes] = []


def encode_bundle(version: int, cluster: str, sender: bytes, payloads: list[bytes]) -> bytes:
    """Encodes a list for all members. `sender` is a UUID of our own (16 bytes)."""
    writer = Writer()
    writer.raw(version.to_bytes(2, "big"))
    writer.uint8(LIST | TO_ALL)
    writer.uint8(NULL)
    writer.uint8(UUID)
    writer.raw(sender[8:] + sender[:8])
    write_name(writer, cluster)
    writer.int32(len(payloads))
    for payload in payloads:
        if version >= FIVE:
            writer.int16(0)  # BytesMessage
        writer.uint8(0 if version >= FIVE else PAYLOAD)
        writer.int16(FLAGS)
        writer.int16(0)  # headers
        writer.int32(len(payload))
        writer.raw(payload)
    return writer.getvalue()


def encode_answer(version: int, cluster: str, sender: bytes, payloads: list[bytes]) -> bytes:
    """Encodes a list with as many of `payloads` as its bounds allow."""
    size, count = 0, 0
    for payload in payloads[:PAYLOADS_MAX]:
        size += len(payload) + 20
        if size > BUNDLE_BYTES_MAX - 2_000:
            break
        count += 1
    return encode_bundle(version, cluster, sender, payloads[:count])


def decode_datagram(cluster: str, data: bytes) -> Datagram:
    """Decodes what a member, or one of ours, sent to all members of `cluster`.

    A message behind a header that is not known is not read, and nor is what follows: headers have no length. The
    cluster's name tells the version in such a datagram, too. ProtocolError for anything else.
    """
    reader = Reader(data)
    try:
        version = reader.int16("version") & 0xFFFF
        kind = reader.uint8("kind")
    except DecodeError as error:
        raise ProtocolError(f"JGroups: {error}") from error
    if not is_spoken(version) or kind & ~(LIST | TO_ALL):
        raise ProtocolError(f"JGroups: no datagram of a version from 3.6 to 5.x (version {version:#x}, kind {kind:#x})")
    name = name_bytes(cluster)
    found = Datagram(version, len(name).to_bytes(2, "big") + name in data)
    if found.named:
        try:
            _read(found, name, reader, bool(kind & LIST))
        except DecodeError:
            found.payloads.clear()  # compressed, encrypted, or of a later version: its version still counts
            found.ours = False
    return found


def _read(found: Datagram, name: bytes, reader: Reader, is_list: bool) -> None:
    count = 1
    listed: bytes | None = None
    if is_list:
        read_address(reader, "destination")
        read_address(reader, "sender")
        listed = read_name(reader, "cluster")
        count = reader.int32("count")
        if not 0 <= count <= MESSAGES_MAX:
            raise DecodeError("count", reader.position, f"{count} messages")
        found.ours = True
    for _ in range(count):
        kind = reader.int16("type") if found.version >= FIVE else 0
        leading = reader.uint8("leading")
        flags = reader.int16("flags") & 0xFFFF
        if leading & DESTINATION:
            read_address(reader, "destination")
        if leading & SOURCE:
            read_address(reader, "source")
        headers = reader.int16("headers")
        found.ours = found.ours and not headers and flags == FLAGS and not leading & (DESTINATION | SOURCE)
        named = _application(reader, headers, found.version)
        if named is None or kind or (found.version < FIVE and not leading & PAYLOAD):
            found.ours = False
            return
        size = reader.int32("payload.length")
        if size >= 0:
            payload = reader.take(size, "payload")
            if (listed or named) == name:
                found.payloads.append(payload)
    if reader.left():
        found.ours = False


def _application(reader: Reader, headers: int, version: int) -> bytes | None:
    """Reads the headers of a message. Returns the name of the cluster in them, b"" without one; None if the message is
    not for the application, or has a header that is not known."""
    named = b""
    late = version >= FOUR
    for _ in range(headers):
        reader.int16("header.protocol")  # may be configured, so it is not used
        kind = reader.int16("header.id")
        if kind == TRANSPORT[late]:
            named = read_name(reader, "header.cluster") or b""
            if version >= FLAGGED and reader.uint8("header.flag"):
                reader.take(4, "header.flag")
        elif kind in MULTICASTS[late]:
            of = reader.uint8("header.type")
            if of == REQUEST:
                read_address(reader, "header.sender")
            else:
                reader.take(reader.uint8("header.number.length") & 15, "header.number")
            if of != DATA:
                return None
        else:
            return None
    return named
