"""A request that waits until the queues of its message groups are chosen (kernel/publish/grouping.py).

The request is a send, or the commit of a transaction with such sends. The client's input is held until then, as a
session of Artemis blocks. So each producer's order is kept, and nothing is confirmed too early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from atalanta.kernel.publish.grouping import GroupWaiter

if TYPE_CHECKING:
    from atalanta.kernel.memory.large_body import LargeBodies, LargeBody
    from atalanta.kernel.publish.grouping import GroupingHandler
    from atalanta.kernel.sessions.session_endpoint import SessionEndpoint


class GroupWait(GroupWaiter):
    """The wait of one request. `retry` processes it again, and may call `ask` again; `body` is its large message's."""

    def __init__(
        self,
        handler: GroupingHandler,
        endpoint: SessionEndpoint,
        large: LargeBodies,
        body: LargeBody | None,
        retry: Callable[[int], None],
    ) -> None:
        super().__init__()
        self.handler = handler
        self.endpoint = endpoint
        self.large = large
        self.body = body
        self.retry = retry
        self.asked: bool = False
        self.ended: bool = False

    def begin(self) -> None:
        """Holds the client's input, and the file of a large message."""
        self.endpoint.hold_input()
        if self.body is not None:
            self.large.hold(self.body, 1)

    def ask(self, now: int, ids: list[str]) -> None:
        """Waits for the queues of these group ids."""
        self.asked = True
        self.handler.wait(now, ids, self)

    def decided(self, now: int) -> None:
        self.asked = False
        self.retry(now)
        if not self.asked:
            self.end()

    def end(self) -> None:
        """Releases the client's input: the request is processed or refused, or its session is closed."""
        if self.ended:
            return
        self.ended = True
        if self.asked:
            self.handler.forget(self)
        if self.body is not None:
            self.large.release(self.body)
        self.endpoint.release_input()
