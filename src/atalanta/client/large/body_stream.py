"""Streamed bodies, which are never in memory as a whole. Pieces are read as fast as broker and network accept them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from atalanta.client.large.body_source import BodySource
from atalanta.wire.core.client.errors import ConnectionLost, DuplicateId
from atalanta.wire.core.client.large_message import LargeMessageStream
from atalanta.wire.core.client.producer import ClientProducer
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.large_chunks import CHUNK_BYTES

if TYPE_CHECKING:
    from atalanta.client.message import Message
    from atalanta.client.shells.shell import ClientShell


class BodyStream:
    """The body of one message in transfer. Call `begin` first; a `whole` body then belongs to an ordinary message."""

    def __init__(self, shell: ClientShell, message: Message) -> None:
        self._shell = shell
        self._source = BodySource(shell, message.stream, message.size)
        self._first = b""

    async def begin(self) -> None:
        """Reads the first piece. Raises the errors of BodySource and of the stream."""
        self._first = await self._source.next_piece()

    @property
    def whole(self) -> bytes | None:
        """Returns the whole body if it is short."""
        return self._first if len(self._first) < CHUNK_BYTES else None

    async def transfer(self, producer: ClientProducer, head: bytes) -> Reply:
        """Sends the body over the producer's session. After an error the session must end: a part may have left."""
        shell = self._shell
        stream = LargeMessageStream(producer, head)
        piece = self._first
        while len(piece) == CHUNK_BYTES:
            stream.add(piece)
            await shell.answer(stream.room())
            stream.check()
            await shell.drained()
            piece = await self._source.next_piece()
            stream.check()
        return stream.finish(piece)

    async def send(self, producer: ClientProducer, head: bytes) -> None:
        """Sends the body and returns when the broker has stored it.

        The transfer has a session of its own, so that other messages continue. If the stream raises or the call is
        cancelled, the session ends and the broker discards the part. After a lost connection the transfer starts again
        under the same duplicate id, if reconnectAttempts allows it and the stream can be read again. Otherwise it
        raises ConnectionLost.
        """
        repeated = False
        while True:
            try:
                await self._send_once(producer, head)
            except ConnectionLost as error:
                shell = self._shell
                if not shell.options.reconnects or shell.engine.failed is not None:
                    raise
                if not self._source.rewind():
                    text = f"{error.text}; its stream cannot be read again from the beginning"
                    raise ConnectionLost(text, error.code) from error
                repeated = True
                producer.resent += 1
                await self.begin()
            except DuplicateId:
                if not repeated:
                    raise
                break  # it had arrived before the connection was lost
            else:
                break
        producer.sent += 1
        producer.confirmed += 1

    async def _send_once(self, producer: ClientProducer, head: bytes) -> None:
        shell = self._shell
        settings = replace(producer.session.settings, name=str(uuid.uuid4()), resume=False)
        session = shell.engine.session(settings)
        try:
            shell.after_call()
            await shell.answer(session.opened)
            sender = session.producer(producer.address)
            reply = await self.transfer(sender, head)
            await shell.answer(reply)
            producer.repeats += sender.repeats
        finally:
            end_session(shell, session)


def end_session(shell: ClientShell, session: ClientSession) -> None:
    """Closes the session without waiting for the answer."""
    session.close()
    shell.after_call()
