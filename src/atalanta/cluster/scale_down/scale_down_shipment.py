"""One message on its way to the node that takes over, and how it is named there so that it never arrives twice."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from atalanta.cluster.links.forwarding import forward_id
from atalanta.cluster.parked.binding_names import encode_ids
from atalanta.kernel.journal import records
from atalanta.kernel.queue.reference import DONE, Reference
from atalanta.kernel.queue.settle import drop_from_queue, note_lost
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.message.internal_headers import (
    ACK_ROUTE_TO,
    FORWARD_DUPLICATE,
    SCALEDOWN_NODE,
    SCALEDOWN_TO,
)
from atalanta.message.message import ROUTE_TO, Message

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.delivery.bridge_origin import Origins


class Shipment:
    """`copies` are what travels, `references` what they stand for here; `unanswered` copies are not safe there yet."""

    def __init__(self, references: list[Reference], copies: list[Message]) -> None:
        self.references = references
        self.copies = copies
        self.unanswered: int = len(copies)
        self.refused: str = ""
        self.full: bool = False  # the address is: it may have room later


def repeat_id(node_bytes: bytes, message_id: int, place: bytes) -> bytes:
    """`_AMQ_BRIDGE_DUP`: the message of this node, and what this copy of it is for.

    A message may travel as several copies, and what went over a bridge before is another one
    (cluster/links/forwarding.py).
    """
    digest = hashlib.blake2b(place, digest_size=8).digest()
    return node_bytes + message_id.to_bytes(8, "big", signed=True) + digest


def for_queues(
    references: list[Reference], ids: list[int], node_bytes: bytes, origins: Origins
) -> Shipment:
    """A message for queues of the target, one copy for all of them; core bridges there know it by its first id."""
    message = references[0].message
    place = encode_ids(sorted(reference.queue.id for reference in references))
    copy = message.copy(message.id)
    copy.properties.put(ROUTE_TO, encode_ids(ids))
    copy.properties.put(BRIDGE_DUPLICATE, repeat_id(node_bytes, int(message.id), place))
    for reference in references:
        origins.attach(copy, int(message.id), reference.queue.name)
    return Shipment(references, [copy])


def for_target(reference: Reference, link: bytes) -> Shipment:
    """What waited in the store-and-forward queue of the target itself: as its bridge sends it."""
    message = reference.message
    copy = message.copy(message.id)
    known = copy.properties.get(FORWARD_DUPLICATE)
    copy.properties.remove(FORWARD_DUPLICATE)
    copy.properties.put(ROUTE_TO, reference.route_to)
    if not isinstance(known, bytes):
        known = forward_id(link, int(message.id))
    copy.properties.put(BRIDGE_DUPLICATE, known)
    return Shipment([reference], [copy])


def for_third(
    reference: Reference, node_id: str, node_bytes: bytes, named: bool, known: bytes
) -> Shipment:
    """What waited for a third node; `known`: the id under which it may be there already, empty if it cannot be.

    A real Artemis looks at the last id alone, so it gets a copy for each; one of ours gets all, and the `node_id` they
    are of (`named`).
    """
    message = reference.message
    ids = reference.route_to
    pieces = [ids] if named else [ids[at : at + 8] for at in range(0, len(ids), 8)]
    copies: list[Message] = []
    for piece in pieces:
        copy = message.copy(message.id)
        copy.properties.put(SCALEDOWN_TO, piece)
        if named:
            copy.properties.put(SCALEDOWN_NODE, node_id)
            if known and FORWARD_DUPLICATE not in copy.properties:  # else it came here with it
                copy.properties.put(FORWARD_DUPLICATE, known)
        there = node_id.encode("utf-8", "surrogatepass") + piece
        copy.properties.put(BRIDGE_DUPLICATE, repeat_id(node_bytes, int(message.id), there))
        copies.append(copy)
    return Shipment([reference], copies)


def for_transaction(
    message: Message, ids: list[int], acknowledged: list[int], node_bytes: bytes, place: bytes
) -> Message:
    """A message that a prepared transaction sends, or has acknowledged (ids of the target's queues).

    What it sends has no number of its own yet: `place` tells it apart, the transaction and the place in it.
    """
    copy = message.copy(message.id)
    copy.properties.put(ROUTE_TO, encode_ids(ids))
    if acknowledged:
        copy.properties.put(ACK_ROUTE_TO, encode_ids(acknowledged))
    copy.properties.put(BRIDGE_DUPLICATE, repeat_id(node_bytes, int(message.id), b"xa" + place))
    return copy


def finish(broker: Broker, references: list[Reference], batch: records.Batch) -> int:
    """They are safe elsewhere: gone from here, whatever kind of queue it is. Returns how many there were."""
    per_queue: dict[int, list[int]] = {}
    count = 0
    for reference in references:
        if reference.state == DONE:
            continue
        count += 1
        if reference.durable:
            per_queue.setdefault(reference.queue.id, []).append(int(reference.message.id))
        note_lost(broker, reference, "moved to another node", batch)
        drop_from_queue(broker, reference)
    for queue_id, message_ids in per_queue.items():
        batch.add(records.ACKS, records.encode_acks(queue_id, message_ids))
    return count
