"""References to messages in page files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.journal.message_record import join_ids
from atalanta.kernel.queue.reference import Reference

if TYPE_CHECKING:
    from atalanta.kernel.queue.paging.page import Page
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.message import Message


class PagedReference(Reference):
    """A reference read from a page file (kernel/queue/paging/paging.py), with its `index` there until it is finished.

    Its message is not among those of MessageStore: the page holds what a restart needs.
    """

    def __init__(
        self, message: Message, queue: Queue, sequence: int, route_to: bytes, page: Page, index: int
    ) -> None:
        super().__init__(message, queue, sequence, route_to)
        self.page = page
        self.index = index
        self.entries: int = 1  # of the file: earlier builds could write a message twice into a page

    def join(self, index: int, route_to: bytes) -> None:
        """Adds another entry of the same message, a copy for the same queue (kernel/routing/router.py)."""
        self.entries = index - self.index + 1
        self.route_to = join_ids(self.route_to, route_to)
