"""A request that waits until the queues of its message groups are chosen (kernel/publish/grouping.py).

The request is a send, or the commit of a transaction with such sends. The client's input is held until then, as a
session of Artemis blocks. So each producer's order is kept, and nothing is confirmed too early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from atalanta.kernel.publish.grouping import GroupWaiter

if TYPE_CHECKING:
    from atalanta.kernel.command import CurrentCommand
    from atalanta.kernel.memory.large_body import LargeBodies, LargeBody
    from atalanta.kernel.publish.grouping import GroupingHandler, Undecided
    from atalanta.kernel.sessions.session_endpoint import SessionEndpoint


class GroupWait(GroupWaiter):
    """The wait of a session's request.

    `retry` processes it again, and may call `wait` again; `fail` closes the connection if that fails by a mistake of
    ours. `body` is that of the request's large message. `active` is False after the end.
    """

    def __init__(
        self,
        handler: GroupingHandler,
        endpoint: SessionEndpoint,
        command: CurrentCommand,
        large: LargeBodies,
        body: LargeBody | None,
        retry: Callable[[int], None],
        fail: Callable[[int, Exception], None],
    ) -> None:
        """Holds the client's input, and the file of a large message."""
        super().__init__()
        self.handler = handler
        self.endpoint = endpoint
        self.command = command
        self.large = large
        self.body = body
        self.retry = retry
        self.fail = fail
        self.asked: bool = False
        self.active: bool = True
        self.endpoint.hold_input()
        if body is not None:
            self.large.hold(body, 1)

    def wait(self, now: int, undecided: Undecided) -> None:
        """Waits for the queues of the request's groups."""
        self.asked = True
        self.handler.wait(now, undecided.ids, self)

    def decided(self, now: int) -> None:
        """As in GroupWaiter. Timers and other connections call it: a mistake of ours costs this client's one only."""
        self.asked = False
        command = self.command
        before = command.enter()
        try:
            command.begin()
            self.retry(now)
        except Exception as error:
            if command.changing:
                raise
            self.endpoint.hold_input()  # nothing that follows the request is processed
            self.fail(now, error)
        command.leave(before)
        if not self.asked:
            self.end()

    def end(self) -> None:
        """Releases the client's input: the request is processed or refused, or its session is closed."""
        if not self.active:
            return
        self.active = False
        if self.asked:
            self.handler.forget(self)
        if self.body is not None:
            self.large.release(self.body)
        self.endpoint.release_input()
