"""Consumer of one queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.client.message import ReceivedMessage
from atalanta.client.message_rate import pace_of
from atalanta.client.shells.awaitables import READY, Acknowledgement
from atalanta.wire.core.client.consumer import ClientConsumer, Delivery
from atalanta.wire.core.client.errors import Closed, IllegalState, SettleUnsupported

if TYPE_CHECKING:
    from atalanta.client.shells.awaitables import Settler
    from atalanta.client.shells.shell import ClientShell
    from atalanta.wire.core.client.member_consumers import MemberConsumers

INDIVIDUAL: Final = "individual"
CUMULATIVE: Final = "cumulative"
AUTO: Final = "auto"
ACKNOWLEDGE_MODES: Final = (INDIVIDUAL, CUMULATIVE, AUTO)


class Consumer:
    """Receives messages of `queue`, with `async for` or `receive`.

    ack: "individual" acknowledges each message by its own `acknowledge()`; "cumulative" acknowledges every message
    up to it; "auto" acknowledges a message when the next one is requested (the last one at `close`). A browser
    (`browse`) only reads, and ends with the queue. After a reconnect the broker delivers the messages without
    acknowledgement again.
    """

    def __init__(self, shell: ClientShell, consumer: ClientConsumer | MemberConsumers, ack: str) -> None:
        self.queue = consumer.queue
        self.ack = ack
        self._shell = shell
        self._consumer = consumer
        self.settler: Settler = self  # of its messages
        self._individual = ack == INDIVIDUAL
        self._auto = ack == AUTO
        self._last: Delivery | None = None
        self._finished = False
        self._pace = pace_of(shell.options.consumer_max_rate)
        self._pre_acknowledged = consumer.pre_acknowledged
        # For the engine, the queue of a message is the queue's own name, without its address.
        self._name = self.queue.rpartition("::")[2]

    @property
    def received(self) -> int:
        """Returns the number of messages received so far, redeliveries included."""
        return self._consumer.delivered

    @property
    def buffered(self) -> int:
        """Returns the number of messages received and not yet taken by the program."""
        return self._consumer.buffered

    def __aiter__(self) -> Consumer:
        return self

    async def __anext__(self) -> ReceivedMessage:
        if self._pace is not None:
            await self._pace.wait(self._shell)
        message = self._next()
        while message is None:
            if not await self._wait(None):
                raise StopAsyncIteration
            message = self._next()
        return message

    async def receive(self, timeout_s: float | None = None) -> ReceivedMessage | None:
        """Returns the next message; None if none arrives in time (for a browser: at the end of the queue).

        With 0 the broker is asked for an available message. With a window of 0 bytes no message arrives after the end
        of a call (the JMS client's resetIfSlowConsumer). With consumerMaxRate the call first waits for its turn.
        """
        if self._pace is not None:
            await self._pace.wait(self._shell)
        message = self._next()
        if message is None and timeout_s is not None and timeout_s <= 0:
            self._consumer.want_one()
            await self._shell.answer(self._consumer.available())
            return self._next() or await self._withdrawn()
        while message is None:
            try:
                arrived = await self._wait(timeout_s)
            except BaseException:  # the call is cancelled; asyncio itself is not imported here
                self._consumer.withdraw()
                self._shell.after_call()
                raise
            if not arrived:
                return await self._withdrawn()
            message = self._next()
            timeout_s = 0.0 if timeout_s is not None and message is None else timeout_s
        return message

    async def _withdrawn(self) -> ReceivedMessage | None:
        """Withdraws the credit of a window of 0. Returns a message that was already on its way, or None."""
        withdrawn = self._consumer.withdraw()
        if withdrawn is None:
            return None
        await self._shell.answer(withdrawn)
        return self._next()

    async def _wait(self, timeout_s: float | None) -> bool:
        """Waits for a message. Returns False if none arrives in time or no more can arrive."""
        consumer = self._consumer
        if consumer.browse_only and not consumer.closed:
            # The broker answers when it has no more message, or no more credits, which `take` returns.
            if not self._finished:
                consumer.want_one()
                await self._shell.answer(consumer.available())
                self._finished = not consumer.buffered
        elif consumer.closed or not await self._shell.wait(consumer.arrival(), timeout_s):
            return False
        if not consumer.buffered and consumer.failed is not None:
            if isinstance(consumer.failed, Closed):
                return False
            raise consumer.failed
        return bool(consumer.buffered) or not consumer.browse_only

    def _next(self) -> ReceivedMessage | None:
        consumer = self._consumer
        if self._auto:
            self._acknowledge_last()
        delivery = consumer.take()
        if delivery is None:
            return None
        if self._pace is not None:
            self._pace.spend()
        if self._auto:
            self._last = delivery
        return ReceivedMessage(delivery.message, self._name, delivery, self.settler)

    def _acknowledge_last(self) -> None:
        last = self._last
        if last is not None:
            self._last = None
            if self._pre_acknowledged:
                return
            self._consumer.acknowledge_through(last, self._shell.options.ack_batch_size)

    def acknowledge(self, delivery: Delivery) -> Acknowledgement:
        """Acknowledges a delivery; called by ReceivedMessage.acknowledge."""
        consumer = self._consumer
        if consumer.browse_only or self._pre_acknowledged:
            return READY
        options = self._shell.options
        with self._shell.engine_lock:
            if options.block_on_acknowledge:
                reply = consumer.acknowledge_and_wait(delivery, self._individual)
            else:
                if self._individual:
                    consumer.acknowledge_one(delivery)
                else:
                    consumer.acknowledge_through(delivery, options.ack_batch_size)
                self._shell.after_call()
                return READY
        return self._shell.outcome(reply)

    def settle(self, delivery: Delivery, reject: bool, delay_ms: int) -> Acknowledgement:
        """Gives a delivery back; called by ReceivedMessage.reject and release."""
        consumer = self._consumer
        if consumer.browse_only:
            raise IllegalState("a browser has no deliveries to give back", 104)
        if self._pre_acknowledged:
            raise IllegalState("preAcknowledge=true: the broker has no such message any more; remove the option", 104)
        if not self._settles(delivery):
            raise SettleUnsupported(
                f"{self._server(delivery)} is not an Atalanta node: acknowledge the message in a transaction "
                "and roll that back"
            )
        if self._last is delivery:
            self._last = None
        with self._shell.engine_lock:
            reply = consumer.settle(delivery, reject, delay_ms)
        return self._shell.outcome(reply)

    def _settles(self, delivery: Delivery) -> bool:
        return bool(self._shell.settles)

    def _server(self, delivery: Delivery) -> object:
        return self._shell.server

    async def close(self) -> None:
        """Closes the consumer. Messages without acknowledgement return to the queue."""
        if self._consumer.closed:
            return
        if self._auto:
            self._acknowledge_last()
        await self._end()

    async def _end(self) -> None:
        consumer = self._consumer
        assert isinstance(consumer, ClientConsumer)
        await self._shell.answer(consumer.session.close_consumer(consumer))

    async def __aenter__(self) -> Consumer:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._last = None
        await self.close()
