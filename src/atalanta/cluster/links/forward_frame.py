"""Frame of a forwarded message: the stored message, its bindings at the peer and a duplicate id.

`_AMQ_ROUTE_TO` holds the binding ids at the peer. `_AMQ_BRIDGE_DUP` holds 16 bytes for the link and the message's
id. In Artemis the 16 bytes are the sending node's id, the same for all its peers. Here they depend on the peer too.
A node that takes over the ids of another node must not drop its own copy of a message that went to both.
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
from atalanta.wire.core.packets.message import write_send

PRODUCER_ID: Final = 1
ROUTE_TO_PREFIX: Final = entry_prefix(ROUTE_TO)
BRIDGE_DUPLICATE_PREFIX: Final = entry_prefix(BRIDGE_DUPLICATE)


def node_id_bytes(node_id: str) -> bytes:
    """Returns the 16 bytes of a node id that is a UUID. Any other id is cut or padded to 16 bytes."""
    digits = node_id.replace("-", "")
    try:
        return bytes.fromhex(digits)[:16].ljust(16, b"\0")
    except ValueError:
        return node_id.encode("utf-8", "surrogatepass")[:16].ljust(16, b"\0")


def link_bytes(source: str, target: str) -> bytes:
    """Returns 16 bytes that identify the link between two nodes, a hash of both ids."""
    both = f"{source}\0{target}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(both, digest_size=16).digest()


def forward_id(link: bytes, message_id: int) -> bytes:
    """Returns `_AMQ_BRIDGE_DUP` of the source's message for that link."""
    return link + message_id.to_bytes(8, "big", signed=True)


def forwarded(reference: Reference, link: bytes, duplicate_detection: bool) -> Message:
    """Returns a copy of the message with the headers of the link. The id stays the source's."""
    if not reference.message.special:
        return _spliced(reference, link, duplicate_detection)
    message = reference.message.copy(reference.message.id)
    properties = message.properties
    properties.put(ROUTE_TO, reference.route_to)
    if duplicate_detection:
        properties.put(BRIDGE_DUPLICATE, forward_id(link, int(reference.message.id)))
    known = properties.get(FORWARD_DUPLICATE)
    if isinstance(known, bytes):
        # A node that left may have sent the message there before it handed it over.
        properties.remove(FORWARD_DUPLICATE)
        properties.put(BRIDGE_DUPLICATE, known)
    return message


def _spliced(reference: Reference, link: bytes, duplicate_detection: bool) -> Message:
    """Returns the copy of an ordinary message. It has no such headers yet, so its properties are not decoded."""
    message = reference.message
    entries = BytesWriter()
    write_entry(entries, ROUTE_TO_PREFIX, reference.route_to)
    if not duplicate_detection:
        return message.copy_with(message.id, entries.getvalue(), 1)
    duplicate_id = forward_id(link, int(message.id))
    write_entry(entries, BRIDGE_DUPLICATE_PREFIX, duplicate_id)
    return message.copy_with(message.id, entries.getvalue(), 2)


def send_frames(message: Message, channel: int, correlation: int, version: int) -> bytes:
    """Encodes SESS_SEND that asks for an answer under `correlation`; large messages use large_stream.py."""
    out = BytesWriter()
    write_send(out, channel, message, True, correlation, PRODUCER_ID, version)
    return out.getvalue()
