"""The position of a log view: which messages a reader may ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue


class ViewPosition:
    """A log view's range. `first`: lowest live sequence (or last + 1). `last`: highest stable one.

    See docs/internals/protocols/log-view.md.
    """

    def __init__(self, queue: Queue) -> None:
        self.incarnation = queue.incarnation
        self.acked_through = queue.log.reader_position()
        self.last: int = queue.stable_end()
        self.first: int = self.last + 1
        self.messages: int = 0
        self.bytes: int = 0
        self.first_timestamp_ms: int = 0
        self.last_timestamp_ms: int = 0
