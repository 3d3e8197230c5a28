"""The datagram of a UDP broadcast group (BroadcastGroupImpl)."""

from __future__ import annotations

from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.wire.core.transport import TransportConfiguration, decode_transport, encode_transport
from atalanta.wire.protocol_error import ProtocolError

CONNECTOR_BYTES_MIN: Final = 12


class Announcement:
    """The connectors of a node, as the node broadcasts them; `unique_id` is one UUID per broadcast group instance."""

    def __init__(
        self, node_id: str, unique_id: str, connectors: list[TransportConfiguration]
    ) -> None:
        self.node_id: str = node_id
        self.unique_id: str = unique_id
        self.connectors: list[TransportConfiguration] = connectors

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Announcement)
            and self.node_id == other.node_id
            and self.unique_id == other.unique_id
            and self.connectors == other.connectors
        )

    def __hash__(self) -> int:
        return hash((self.node_id, self.unique_id))

    def __repr__(self) -> str:
        return f"Announcement({self.node_id!r}, {self.unique_id!r}, {self.connectors!r})"


def encode_announcement(announcement: Announcement) -> bytes:
    writer = Writer()
    writer.string(announcement.node_id)
    writer.string(announcement.unique_id)
    writer.int32(len(announcement.connectors))
    for connector in announcement.connectors:
        encode_transport(writer, connector)
    return writer.getvalue()


def decode_announcement(data: bytes) -> Announcement:
    """Decodes a datagram. ProtocolError names the field; datagrams come from anywhere, so ignore a refused one."""
    reader = Reader(data)
    try:
        node_id = reader.string("node_id")
        unique_id = reader.string("unique_id")
        connectors = [
            decode_transport(reader, "connector")
            for _ in range(reader.count("connectors", CONNECTOR_BYTES_MIN))
        ]
    except DecodeError as error:
        raise ProtocolError(f"broadcast datagram: {error}") from error
    if reader.left():
        raise ProtocolError(f"broadcast datagram: {reader.left()} bytes too many")
    return Announcement(node_id, unique_id, connectors)
