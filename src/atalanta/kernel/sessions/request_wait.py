"""A request that waits: for the queues of its message groups (kernel/publish/grouping.py), or for its next step.

The request is a send, or the end of a transaction. The client's input is held until then, as a session of Artemis
blocks. So each producer's order is kept, and nothing is confirmed too early.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.publish.grouping import GroupWaiter, Undecided

if TYPE_CHECKING:
    from atalanta.kernel.command import CurrentCommand
    from atalanta.kernel.errors import Postponed
    from atalanta.kernel.memory.large_body import LargeBodies, LargeBody
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.publish.grouping import GroupingHandler
    from atalanta.kernel.sessions.session_endpoint import SessionEndpoint

STEP_TIMER: Final = "kernel.step"


class UnfinishedRequests:
    """The large requests that go on in later event-loop iterations: one step of one request in each, in turn."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.waiting: deque[GroupWaiter] = deque()

    def add(self, now: int, waiter: GroupWaiter) -> None:
        """Calls the waiter's `decided` in a later event-loop iteration."""
        self.waiting.append(waiter)
        self.timers.set(STEP_TIMER, now)

    def forget(self, waiter: GroupWaiter) -> None:
        """Removes a waiter."""
        self.waiting.remove(waiter)

    def on_timer(self, now: int) -> None:
        """Does a step of the request that has waited longest."""
        if self.waiting:
            self.waiting.popleft().decided(now)
        if self.waiting:
            self.timers.set(STEP_TIMER, now)


class RequestWait(GroupWaiter):
    """The wait of a session's request.

    `retry` processes it again, and may call `wait` again; `fail` closes the connection if that fails by a mistake of
    ours. `handler` is the node's grouping handler. `body` is that of the request's large message. `following`: the
    body and `retry` of what the client has sent with it. `trying` is True during `retry`, `active` False after the end.
    """

    def __init__(
        self,
        unfinished: UnfinishedRequests,
        handler: GroupingHandler | None,
        endpoint: SessionEndpoint,
        command: CurrentCommand,
        large: LargeBodies,
        body: LargeBody | None,
        retry: Callable[[int], None],
        fail: Callable[[int, Exception], None],
    ) -> None:
        """Holds the client's input, and the file of a large message."""
        super().__init__()
        self.unfinished = unfinished
        self.handler = handler
        self.endpoint = endpoint
        self.command = command
        self.large = large
        self.body = body
        self.retry = retry
        self.fail = fail
        self.asked: bool = False  # the handler will call `decided`
        self.listed: bool = False  # `unfinished` will
        self.active: bool = True
        self.trying: bool = False
        self.following: list[tuple[LargeBody | None, Callable[[int], None]]] = []
        self.endpoint.hold_input()
        if body is not None:
            self.large.hold(body, 1)

    def wait(self, now: int, postponed: Postponed) -> None:
        """Waits for the queues of the request's groups, or for its next step."""
        if isinstance(postponed, Undecided):
            assert self.handler is not None
            self.asked = True
            self.handler.wait(now, postponed.ids, self)
        else:
            self.listed = True
            self.unfinished.add(now, self)

    def add(self, body: LargeBody | None, retry: Callable[[int], None]) -> None:
        """Adds what is processed behind the request."""
        self.following.append((body, retry))
        if body is not None:
            self.large.hold(body, 1)

    def decided(self, now: int) -> None:
        """As in GroupWaiter. Timers and other connections call it: a mistake of ours costs this client's one only."""
        self.asked = False
        self.listed = False
        command = self.command
        before = command.enter()
        try:
            command.begin()
            self.trying = True
            self.retry(now)
            while self.following and not self.asked and not self.listed:
                self._take_next()
                self.retry(now)
        except Exception as error:
            if command.changing:
                raise
            self.endpoint.hold_input()  # nothing that follows the request is processed
            self.fail(now, error)
        self.trying = False
        command.leave(before)
        if not self.asked and not self.listed:
            self.end()

    def end(self) -> None:
        """Releases the client's input: the request is processed or refused, or its session is closed."""
        if not self.active:
            return
        self.active = False
        if self.asked and self.handler is not None:
            self.handler.forget(self)
        if self.listed:
            self.unfinished.forget(self)
        self._release_body()
        while self.following:
            self.body = self.following.pop(0)[0]
            self._release_body()
        self.endpoint.release_input()

    def _take_next(self) -> None:
        self._release_body()
        self.body, self.retry = self.following.pop(0)
        self.since = 0

    def _release_body(self) -> None:
        if self.body is not None:
            self.large.release(self.body)
            self.body = None
