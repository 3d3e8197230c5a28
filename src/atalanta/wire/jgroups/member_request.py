"""The question of MPING for the members of a cluster: a bare message, without a version, to a multicast group.

The source of ours is a plain physical address, at which we listen: members dial it, and so greet us. A member's own
question has its logical address as source. It tells a reader only whether JGroups is older than 4.0.
"""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.wire.jgroups.address import (
    IP,
    Place,
    name_bytes,
    place_bytes,
    read_address,
    read_name,
    write_name,
)
from atalanta.wire.jgroups.bundle import DESTINATION, SOURCE
from atalanta.wire.jgroups.version import FOUR
from atalanta.wire.protocol_error import ProtocolError

OOB: Final = 1
MEMBERS_REQUEST: Final = 1
TEXT: Final = 1
# Protocol id of MPING and id of PingHeader, up to 3.6 and from 4.0 on.
MPING: Final = (7, 6)
PING: Final = (13, 53)
REQUEST_BYTES_MAX: Final = 2_000


def encode_member_request(version: int, cluster: str, place: Place) -> bytes:
    """Encodes the question; `place` is where we listen. ValueError: it is no IP address."""
    late = version >= FOUR
    writer = Writer()
    writer.uint8(SOURCE)
    writer.int16(OOB)
    writer.uint8(IP)
    writer.raw(place_bytes(place))
    writer.int16(1)  # headers
    writer.int16(MPING[late])
    writer.int16(PING[late])
    writer.uint8(MEMBERS_REQUEST)
    writer.uint8(TEXT)
    write_name(writer, cluster)
    if late:
        writer.uint8(1)  # initial discovery
    writer.int32(-1)  # no payload; up to 4.x no length is read
    return writer.getvalue()


def decode_member_request(cluster: str, data: bytes) -> tuple[bool, Place | None] | None:
    """Decodes a question. Returns (whether it is of 4.0 or later, where one of ours listens, None for a member); None
    if it asks for another cluster, or is another message of MPING. ProtocolError."""
    if len(data) > REQUEST_BYTES_MAX:
        raise ProtocolError("MPING: a question that is too long")
    reader = Reader(data)
    place: Place | None = None
    try:
        leading = reader.uint8("leading")
        if leading & ~(DESTINATION | SOURCE | 4):
            raise ProtocolError(f"MPING: no question (leading byte {leading:#x})")
        reader.int16("flags")
        if leading & DESTINATION:
            read_address(reader, "destination")
        if leading & SOURCE:
            place = read_address(reader, "source")
        if reader.int16("headers") < 1:
            return None
        reader.int16("header.protocol")
        header = reader.int16("header.id")
        if header not in PING or reader.uint8("header.type") != MEMBERS_REQUEST or reader.uint8("cluster") != TEXT:
            return None
        named = read_name(reader, "cluster")
    except DecodeError as error:
        raise ProtocolError(f"MPING: {error}") from error
    return (header == PING[True], place) if named == name_bytes(cluster) else None


def is_member_request(cluster: str, data: bytes) -> bool:
    """Returns True for a question for the members of the cluster."""
    try:
        return decode_member_request(cluster, data) is not None
    except ProtocolError:
        return False
