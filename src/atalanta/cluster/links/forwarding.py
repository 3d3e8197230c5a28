"""The frame of a forwarded message: the message as stored, plus where it must go and an id against repeats.

`_AMQ_ROUTE_TO` holds the binding ids on the peer, `_AMQ_BRIDGE_DUP` 16 bytes of the link and the message's id (fact
sheet, "Message forwarding headers"). Artemis' 16 bytes are the sending node's id, the same to all its peers. Here they
tell apart to whom a message went: a node that takes over the ids of another must not take for a repeat what is its own
copy of a message for both.
"""

from __future__ import annotations

import hashlib
from typing import Final

from librt.strings import BytesWriter

from atalanta.kernel.queue.reference import Reference
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.message.internal_headers import FORWARD_DUPLICATE
from atalanta.message.message import ROUTE_TO, Message
from atalanta.message.property_splice import entry_prefix, write_entry
from atalanta.wire.core.packet_types import NEWEST_VERSION
from atalanta.wire.core.packets.message import write_send

PRODUCER_ID: Final = 1
ROUTE_TO_PREFIX: Final = entry_prefix(ROUTE_TO)
BRIDGE_DUPLICATE_PREFIX: Final = entry_prefix(BRIDGE_DUPLICATE)


def node_id_bytes(node_id: str) -> bytes:
    """16 bytes of a node id written as a UUID; any other id is cut or padded to 16."""
    digits = node_id.replace("-", "")
    try:
        return bytes.fromhex(digits)[:16].ljust(16, b"\0")
    except ValueError:
        return node_id.encode("utf-8", "surrogatepass")[:16].ljust(16, b"\0")


def link_bytes(source: str, target: str) -> bytes:
    """16 bytes that stand for the link between two nodes, by their ids."""
    both = f"{source}\0{target}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(both, digest_size=16).digest()


def forward_id(link: bytes, message_id: int) -> bytes:
    """`_AMQ_BRIDGE_DUP` of the source's message over that link."""
    return link + message_id.to_bytes(8, "big", signed=True)


def forwarded(reference: Reference, link: bytes, duplicate_detection: bool) -> Message:
    """A copy with the headers of the link; the id stays the source's."""
    if not reference.message.special:
        return _spliced(reference, link, duplicate_detection)
    message = reference.message.copy(reference.message.id)
    properties = message.properties
    properties.put(ROUTE_TO, reference.route_to)
    if duplicate_detection:
        properties.put(BRIDGE_DUPLICATE, forward_id(link, int(reference.message.id)))
    known = properties.get(FORWARD_DUPLICATE)
    if isinstance(known, bytes):
        # A node that left may have sent it there before it gave it to us.
        properties.remove(FORWARD_DUPLICATE)
        properties.put(BRIDGE_DUPLICATE, known)
    return message


def _spliced(reference: Reference, link: bytes, duplicate_detection: bool) -> Message:
    """The usual message, which has no such headers yet: its properties need not be decoded."""
    message = reference.message
    entries = BytesWriter()
    write_entry(entries, ROUTE_TO_PREFIX, reference.route_to)
    if not duplicate_detection:
        return message.copy_with(message.id, entries.getvalue(), 1)
    duplicate_id = forward_id(link, int(message.id))
    write_entry(entries, BRIDGE_DUPLICATE_PREFIX, duplicate_id)
    return message.copy_with(message.id, entries.getvalue(), 2)


def send_frames(message: Message, channel: int, correlation: int) -> bytes:
    """SESS_SEND that asks for an answer under `correlation`; large messages go by cluster/links/large_forwarding.py."""
    out = BytesWriter()
    write_send(out, channel, message, True, correlation, PRODUCER_ID, NEWEST_VERSION)
    return out.getvalue()
