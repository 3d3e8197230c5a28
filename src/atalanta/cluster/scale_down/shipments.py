"""Shipments of a scale-down: messages under way to the target."""

from __future__ import annotations

import hashlib
from collections import deque
from typing import TYPE_CHECKING, Final

from atalanta.cluster.links.forward_frame import forward_id, send_frames
from atalanta.cluster.links.large_stream import OutboundLargeMessage
from atalanta.cluster.links.limits import SendLimits
from atalanta.cluster.scale_down.queue_cursor import give_back
from atalanta.cluster.store_and_forward.binding_names import encode_ids
from atalanta.kernel.errors import ADDRESS_FULL
from atalanta.kernel.journal import records
from atalanta.kernel.queue.reference import DONE, Reference
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.message.internal_headers import (
    ACK_ROUTE_TO,
    FORWARD_DUPLICATE,
    SCALEDOWN_NODE,
    SCALEDOWN_TO,
)
from atalanta.message.message import ROUTE_TO, Message
from atalanta.wire.core.client.credits import SessionCredits
from atalanta.wire.core.packet_types import SENDER_ID_VERSION
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.producer import CreateProducer, ProducerCredits
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.links.outbound_link import DialedLink
    from atalanta.kernel.queue.delivery.bridge_origin import Origins
    from atalanta.kernel.queue.delivery.message_store import MessageStore


class Shipment:
    """A message under way. `copies` are sent for `references`; `unanswered` copies are not yet safe at the target."""

    def __init__(self, references: list[Reference], copies: list[Message]) -> None:
        self.references = references
        self.copies = copies
        self.unanswered: int = len(copies)
        self.refused: str = ""  # the reason
        self.full: bool = False  # refused for want of room at the address, not for its content


def repeat_id(node_bytes: bytes, message_id: int, place: bytes) -> bytes:
    """Returns the `_AMQ_BRIDGE_DUP` of one copy of a message: node id, message id, and a digest of the copy's
    purpose.

    A message may be sent as several copies. A message that was forwarded over a bridge before has another id
    (cluster/links/forward_frame.py).
    """
    digest = hashlib.blake2b(place, digest_size=8).digest()
    return node_bytes + message_id.to_bytes(8, "big", signed=True) + digest


def for_queues(
    references: list[Reference], ids: list[int], node_bytes: bytes, origins: Origins
) -> Shipment:
    """Returns one copy for all its queues at the target. Core bridges there recognize the message by its first id."""
    message = references[0].message
    place = encode_ids(sorted(reference.queue.id for reference in references))
    copy = message.copy(message.id)
    copy.properties.put(ROUTE_TO, encode_ids(ids))
    copy.properties.put(BRIDGE_DUPLICATE, repeat_id(node_bytes, int(message.id), place))
    for reference in references:
        origins.attach(copy, int(message.id), reference.queue.name)
    return Shipment(references, [copy])


def for_target(reference: Reference, link: bytes) -> Shipment:
    """Returns a message of the target's own store-and-forward queue, as the bridge to the target sends it."""
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
    """Returns a message of the store-and-forward queue of a third node.

    `known` is the id under which the message may already be at that node, or empty. Artemis reads only the last id
    of the routing list, so it gets one copy per id. An Atalanta gets all ids in one copy, with their `node_id`
    (`named`).
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
            if known and FORWARD_DUPLICATE not in copy.properties:  # else the message arrived here with its own id
                copy.properties.put(FORWARD_DUPLICATE, known)
        there = node_id.encode("utf-8", "surrogatepass") + piece
        copy.properties.put(BRIDGE_DUPLICATE, repeat_id(node_bytes, int(message.id), there))
        copies.append(copy)
    return Shipment([reference], copies)


def for_transaction(
    message: Message, ids: list[int], acknowledged: list[int], node_bytes: bytes, place: bytes
) -> Message:
    """Returns a message that a prepared transaction sends, or has acknowledged (ids of the target's queues).

    A message that the transaction sends has no id of its own yet. `place` identifies it by transaction and position.
    """
    copy = message.copy(message.id)
    copy.properties.put(ROUTE_TO, encode_ids(ids))
    if acknowledged:
        copy.properties.put(ACK_ROUTE_TO, encode_ids(acknowledged))
    copy.properties.put(BRIDGE_DUPLICATE, repeat_id(node_bytes, int(message.id), b"xa" + place))
    return copy


def finish(store: MessageStore, references: list[Reference], batch: records.Batch) -> int:
    """Removes messages that are safe at the target, for any kind of queue. Returns their number."""
    per_queue: dict[int, list[int]] = {}
    count = 0
    for reference in references:
        if reference.state == DONE:
            continue
        count += 1
        if reference.durable:
            per_queue.setdefault(reference.queue.id, []).append(int(reference.message.id))
        store.note_lost(reference, "moved to another node", batch)
        store.drop_from_queue(reference)
    for queue_id, message_ids in per_queue.items():
        batch.add(records.ACKS, records.encode_acks(queue_id, message_ids))
    return count


WINDOW_BYTES: Final = 1 << 20
WINDOW_MESSAGES: Final = 2_000  # far below the ids that the target remembers (id-cache-size)
CREDIT_WINDOW_BYTES: Final = 256 << 10
RETRY_NS: Final = 500_000_000  # until the next message for an address that was full


class AddressCopies:
    """The copies for one address: those that wait to be sent, and the number of those without an answer.

    `full`: the target has refused one for want of room. From then on they are sent one at a time, the refused ones
    first. `closed`: there was no room for too long.
    """

    def __init__(self) -> None:
        self.waiting: deque[tuple[Message, Shipment]] = deque()
        self.unanswered: int = 0
        self.refused: int = 0  # copies at the head of `waiting` that were refused since one was sent
        self.full: bool = False
        self.retry_at: int = 0
        self.closed: bool = False

    def put_back(self, now: int, message: Message, shipment: Shipment) -> None:
        """Keeps a refused copy for another attempt."""
        self.full = True
        self.retry_at = now + RETRY_NS
        self.waiting.insert(self.refused, (message, shipment))
        self.refused += 1

    def may_send(self, now: int) -> bool:
        return not self.full or (self.unanswered == 0 and now >= self.retry_at)


class ShipmentSender:
    """Sends shipments over one session.

    At most `limit` messages are unanswered. The messages of a full address wait for credits, or are sent again if the
    target refuses them for want of room; those of other addresses are sent meanwhile. In a transaction (`transacted`)
    nothing is sent again: the refusal has spoiled it.
    """

    def __init__(
        self, link: DialedLink, store: MessageStore, channel: int, limit: int, transacted: bool
    ) -> None:
        self.link = link
        self.store = store
        self.large_bodies = store.large
        self.channel = channel
        self.transacted = transacted
        self.limits = SendLimits()
        self.limit = min(limit, WINDOW_MESSAGES) if limit > 0 else WINDOW_MESSAGES
        self.addresses: dict[str, AddressCopies] = {}
        self.waiting: dict[str, AddressCopies] = {}  # those with copies that wait
        self.unanswered: dict[int, tuple[Message, Shipment]] = {}
        self.bytes: int = 0  # size of the unanswered copies
        self.progress_at: int = 0  # the last time at which nothing waited, or something had arrived
        self.arrived: list[Shipment] = []
        self.refused: list[Shipment] = []
        self.next_correlation: int = 1
        self.credits: SessionCredits = SessionCredits(CREDIT_WINDOW_BYTES, self._send)
        self.large: OutboundLargeMessage | None = None

    def open(self) -> None:
        """Creates the producer once the session on `channel` is open."""
        if self.link.version >= SENDER_ID_VERSION:
            self._send(CreateProducer(1, None))

    def has_room(self) -> bool:
        waiting = sum(len(copies.waiting) for copies in self.waiting.values())  # do not count for `limit`
        under_way = self.bytes < WINDOW_BYTES and len(self.unanswered) < self.limit
        return under_way and waiting < WINDOW_MESSAGES

    def closed(self, address: str) -> bool:
        """Returns True if the address had no room for too long."""
        copies = self.addresses.get(address)
        return copies is not None and copies.closed

    def idle(self) -> bool:
        """Returns True if nothing is under way and all answers have been processed."""
        return not (self.waiting or self.unanswered or self.arrived or self.refused)

    def ship(self, shipment: Shipment) -> None:
        for message in shipment.copies:
            address = message.address
            copies = self.addresses.setdefault(address, AddressCopies())
            if copies.closed:
                self._end_without_room(message, shipment)
            else:
                copies.waiting.append((message, shipment))
                self.waiting[address] = copies
                self._pump(address)

    def pump(self) -> None:
        for address in list(self.waiting):
            self._pump(address)

    def _pump(self, address: str) -> None:
        copies = self.addresses[address]
        waiting = copies.waiting
        while waiting and self.large is None and copies.may_send(self.store.now):
            message, shipment = waiting[0]
            if not self.credits.take(address, message.size):
                return
            waiting.popleft()
            if not waiting:
                del self.waiting[address]
            copies.refused = 0
            copies.unanswered += 1
            correlation = self.next_correlation
            self.next_correlation = correlation + 1
            self.unanswered[correlation] = (message, shipment)
            self.bytes += message.size
            if message.large is not None:
                self.large = OutboundLargeMessage(self, message, message.large, correlation)
            else:
                self.link.write(send_frames(message, self.channel, correlation, self.link.version))
            if self.large is not None:
                self.large.pump()

    def _send(self, packet: Packet) -> None:
        self.link.send(packet, self.channel)

    def on_credits(self, packet: ProducerCredits) -> None:
        self.credits.granted(packet)
        if packet.address in self.waiting:
            self._pump(packet.address)

    # -- full addresses -------------------------------------------------------------------------
    def check_full(self, now: int, timeout_ns: int) -> None:
        """Sends again what was refused. Gives up all that waits if nothing has arrived for the timeout."""
        if not self.waiting or self.arrived or self.large is not None:
            self.progress_at = now
        elif now >= self.progress_at + timeout_ns and not self.unanswered:
            waiting = list(self.waiting.values())
            self.waiting.clear()
            for copies in waiting:
                copies.closed = True
                for message, shipment in copies.waiting:
                    self._end_without_room(message, shipment)
                copies.waiting.clear()
        for address, copies in list(self.waiting.items()):
            if copies.full:
                self._pump(address)

    def _end_without_room(self, message: Message, shipment: Shipment) -> None:
        shipment.full = True
        self._end_copy(shipment, f"the target has no room at address {message.address}")

    # -- large messages -------------------------------------------------------------------------
    def large_sent(self) -> None:
        self.large = None
        self.pump()

    def cannot_read(self, now: int, stream: OutboundLargeMessage) -> None:
        body = stream.body
        self.large_bodies.damaged(body.file, body.size, -1, "a message on its way elsewhere", stream.found)
        self.link.close("a large message cannot be read")

    def unblocked(self) -> None:
        if self.large is not None:
            self.large.pump()

    # -- answers --------------------------------------------------------------------------------
    def on_answer(self, correlation: int) -> None:
        answered = self._answered(correlation)
        if answered is not None:
            message, shipment = answered
            self._end_copy(shipment, "")
            self._pump(message.address)

    def on_refused(self, packet: ExceptionResponse) -> None:
        text = f"{packet.message} (code {packet.code})"
        answered = self._answered(packet.correlation)
        if answered is None:
            raise ProtocolError(f"the target refuses what it was told: {text}")
        message, shipment = answered
        full = packet.code == ADDRESS_FULL
        if full and not self.transacted:
            copies = self.addresses[message.address]
            copies.put_back(self.store.now, message, shipment)
            self.waiting[message.address] = copies
        else:
            shipment.full = full
            self._end_copy(shipment, text)
            self._pump(message.address)

    def _answered(self, correlation: int) -> tuple[Message, Shipment] | None:
        """Removes the copy that an answer is for from those under way."""
        answered = self.unanswered.pop(self.link.answered_by(correlation, self.unanswered), None)
        if answered is not None:
            message = answered[0]
            self.bytes -= message.size
            self.addresses[message.address].unanswered -= 1
        return answered

    def _end_copy(self, shipment: Shipment, refused: str) -> None:
        shipment.unanswered -= 1
        if refused:
            shipment.refused = refused
        if shipment.unanswered == 0:
            (self.refused if shipment.refused else self.arrived).append(shipment)

    def abort(self) -> None:
        """Ends the transfer after the link was lost: unanswered messages are given back to their queues."""
        if self.large is not None:
            self.large.abort()
            self.large = None
        back = [shipment for copies in self.waiting.values() for _, shipment in copies.waiting]
        back.extend(shipment for _, shipment in self.unanswered.values())
        self.waiting.clear()
        self.unanswered.clear()
        for shipment in back:
            give_back(self.store.scheduled, shipment.references)
