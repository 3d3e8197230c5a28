"""Transactions: sends and acknowledgements that take effect together or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.client.consumer import CUMULATIVE, Consumer
from atalanta.client.large.body_stream import BodyStream, end_session
from atalanta.client.message import Message, ReceivedMessage
from atalanta.client.producer import Encoder, outgoing
from atalanta.wire.core.client.errors import (
    ClientError,
    Closed,
    IllegalState,
    TransactionRolledBack,
)
from atalanta.wire.core.client.producer import ClientProducer
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.session import ClientSession

if TYPE_CHECKING:
    from atalanta.client.connection import Connection


class Transaction:
    """A session of its own. After a commit or rollback the next transaction begins automatically.

    The context manager commits at the end of the block, rolls back if the block raises, and closes the transaction.
    A lost connection ends the transaction: TransactionRolledBack, or TransactionOutcomeUnknown if it was lost during
    the commit.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._shell = connection.shell
        self._session: ClientSession | None = None
        self._producers: dict[str, tuple[ClientProducer, Encoder]] = {}
        self._stream: Reply | None = None  # complete when the stream being sent has ended
        self._streamer: object = None  # the caller that sends it

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
            known = (self.session.producer(name), Encoder(name, routing, False))
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
        producer.send(message.body, head, False)
        if producer.queue.waiting:
            await self._shell.answer(producer.queue.empty())
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
        self, queue: str, selector: str | None = None, ack: str = CUMULATIVE
    ) -> Consumer:
        """Opens a consumer whose acknowledgements are part of the transaction. A rollback returns its messages."""
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
            if producer.errors:
                raise producer.errors.pop(0)

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
                except ClientError as failed:
                    if not isinstance(error, BaseException):
                        raise
                    error.add_note(f"the rollback failed, too: {failed.text}")  # the first error is the one to see
        finally:
            await self.close()
