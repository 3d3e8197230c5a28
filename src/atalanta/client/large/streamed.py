"""Sending bodies that are never in memory as a whole: read piece by piece, as the broker and the network take them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from atalanta.client.large.body_source import BodySource
from atalanta.wire.core.client.errors import ConnectionLost, DuplicateId
from atalanta.wire.core.client.producer import ClientProducer
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.session import ClientSession
from atalanta.wire.core.client.streamed import StreamedSending
from atalanta.wire.core.large_chunks import CHUNK_BYTES

if TYPE_CHECKING:
    from atalanta.client.message import Message
    from atalanta.client.shells.shell import Shell


class StreamedBody:
    """One message's body on its way. `begin` first; what is `whole` then is an ordinary message's body."""

    def __init__(self, shell: Shell, message: Message) -> None:
        self._shell = shell
        self._source = BodySource(shell, message.stream, message.size)
        self._first = b""

    async def begin(self) -> None:
        """Reads the first piece. Errors as those of BodySource, and whatever the stream raises."""
        self._first = await self._source.next_piece()

    @property
    def whole(self) -> bytes | None:
        """All of it, if it is short."""
        return self._first if len(self._first) < CHUNK_BYTES else None

    async def transfer(self, producer: ClientProducer, head: bytes) -> Reply:
        """All of it over the producer's session, which must end if this raises: a part of it may have left."""
        shell = self._shell
        sending = StreamedSending(producer, head)
        piece = self._first
        while len(piece) == CHUNK_BYTES:
            sending.add(piece)
            await shell.answer(sending.room())
            sending.check()
            await shell.drained()
            piece = await self._source.next_piece()
            sending.check()
        return sending.finish(piece)

    async def send(self, producer: ClientProducer, head: bytes) -> None:
        """Returns when the broker has it safe.

        Over a session of its own, so that others go on meanwhile, and that what was sent of it is gone with the
        session if the stream raises or this is cancelled. After a lost connection it begins anew, under the same
        duplicate id, if reconnectAttempts says so and the stream can be read again; else ConnectionLost.
        """
        repeated = False
        while True:
            try:
                await self._send_once(producer, head)
            except ConnectionLost as error:
                shell = self._shell
                if shell.options.reconnect_attempts == 0 or shell.engine.failed is not None:
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
            reply = await self.transfer(session.producer(producer.address), head)
            await shell.answer(reply)
        finally:
            end_session(shell, session)


def end_session(shell: Shell, session: ClientSession) -> None:
    """Nobody waits for the answer."""
    session.close()
    shell.after_call()
