"""A local queue on its way to another broker: consumer, credits, what is unanswered, large messages.

Shared by the cluster's bridges, core bridges and scale-down: each says what a message looks like there (`prepared`),
and what it wants to know (`sent`, `confirmed`, `refused`). A message is finished here when the other side has answered
that it is safe there; what is unanswered when the link goes returns to its place in the queue, in order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.cluster.links.forwarding import send_frames
from atalanta.cluster.links.large_forwarding import LargeForwarding, large_frames
from atalanta.kernel.errors import ADDRESS_FULL
from atalanta.kernel.publish.reroute import dead_letter
from atalanta.kernel.queue.reference import DELIVERING, Reference
from atalanta.kernel.sessions.bridge_consumer import BridgeEndpoint
from atalanta.wire.connection import ProtocolError
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.producer import (
    CreateProducer,
    ProducerCredits,
    RequestProducerCredits,
)

if TYPE_CHECKING:
    from atalanta.cluster.links.limits import OutgoingLimits
    from atalanta.cluster.links.outbound_link import DialedLink
    from atalanta.cluster.links.sent_mark import SentMark
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.memory.large_body import LargeBody
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.message import Message
    from atalanta.message.selector.selector import Filter


@mypyc_attr(allow_interpreted_subclasses=True)
class Outgoing:
    """`waiting` are messages taken from the queue but not yet sent (the peer gave no credit for their address).

    `passing_codes`: refusals that are about the other side's state and not about the message, which stays in its queue.
    """

    passing_codes: tuple[int, ...] = (ADDRESS_FULL,)

    def __init__(
        self,
        link: DialedLink,
        broker: Broker,
        queue: Queue,
        channel: int,
        limits: OutgoingLimits,
        selector: Filter | None = None,
    ) -> None:
        self.link = link
        self.broker = broker
        self.queue = queue
        self.channel = channel
        self.limits = limits
        self.endpoint = BridgeEndpoint(self.take)
        self.consumer = self.endpoint.consumer_of(queue, selector)
        self.waiting: deque[Reference] = deque()
        self.unanswered: dict[int, Reference] = {}
        self.next_correlation: int = 1
        self.credits: dict[str, int] = {}
        self.asked: dict[str, bool] = {}
        self.acknowledged: list[Reference] = []
        self.spoiled: list[Reference] = []  # could not be prepared
        self.large: LargeForwarding | None = None  # on its way: nothing else is sent meanwhile
        self.mark: SentMark | None = None  # who keeps a record of how far messages were sent

    # -- what a kind of bridge does -------------------------------------------------------------
    def prepared(self, reference: Reference) -> Message | None:
        """The message as the other side shall get it, under the id of the one here; None if it cannot be made."""
        raise NotImplementedError

    def target(self, message: Message) -> str:
        """The address it goes to there, whose credit it needs."""
        return message.address

    def sent(self, reference: Reference) -> None:
        """It is on its way."""
        return None

    def confirmed(self, reference: Reference) -> None:
        """It is safe there."""
        return None

    def refused(self, text: str) -> None:
        """The other side does not want a message."""
        return None

    # -- life -----------------------------------------------------------------------------------
    def open(self) -> None:
        """The session on `channel` is there."""
        self.link.send(CreateProducer(1, None), self.channel)

    def attach(self) -> None:
        """Begin to take from the queue."""
        self.endpoint.attach(self.broker, self.consumer, self.limits.window_bytes)

    def pause(self) -> None:
        """Take no more; what was not sent yet goes back to its place. Answers are still heard."""
        self.consumer.started = False
        waiting = list(self.waiting)
        self.waiting.clear()
        self.endpoint.give_back(self.broker, self.consumer, waiting)

    def detach(self, now: int) -> None:
        """The link is gone: what was not finished goes back to its place."""
        if self.mark is not None:
            self.mark.link_lost()
        self.settle(now)
        self.endpoint.detach(self.broker, self.consumer)
        if self.large is not None:
            self.large.abort()
            self.large = None
        self.waiting.clear()
        self.unanswered.clear()
        self.spoiled.clear()

    # -- messages out ---------------------------------------------------------------------------
    def take(self, reference: Reference) -> int:
        """From the queue's dispatch: send it as soon as the peer gives credit for its address."""
        self.waiting.append(reference)
        self.pump()
        return reference.message.size

    def pump(self) -> None:
        while self.waiting and self.large is None and not self.spoiled:
            if self.limits.one_at_a_time and self.unanswered:
                return  # goes on with the answer
            reference = self.waiting[0]
            mark = self.mark
            if mark is not None and reference.sequence > mark.low:
                if not mark.may_send(reference.sequence):
                    return  # goes on in `settle`
            if not self._may_send(reference.message):
                return  # goes on with the credits
            self.waiting.popleft()
            if mark is not None and reference.sequence > mark.through:
                mark.through = reference.sequence
            correlation = self.next_correlation
            self.next_correlation = correlation + 1
            self.unanswered[correlation] = reference
            copy = self.prepared(reference)
            if copy is None:
                del self.unanswered[correlation]
                self.spoiled.append(reference)
                return  # goes on in `settle`
            self.sent(reference)
            self._write(copy, correlation)

    def _write(self, copy: Message, correlation: int) -> None:
        limits = self.limits
        if copy.large is not None:
            self.large = LargeForwarding(self, copy, copy.large, correlation)
            self.large.pump()
        elif 0 < limits.large_bytes_min < len(copy.body):
            self.link.write(large_frames(copy, self.channel, correlation, limits.chunk_bytes))
        else:
            self.link.write(send_frames(copy, self.channel, correlation))

    def _may_send(self, message: Message) -> bool:
        """Whether the peer's credit lets it go; if so it is taken, if not it is asked for."""
        if self.limits.producer_window_bytes < 0:
            return True
        address = self.target(message)
        step = self.limits.credit_step_bytes
        left = self.credits.get(address, 0)
        if left < message.size:
            self._ask(address, max(message.size, step))
            return False
        self.credits[address] = left - message.size
        if left - message.size < step:
            self._ask(address, step)
        return True

    def _ask(self, address: str, amount: int) -> None:
        """Credits are asked for once at a time; the peer withholds them while its memory is full."""
        if address not in self.asked:
            self.asked[address] = True
            self.link.send(RequestProducerCredits(amount, address), self.channel)

    def on_credits(self, packet: ProducerCredits) -> None:
        self.asked.pop(packet.address, None)
        self.credits[packet.address] = self.credits.get(packet.address, 0) + packet.credits
        self.pump()

    # -- large messages -------------------------------------------------------------------------
    def large_sent(self) -> None:
        """The large message is with the peer, or on its way: the next one."""
        self.large = None
        self.pump()

    def cannot_read(self, body: LargeBody) -> None:
        """The peer has its beginning, and learns by the end of the connection that there is no more."""
        self.broker.large.damaged(body.file, body.size, -1, self.queue.name)
        self.link.close("a large message cannot be read")

    def unblocked(self) -> None:
        """The connection takes more again."""
        if self.large is not None:
            self.large.pump()

    # -- answers --------------------------------------------------------------------------------
    def on_answer(self, correlation: int) -> None:
        """It is safe there."""
        reference = self.unanswered.pop(correlation, None)
        if reference is None:
            return
        self.consumer.unacknowledged.pop(reference.message.id)
        self._give_credit(reference)
        self.acknowledged.append(reference)
        self.confirmed(reference)
        if self.limits.one_at_a_time:
            self.pump()

    def on_refused(self, now: int, packet: ExceptionResponse) -> None:
        """A message goes to the dead-letter address; without one it is kept, and offered again on a new link."""
        text = f"{packet.message} (code {packet.code})"
        reference = self.unanswered.get(packet.correlation)
        if reference is None:
            raise ProtocolError(f"the peer refused the bridge: {text}")
        self.refused(text)
        if packet.code in self.passing_codes or not self._may_dead_letter(reference):
            raise ProtocolError(f"the peer refused message {reference.message.id}: {text}")
        del self.unanswered[packet.correlation]
        self._dead_letter(now, reference)

    def _may_dead_letter(self, reference: Reference) -> bool:
        settings = self.broker.settings_of(reference.queue.spec.address)
        return settings.dead_letter_address is not None

    def _dead_letter(self, now: int, reference: Reference) -> None:
        self.consumer.unacknowledged.pop(reference.message.id)
        self._give_credit(reference)
        if reference.state == DELIVERING:  # its queue may have been deleted meanwhile
            dead_letter(self.broker, now, reference)

    def _give_credit(self, reference: Reference) -> None:
        self.consumer.credits += reference.message.size
        if self.consumer.ready():
            self.broker.mark_dirty(self.queue)

    def settle(self, now: int) -> None:
        """Once per turn: what the peer has answered for is finished here, in one record."""
        if self.acknowledged:
            done = [reference for reference in self.acknowledged if reference.state == DELIVERING]
            self.acknowledged = []
            if done:
                self.broker.acknowledge(now, done, None, 0)
        if self.mark is not None and self.mark.asked_lsn and self.mark.settle():
            self.pump()
        if self.spoiled:
            self._settle_spoiled(now)

    def _settle_spoiled(self, now: int) -> None:
        """Messages that cannot be prepared go to the dead letters; where there are none, they hold up the others.

        The link goes, to try again, only when all that left before is answered for.
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
