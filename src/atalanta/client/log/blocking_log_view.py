"""The log view of the client without asyncio."""

from __future__ import annotations

from collections.abc import Iterator

from atalanta.client.log.large_entry import BODY_BYTES_MAX
from atalanta.client.log.log_view import CHUNK_BYTES, Chunk, Lease, Plan, requested_bytes
from atalanta.client.log.log_view import LogView as AsyncLogView
from atalanta.client.message import ReceivedMessage
from atalanta.client.shells.blocking_shell import BlockingShell
from atalanta.message.log_position import Position
from atalanta.wire.core.lost_range import LostRange


class LogView:
    """See atalanta.client.LogView; here without `await`."""

    def __init__(self, shell: BlockingShell, view: AsyncLogView) -> None:
        self._shell = shell
        self._view = view
        self.queue = view.queue

    @property
    def incarnation(self) -> str:
        return self._view.incarnation

    @incarnation.setter
    def incarnation(self, incarnation: str) -> None:
        self._view.incarnation = incarnation

    def position(self) -> Position:
        return self._shell.call(self._view.position())

    def plan(
        self, start: int, max_messages: int | None = None, max_bytes: int | None = None
    ) -> Plan:
        return self._shell.call(self._view.plan(start, max_messages, max_bytes))

    def read(
        self, start: int, end: int, selector: str | None = None, chunk_bytes: int = CHUNK_BYTES
    ) -> Iterator[tuple[int, ReceivedMessage]]:
        for chunk in self.read_raw(start, end, selector, chunk_bytes):
            yield from chunk.messages()

    def read_raw(
        self,
        start: int,
        end: int,
        selector: str | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        body_bytes_max: int = BODY_BYTES_MAX,
        by_columns: bool = False,
    ) -> Iterator[Chunk]:
        view = self._view
        chunk_bytes = requested_bytes(chunk_bytes, body_bytes_max)
        session = self._shell.call(view.session())
        shell = self._shell
        with shell.lock:
            shell.expect_long_frames(abs(chunk_bytes))
            under_way = view.ask_chunk(session, start, end, selector, chunk_bytes, by_columns)
        try:
            while True:
                chunk = shell.call(view.chunk(under_way, body_bytes_max))
                if not chunk.last:
                    with shell.lock:
                        under_way = view.ask_chunk(session, chunk.next, end, selector, chunk_bytes, by_columns)
                yield chunk
                if chunk.last:
                    return
        finally:
            with shell.lock:
                shell.expect_long_frames(0)

    def queues(self) -> list[str]:
        return self._shell.call(self._view.queues())

    def ack_through(self, group: str, epoch: int, end: int) -> int:
        return self._shell.call(self._view.ack_through(group, epoch, end))

    def dead_letter(self, group: str, epoch: int, sequence: int, why: str) -> None:
        self._shell.call(self._view.dead_letter(group, epoch, sequence, why))

    def lease(self, group: str, owner: str, ttl_ms: int, epoch: int = 0) -> Lease:
        return self._shell.call(self._view.lease(group, owner, ttl_ms, epoch))

    def retain(
        self, group: str, epoch: int, age_ms: int = -1, max_bytes: int = -1, replay_from: int = -1
    ) -> int:
        return self._shell.call(self._view.retain(group, epoch, age_ms, max_bytes, replay_from))

    def lost_ranges(self, start: int, end: int) -> list[LostRange]:
        return self._shell.call(self._view.lost_ranges(start, end))

    def seek(self, timestamp_ms: int) -> int:
        return self._shell.call(self._view.seek(timestamp_ms))
