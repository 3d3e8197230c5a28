"""Transactions: sends and acknowledgements that take effect together or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.client.consumer import CUMULATIVE, Consumer
from atalanta.client.large.body_stream import BodyStream, end_session
from atalanta.client.message import Message, ReceivedMessage
from atalanta.client.message_rate import pace_of
from atalanta.client.producer import Encoder, group_of, outgoing
from atalanta.wire.core.client.errors import Closed, IllegalState, TransactionRolledBack
from atalanta.wire.core.client.producer import ClientProducer
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.session import ClientSession

if TYPE_CHECKING:
    from atalanta.client.connection import Connection

CREDIT_CHECK_S: Final = 0.5

Blocked = Callable[[str, float], None]
"""Called with an address that grants no credits, and for how long (s) it has not; what it raises ends the wait."""


class Transaction:
    """A session of its own. After a commit or rollback the next transaction begins automatically.

    The context manager commits at the end of the block, rolls back if the block raises, and closes the transaction.
    A lost connection ends the transaction: TransactionRolledBack, or TransactionOutcomeUnknown if it was lost during
    the commit.
    """

    def __init__(self, connection: Connection, on_blocked: Blocked | None = None) -> None:
        self._connection = connection
        self._on_blocked = on_blocked
        self._shell = connection.shell
        self._session: ClientSession | None = None
        self._producers: dict[str, tuple[ClientProducer, Encoder]] = {}
        self._stream: Reply | None = None  # complete when the stream being sent has ended
        self._streamer: object = None  # the caller that sends it
        self._pace = pace_of(connection.options.producer_max_rate)

    async def open(self) -> Transaction:
        """Opens the session; `async with` calls it."""
        if self._session is None:
            self._session = await self._connection.open_session(transacted=True)
        return self

    @property
    def session(self) -> ClientSession:
        """Returns the engine's session. Raises Closed without an open one."""
        if self._session is None:
            raise Closed("the transaction is not open")
        return self._session

    async def send(
        self,
        address: str,
        message: Message | ReceivedMessage,
        routing: str | None = None,
        *,
        ttl_s: float | None = None,
        delay_s: float | None = None,
        priority: int | None = None,
    ) -> None:
        """Sends a message in the transaction. The call waits only while the broker grants no credits.

        `routing` is that of Connection.producer, used with the first message to an address; `ttl_s`, `delay_s` and
        `priority` are those of Producer.send, and the seconds count from this call, not from the commit.

        If a `stream` raises, the whole transaction has no effect and can only be closed. While a stream is being sent,
        other streams, large messages, commit and rollback wait for its end. Raises IllegalState if they cannot wait
        (the blocking client, the stream's own task).
        """
        known = self._producers.get(address)
        if known is None:
            name, routing = await self._connection.destination(address, routing)
            group_id = group_of(self._connection.options)
            known = (self.session.producer(name), Encoder(name, routing, False, group_id))
            self._producers[address] = known
        producer, encoder = known
        message = outgoing(message)
        if ttl_s is not None or delay_s is not None or priority is not None:
            message = message.with_times(ttl_s, delay_s, priority)
        if message.stream is not None:
            if self._stream is not None:
                await self._end_of_stream()
                return await self.send(address, message, routing)
            whole = await self._streamed(producer, encoder, message)
            if whole is None:
                return
            message = whole
        head = encoder.head(message)
        if self._stream is not None and producer.is_large(message.body, head):
            await self._end_of_stream()
            return await self.send(address, message, routing)
        if self._pace is not None:
            await self._pace.wait(self._shell)
            self._pace.spend()
        producer.send(message.body, head, False)
        await self._credited(producer)

    async def _credited(self, producer: ClientProducer) -> None:
        """Waits until the broker has granted credits for all messages. Raises the error of one that was refused."""
        if producer.queue.waiting:
            reply = producer.queue.empty()
            since_s = time.monotonic()
            while self._on_blocked is not None and not await self._shell.wait(reply, CREDIT_CHECK_S):
                self.session.check_usable()
                self._on_blocked(producer.address, time.monotonic() - since_s)
            await self._shell.answer(reply)
        if producer.errors:
            raise producer.errors.pop(0)

    async def _streamed(
        self, producer: ClientProducer, encoder: Encoder, message: Message
    ) -> Message | None:
        """Sends a stream like Producer._streamed, over this session.

        If the stream breaks off, the session and its transaction end: only then does the broker discard the received
        part.
        """
        session = self.session
        ended = self._stream = Reply()
        self._streamer = self._shell.caller()
        try:
            body = BodyStream(self._shell, message)
            await body.begin()
            if body.whole is not None:
                return message.with_body(body.whole)
            try:
                reply = await body.transfer(producer, encoder.head(message))
                await self._shell.answer(reply)
            except BaseException:
                if self._session is session and not session.rolled_back:
                    self._session = None
                    self._producers.clear()
                    end_session(self._shell, session)
                raise
            return None
        finally:
            self._stream = None
            ended.resolve(None)

    async def _end_of_stream(self) -> None:
        """Waits until no stream is being sent: no other large message may be sent between its pieces."""
        while self._stream is not None:
            if self._streamer == self._shell.caller():
                raise IllegalState("a stream is being sent in this transaction: one at a time")
            await self._shell.answer(self._stream)

    async def consumer(
        self, queue: str, selector: str | None = None, ack: str = CUMULATIVE, *, members: str | None = None
    ) -> Consumer:
        """Opens a consumer whose acknowledgements are part of the transaction. A rollback returns its messages.

        IllegalState for `members`: one commit at several nodes would not be one.
        """
        if members is not None:
            raise IllegalState(
                "members: a transaction is committed at one node; consume at each in a transaction of its own, "
                'or acknowledge one by one with connection.consumer(…, members="all")',
                104,
            )
        return await self._connection.open_consumer(self.session, queue, selector, ack=ack)

    async def commit(self) -> None:
        """Commits the transaction."""
        await self._sent()
        await self._shell.answer(self.session.commit())

    async def _sent(self) -> None:
        """Waits until all messages are sent. Raises the error of a message that the broker refused."""
        await self._end_of_stream()
        # A blocking shell detects a connection lost meanwhile only here.
        self._shell.after_call()
        for producer, _ in self._producers.values():
            await self._credited(producer)

    async def rollback(self) -> None:
        """Rolls the transaction back; received messages return to their queues."""
        await self._end_of_stream()
        session = self.session
        started = session.started
        if started and not session.rolled_back:
            await self._shell.answer(session.stop())
        await self._shell.answer(session.rollback())
        if started:
            session.start()
            self._shell.after_call()

    async def close(self) -> None:
        """Ends the session; the broker rolls an open transaction back."""
        session = self._session
        self._session = None
        self._producers.clear()
        if session is not None:
            await self._shell.answer(session.close())

    async def __aenter__(self) -> Transaction:
        return await self.open()

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if kind is None:
                await self.commit()
            elif self._session is not None and not isinstance(error, TransactionRolledBack):
                try:
                    await self.rollback()
                except Exception as failed:
                    add_note(error, "rollback", failed)
        except BaseException as first:
            await self._close_after(first)
            raise
        else:
            await self._close_after(error)

    async def _close_after(self, error: object) -> None:
        """Closes the transaction. If `error` is one, it stays the one to see."""
        try:
            await self.close()
        except Exception as failed:
            add_note(error, "close", failed)


def add_note(error: object, what: str, failed: Exception) -> None:
    """Adds the failed clean-up to the first error as a note. Raises `failed` if there is no first one."""
    if not isinstance(error, BaseException):
        raise failed
    error.add_note(f"the {what} failed, too: {failed}")
