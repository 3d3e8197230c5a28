"""Sends and acknowledgements that happen together or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.client.consumer import CUMULATIVE, Consumer
from atalanta.client.large.streamed import StreamedBody, end_session
from atalanta.client.message import Message, ReceivedMessage
from atalanta.client.producer import Encoder, outgoing
from atalanta.wire.core.client.errors import Closed, IllegalState, TransactionRolledBack
from atalanta.wire.core.client.producer import ClientProducer
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.packets.logview import LogCommit

if TYPE_CHECKING:
    from atalanta.client.connection import Connection

Sink = tuple[str, int, int]


class Transaction:
    """A session of its own; after a commit or rollback the next transaction begins by itself.

    As a context manager it commits at the end of the block, rolls back when the block raises, and
    is closed after that. A lost connection takes the transaction with it: TransactionRolledBack,
    or TransactionOutcomeUnknown when it was lost during the commit.
    """

    def __init__(self, connection: Connection, sink: Sink | None) -> None:
        self._connection = connection
        self._shell = connection.shell
        self._sink = sink
        self._session: ClientSession | None = None
        self._producers: dict[str, tuple[ClientProducer, Encoder]] = {}
        self._stream: Reply | None = None  # done when the one that is being sent has ended
        self._streamer: object = None  # who sends it

    async def open(self) -> Transaction:
        """Makes the session; `async with` does it by itself."""
        if self._session is None:
            self._session = await self._connection.open_session(transacted=True)
        return self

    @property
    def session(self) -> ClientSession:
        """The engine's session. Closed: there is none (any more)."""
        if self._session is None:
            raise Closed("the transaction is not open")
        return self._session

    async def send(
        self, address: str, message: Message | ReceivedMessage, routing: str | None = None
    ) -> None:
        """Part of the transaction; waits only while the broker gives no credits. `routing` as for
        Connection.producer, looked at with the first message to an address. If a `stream` raises, nothing of the
        transaction happens, and it can only be closed. While a stream is being sent, others and large messages wait for
        its end, and so do commit and rollback; IllegalState where that cannot be (the blocking client, the
        stream's own task).
        """
        known = self._producers.get(address)
        if known is None:
            name, routing = await self._connection.destination(address, routing)
            known = (self.session.producer(name), Encoder(name, routing, False))
            self._producers[address] = known
        producer, encoder = known
        message = outgoing(message)
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
        if producer.credits.waiting:
            await self._shell.answer(producer.credits.empty())
        if producer.errors:
            raise producer.errors.pop(0)

    async def _streamed(
        self, producer: ClientProducer, encoder: Encoder, message: Message
    ) -> Message | None:
        """As Producer._streamed, over this session. If it breaks off the session ends, since only then the broker
        forgets what came of it, and the transaction with it.
        """
        session = self.session
        ended = self._stream = Reply()
        self._streamer = self._shell.caller()
        try:
            body = StreamedBody(self._shell, message)
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
        """Waits until no stream is being sent: on the wire nothing large comes between its pieces."""
        while self._stream is not None:
            if self._streamer == self._shell.caller():
                raise IllegalState("a stream is being sent in this transaction: one at a time")
            await self._shell.answer(self._stream)

    async def consumer(
        self, queue: str, selector: str | None = None, ack: str = CUMULATIVE
    ) -> Consumer:
        """Its acknowledgements are part of the transaction; a rollback gives its messages back."""
        return await self._connection.open_consumer(self.session, queue, selector, ack=ack)

    async def commit(self, sink: Sink | None = None) -> None:
        """Everything happens. `sink` (query, batch, partition): under a durable id, with which it
        can happen only once: DuplicateId says that it had happened before (log view, LOG_COMMIT).
        """
        await self._end_of_stream()
        session = self.session
        sink = self._sink if sink is None else sink
        # A blocking shell learns here of a connection that was lost meanwhile.
        self._shell.after_call()
        for producer, _ in self._producers.values():
            if producer.errors:
                raise producer.errors.pop(0)
        if sink is None:
            await self._shell.answer(session.commit())
            return
        await self._connection.require_log_view()
        query, batch, partition = sink
        correlation = session.next_correlation()
        packet = LogCommit(correlation=correlation, query=query, batch=batch, partition=partition)
        await self._shell.answer(session.commit_by(packet, correlation))

    async def rollback(self) -> None:
        """Nothing of it happens; received messages go back to their queues."""
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
        """Ends the session; what was not committed is rolled back by the broker."""
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
                await self.rollback()
        finally:
            await self.close()
