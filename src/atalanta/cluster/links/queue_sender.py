"""Sending of a local queue to another broker: consumer, credits, unanswered and large messages.

The cluster's bridges, core bridges and scale-down share this. Each makes the message for the other broker
(`prepared`) and handles its events (`sent`, `confirmed`, `refused`). A message is acknowledged here when the other
broker has answered that it is safe there. When the link is lost, unanswered messages return to the queue, in order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.cluster.links.forward_frame import send_frames
from atalanta.cluster.links.large_stream import OutboundLargeMessage, large_frames
from atalanta.kernel.errors import ADDRESS_FULL
from atalanta.kernel.queue.reference import DELIVERING, Reference
from atalanta.kernel.sessions.bridge_consumer import BridgeEndpoint
from atalanta.wire.core.client.credits import SessionCredits
from atalanta.wire.core.packet_types import SENDER_ID_VERSION, SESS_SEND, packet_name
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.producer import CreateProducer, ProducerCredits
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.cluster.links.limits import SendLimits
    from atalanta.cluster.links.outbound_link import DialedLink
    from atalanta.cluster.links.sent_mark import SentMark
    from atalanta.kernel.publish.dead_letters import DeadLetters
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.message import Message
    from atalanta.message.selector.selector import Filter


@mypyc_attr(allow_interpreted_subclasses=True)
class QueueSender:
    """The state of sending. `waiting` are messages taken from the queue, for which the peer gave no credit yet.

    `passing_codes`: errors about the state of the other broker, not about the message. The message stays in its
    queue.
    """

    passing_codes: tuple[int, ...] = (ADDRESS_FULL,)

    def __init__(
        self,
        link: DialedLink,
        dead_letters: DeadLetters,
        queue: Queue,
        channel: int,
        limits: SendLimits,
        selector: Filter | None = None,
    ) -> None:
        self.link = link
        self.dead_letters = dead_letters
        self.store = dead_letters.mover.store
        self.trace = dead_letters.mover.trace
        self.large_bodies = self.store.large
        self.queue = queue
        self.channel = channel
        self.limits = limits
        self.endpoint = BridgeEndpoint(self.take, self.store.dispatches, self.trace)
        self.consumer = self.endpoint.consumer_of(queue, selector)
        self.waiting: deque[Reference] = deque()
        self.unanswered: dict[int, Reference] = {}
        self.next_correlation: int = 1
        self.credits: SessionCredits = SessionCredits(limits.producer_window_bytes, self._send)
        self.acknowledged: list[Reference] = []
        self.spoiled: list[Reference] = []  # could not be prepared
        self.large: OutboundLargeMessage | None = None  # being sent: no other message meanwhile
        self.mark: SentMark | None = None  # records how far messages were sent

    # -- for subclasses -------------------------------------------------------------------------
    def prepared(self, reference: Reference) -> Message | None:
        """Returns the message for the other broker, with the id of the one here; None if it cannot be made."""
        raise NotImplementedError

    def target(self, message: Message) -> str:
        """Returns the message's address at the other broker, which needs its credit."""
        return message.address

    def sent(self, reference: Reference) -> None:
        """Handles that a message was sent."""
        return None

    def confirmed(self, reference: Reference) -> None:
        """Handles that a message is safe at the other broker."""
        return None

    def refused(self, text: str) -> None:
        """Handles that the other broker refused a message."""
        return None

    # -- life -----------------------------------------------------------------------------------
    def open(self) -> None:
        """Creates the producer. The session on `channel` exists already."""
        if self.link.version >= SENDER_ID_VERSION:
            self._send(CreateProducer(1, None))

    def attach(self) -> None:
        """Starts to consume the queue."""
        self.endpoint.attach(self.consumer, self.limits.window_bytes)

    def pause(self) -> None:
        """Stops consuming; messages not sent yet return to the queue. Answers are still handled."""
        self.consumer.started = False
        waiting = list(self.waiting)
        self.waiting.clear()
        self.endpoint.give_back(self.consumer, waiting)

    def detach(self, now: int) -> None:
        """Ends the sending when the link is lost: unfinished messages return to their position in the queue."""
        if self.mark is not None:
            self.mark.link_lost()
        self.settle(now)
        self.endpoint.detach(self.consumer)
        if self.large is not None:
            self.large.abort()
            self.large = None
        self.waiting.clear()
        self.unanswered.clear()
        self.spoiled.clear()

    # -- messages out ---------------------------------------------------------------------------
    def take(self, reference: Reference) -> int:
        """Takes a message from the queue's dispatch. It is sent when the peer has given credit for its address."""
        self.waiting.append(reference)
        self.pump()
        return reference.message.size

    def pump(self) -> None:
        while self.waiting and self.large is None and not self.spoiled:
            if self.limits.one_at_a_time and self.unanswered:
                return  # continues with the answer
            reference = self.waiting[0]
            mark = self.mark
            if mark is not None and reference.sequence > mark.low:
                if not mark.may_send(reference.sequence):
                    return  # continues in `settle`
            if not self._may_send(reference.message):
                return  # continues with the credits
            self.waiting.popleft()
            if mark is not None and reference.sequence > mark.through:
                mark.through = reference.sequence
            correlation = self.next_correlation
            self.next_correlation = correlation + 1
            self.unanswered[correlation] = reference
            copy = self._prepared(reference)
            if copy is None:
                del self.unanswered[correlation]
                self.spoiled.append(reference)
                return  # continues in `settle`
            self.sent(reference)
            self._write(copy, correlation)

    def _prepared(self, reference: Reference) -> Message | None:
        """Returns the message for the other broker, whose header is encoded; None if that cannot be done."""
        try:
            copy = self.prepared(reference)
            if copy is not None and copy.head:
                return copy
            return None
        except Exception as error:  # nothing was written, whatever it is
            broker = self.link.host.broker
            broker.failures.left_out(broker.now, "CORE", packet_name(SESS_SEND), error)
            return None

    def _write(self, copy: Message, correlation: int) -> None:
        limits = self.limits
        if copy.large is not None:
            self.large = OutboundLargeMessage(self, copy, copy.large, correlation)
            self.large.pump()
        elif 0 < limits.large_bytes_min < len(copy.body):
            version = self.link.version
            self.link.write(
                large_frames(copy, self.channel, correlation, limits.chunk_bytes, version)
            )
        else:
            self.link.write(send_frames(copy, self.channel, correlation, self.link.version))

    def _may_send(self, message: Message) -> bool:
        """Returns True if the peer's credit is enough for the message, and takes the credit."""
        if self.limits.producer_window_bytes < 0:
            return True
        return self.credits.take(self.target(message), message.size)

    def on_credits(self, packet: ProducerCredits) -> None:
        self.credits.granted(packet)
        self.pump()

    def _send(self, packet: Packet) -> None:
        self.link.send(packet, self.channel)

    # -- large messages -------------------------------------------------------------------------
    def large_sent(self) -> None:
        """Continues with the next message after a large one was written."""
        self.large = None
        self.pump()

    def cannot_read(self, now: int, stream: OutboundLargeMessage) -> None:
        """Moves the message to the dead-letter address and closes the connection: the peer has a part of the message.

        Without that address the message stays, and holds up the others.
        """
        reference = self.unanswered.get(stream.correlation)
        message_id = -1 if reference is None else int(reference.message.id)
        body = stream.body
        self.large_bodies.damaged(body.file, body.size, message_id, self.queue.name, stream.found)
        if reference is not None and self._may_dead_letter(reference):
            del self.unanswered[stream.correlation]
            self._dead_letter(now, reference)
        self.link.close("a large message cannot be read")

    def unblocked(self) -> None:
        """Continues a large message when the connection takes more bytes."""
        if self.large is not None:
            self.large.pump()

    # -- answers --------------------------------------------------------------------------------
    def on_answer(self, correlation: int) -> None:
        """Handles the answer that a message is safe at the other broker."""
        reference = self.unanswered.pop(self.link.answered_by(correlation, self.unanswered), None)
        if reference is None:
            return
        self.consumer.unacknowledged.pop(reference.message.id)
        self._give_credit(reference)
        self.acknowledged.append(reference)
        self.confirmed(reference)
        if self.limits.one_at_a_time:
            self.pump()

    def on_refused(self, now: int, packet: ExceptionResponse) -> None:
        """Moves a refused message to the dead-letter address. Without one it stays, and is sent again on a new link."""
        text = f"{packet.message} (code {packet.code})"
        correlation = self.link.answered_by(packet.correlation, self.unanswered)
        reference = self.unanswered.get(correlation)
        if reference is None:
            raise ProtocolError(f"the peer refused the bridge: {text}")
        self.refused(text)
        if packet.code in self.passing_codes or not self._may_dead_letter(reference):
            raise ProtocolError(f"the peer refused message {reference.message.id}: {text}")
        del self.unanswered[correlation]
        self._dead_letter(now, reference)

    def _may_dead_letter(self, reference: Reference) -> bool:
        settings = self.dead_letters.settings.match(reference.queue.spec.address)
        return settings.dead_letter_address is not None

    def _dead_letter(self, now: int, reference: Reference) -> None:
        self.consumer.unacknowledged.pop(reference.message.id)
        self._give_credit(reference)
        if reference.state == DELIVERING:  # its queue may have been deleted meanwhile
            self.dead_letters.move(now, reference)

    def _give_credit(self, reference: Reference) -> None:
        self.consumer.credits += reference.message.size
        if self.consumer.ready():
            self.store.dispatches.mark_dirty(self.queue)

    def settle(self, now: int) -> None:
        """Acknowledges the messages that the peer has answered, once per event-loop iteration, in one record."""
        if self.acknowledged:
            done = [reference for reference in self.acknowledged if reference.state == DELIVERING]
            self.acknowledged = []
            if done:
                self.store.acknowledge(done, None, 0)
        if self.mark is not None and self.mark.asked_lsn and self.mark.settle(now):
            self.pump()
        if self.spoiled:
            self._settle_spoiled(now)

    def _settle_spoiled(self, now: int) -> None:
        """Moves messages that cannot be prepared to the dead-letter address. Without one they block the others.

        The link is then closed and retried, but only when all messages sent before are answered.
        """
        reference = self.spoiled[0]
        if reference.state == DELIVERING:
            if not self._may_dead_letter(reference):
                if not self.unanswered:
                    self.link.close(f"message {reference.message.id} cannot be forwarded")
                return
            self._dead_letter(now, reference)
        self.spoiled.clear()
        self.pump()
