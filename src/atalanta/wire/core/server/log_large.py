"""A chunk of a log view with large messages in it: answered when their files are read, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.memory.large_body import LargeBody, LargeReader
from atalanta.kernel.queue.delivery.bridge_origin import shown
from atalanta.message.internal_headers import ORIGIN
from atalanta.wire.core.packets.log_chunk import ChunkWriter, LogReadResponse

if TYPE_CHECKING:
    from atalanta.kernel.log.log_view import Chunk
    from atalanta.wire.core.server.session import CoreSession


class LargeChunk(LargeReader):
    """The bodies are held until the answer, which bounds them (logview.READ_BYTES_MAX)."""

    def __init__(self, session: CoreSession, correlation: int, chunk: Chunk) -> None:
        self.session = session
        self.correlation = correlation
        self.chunk = chunk
        self.writer = ChunkWriter()
        self.place: int = 0
        self.held: list[LargeBody] = []
        for reference in chunk.references:
            body = reference.message.large
            if body is not None:
                session.broker.large.hold(body, 1)
                self.held.append(body)

    def go_on(self) -> None:
        """As far as no file must be read."""
        references = self.chunk.references
        while self.place < len(references):
            reference = references[self.place]
            body = reference.message.large
            if body is not None:
                self.session.broker.large.read(body, 0, body.size, self)
                return
            message = shown(reference.message)
            self.writer.add(reference.sequence, reference.delivery_count, message)
            self.place += 1
        chunk = self.chunk
        writer = self.writer
        self._end()
        self.session.reply(
            LogReadResponse(
                correlation=self.correlation,
                next=chunk.next,
                last=chunk.last,
                count=writer.count,
                entries=writer.getvalue(),
            )
        )

    def read(self, now: int, data: bytes) -> None:
        reference = self.chunk.references[self.place]
        body = reference.message.large
        if body is None or len(data) < body.size:
            self._end()
            text = f"large message at {reference.sequence} of {reference.queue.name} cannot be read"
            self.session.failed(self.correlation, BrokerError(ILLEGAL_STATE, text))
            return
        whole = reference.message.copy(reference.message.id)
        whole.remove_property(ORIGIN)
        whole.large = None
        whole.body = data
        self.writer.add(reference.sequence, reference.delivery_count, whole)
        self.place += 1
        self.go_on()

    def _end(self) -> None:
        for body in self.held:
            self.session.broker.large.release(body)
        self.held = []
