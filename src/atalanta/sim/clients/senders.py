"""Senders of numbered messages, some unconfirmed. After a loss the engine repeats them, after a kill the sender
itself."""

from __future__ import annotations

from typing import Final

from atalanta.kernel import ADDRESS_FULL
from atalanta.kernel.queue import ANYCAST
from atalanta.message import Byte, Message
from atalanta.sim.checks.ledger import Ledger, Violation
from atalanta.sim.clients.client import SimClient, then
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.client import ClientError, ClientProducer, Reply

WINDOW: Final = 4
FULL_NS: Final = SECOND // 2  # until a refused message is sent again
CREDIT_WINDOWS: Final = (-1, -1, 1_000, 1 << 20)  # bytes; -1 requests no credits


class Sender(SimClient):
    """Sends durable messages with a duplicate id each, about `per_second`, until there are `total`."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        target: str,
        ledger: Ledger,
        address: str,
        total: int,
        per_second: float,
    ) -> None:
        super().__init__(world, network, name, target)
        self.ledger = ledger
        self.address = address
        self.total = total
        self.window = WINDOW
        self.next = 0
        self.open: dict[int, bool] = {}
        self.leaving = False  # returns to its own node once open messages are answered
        self.random = world.random(f"sender/{name}")
        self.pause_ns_max = int(2 * SECOND / per_second)
        self.producer_window = world.random(f"credits/{name}").choice(CREDIT_WINDOWS)

    def finish(self) -> None:
        """Sends no further messages."""
        self.total = self.next

    def at_ease(self) -> bool:
        """Returns True if no message is open: another node would take a repeat for a new message."""
        self.leaving = bool(self.open)
        return not self.open

    def done(self) -> bool:
        return self.next >= self.total and not self.open

    # -- overridable methods --------------------------------------------------------------------
    def begin(self, key: str, number: int) -> None:
        """Records the first send of a message."""
        self.ledger.sent[key] = True

    def confirmed(self, key: str, number: int) -> None:
        self.ledger.confirm(key, False)

    def pause_ns(self) -> int:
        """Returns the time until the next message."""
        return self.random.randint(1, self.pause_ns_max)

    def body(self, number: int) -> bytes:
        return f"{self.name}/{number}".encode() + bytes(number * 37 % 150)

    def message(self, key: str, number: int) -> Message:
        """Returns a message without key and duplicate id."""
        message = Message.create(
            self.address, self.body(number), 4, True, self.world.now // 1_000_000, 4
        )
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        return message

    def told(self, key: str, number: int) -> None:
        """Records a send in the history of the message."""
        self.ledger.tell(key, f"{self.name} sends {key} to {self.target}")

    def failed(self, number: int, error: ClientError) -> None:
        """Handles an error instead of the confirmation."""
        if error.code == ADDRESS_FULL:
            self.ledger.refuse(self.name, f"{self.name}/{number}")
            self.in_session(FULL_NS, lambda: self._send_again(number))
        elif not self.cut_short(error):
            raise Violation(f"{self.name}: {error.text}")

    def write(self, producer: ClientProducer, message: Message, number: int) -> Reply:
        """Sends the message. The reply is done when the node has confirmed it."""
        sending = producer.send_message(message)
        sending.reply = reply = Reply()
        return reply

    # -- sending --------------------------------------------------------------------------------
    def on_session(self) -> None:
        self.producer = self.session.producer(self.address)
        for number in list(self.open):
            self._transmit(number)
        self._fill()

    def _fill(self) -> None:
        if self.next < self.total and len(self.open) < self.window and not self.leaving:
            self._transmit(self.take_number())
        self.in_session(self.pause_ns(), self._fill)

    def take_number(self) -> int:
        """Returns the number of a new message, which is open from now on."""
        number = self.next
        self.next += 1
        self.open[number] = True
        self.begin(f"{self.name}/{number}", number)
        return number

    def _transmit(self, number: int) -> None:
        key = f"{self.name}/{number}"
        self.told(key, number)
        message = self.message(key, number)
        message.properties.put("key", key)
        message.properties.put("_AMQ_DUPL_ID", key)
        message.properties_changed()
        reply = self.write(self.producer, message, number)
        then(reply, lambda reply: self._answered(number, reply))

    def _answered(self, number: int, reply: Reply) -> None:
        if reply.error is None:
            if self.open.pop(number, None):
                self.confirmed(f"{self.name}/{number}", number)
        else:
            self.failed(number, reply.error)

    def _send_again(self, number: int) -> None:
        """Sends a message that was refused because the node's disk was full."""
        if number in self.open:
            self._transmit(number)
