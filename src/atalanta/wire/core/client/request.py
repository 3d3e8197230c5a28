"""Requests on a session channel that the broker answers, and their outcome when the connection is lost.

Requests without a correlation id are sent one at a time, because their answers cannot be told apart. Requests with an
id need not wait for each other, except an `ordered` one (a commit): it follows all requests before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from atalanta.wire.core.client.answer_order import NO_CORRELATION, AnswerOrder
from atalanta.wire.core.client.errors import (
    CallTimedOut,
    ClientError,
    TransactionOutcomeUnknown,
    TransactionRolledBack,
)
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.packets import codec

# The outcome of an unanswered request when the connection is lost.
REPEAT: Final = 0  # send it again on the next connection
FORGET: Final = 1  # the loss has the same effect: it counts as done
FAIL: Final = 2  # the caller gets the error
ROLLED_BACK: Final = 3  # likewise: rolled back, or outcome unknown once sent

NOTHING_TOLERATED: Final = -1


class Request:
    """A request. `frame` is complete: channel and correlation stay the same after a reconnect.

    Only another version of the broker changes it (`RequestTable.rewrite`).

    `tolerated`: a repeated request that is refused with this code succeeded the first time (a queue that exists, a
    queue that is deleted).
    """

    def __init__(
        self,
        frame: bytes,
        reply: Reply,
        at_loss: int,
        correlation: int = NO_CORRELATION,
        tolerated: int = NOTHING_TOLERATED,
        ordered: bool = False,
    ) -> None:
        self.frame = frame
        self.reply = reply
        self.at_loss = at_loss
        self.correlation = correlation
        self.tolerated = tolerated
        self.ordered = ordered or correlation == NO_CORRELATION
        self.sent: bool = False
        self.repeated: bool = False
        self.deadline: int = 0  # ns; 0 before it is sent

    def rewrite(self, before: int, after: int) -> None:
        """Changes the frame to that of another version."""
        self.frame = codec.reencode(self.frame, before, after, self.correlation, NO_CORRELATION)


class RequestTable:
    """The requests of one session, and which of them an answer belongs to. `open`: they may be sent now.

    `write` writes a frame to the broker. `call_timeout_ns` limits the wait for an answer; -1 is never.
    """

    def __init__(
        self, write: Callable[[bytes], None], call_timeout_ns: int, is_open: bool = False
    ) -> None:
        self.open: bool = is_open
        self._write = write
        self._call_timeout_ns = call_timeout_ns
        self.order = AnswerOrder()
        self._waiting: deque[Request] = deque()
        self._current: Request | None = None
        self._correlated: dict[int, Request] = {}

    def add(self, now: int, request: Request) -> Reply:
        """Sends the request as soon as possible."""
        if request.ordered:
            self._waiting.append(request)
            self.pump(now)
        else:
            self._correlated[request.correlation] = request
            if self.open:
                self._send(now, request)
        return request.reply

    def begin(self, now: int, first: list[Request]) -> None:
        """Sends the requests after the session was created: those of `first`, then those that wait."""
        self.open = True
        self._waiting.extendleft(reversed(first))
        for request in list(self._correlated.values()):
            if request.reply.done:  # the caller waited no longer for a connection
                del self._correlated[request.correlation]
            else:
                self._send(now, request)
        self.pump(now)

    def rewrite(self, before: int, after: int) -> None:
        """Changes the frames of all requests, which will be sent to a broker of another version."""
        for request in [*self._waiting, *self._correlated.values()]:
            request.rewrite(before, after)

    def pump(self, now: int) -> None:
        """Sends the next requests until one without a correlation id awaits its answer."""
        while self.open and self._current is None and self._waiting:
            request = self._waiting.popleft()
            if request.reply.done:
                continue
            if request.correlation == NO_CORRELATION:
                self._current = request
            else:
                self._correlated[request.correlation] = request
            self._send(now, request)

    def _send(self, now: int, request: Request) -> None:
        request.sent = True
        if self._call_timeout_ns >= 0:
            request.deadline = now + self._call_timeout_ns
        self.order.sent(request.correlation, request.ordered)
        self._write(request.frame)

    def answer(self, now: int, correlation: int, value: object) -> bool:
        """Resolves the request that an answer belongs to; returns False if there is none."""
        request = self._take(correlation)
        if request is not None:
            request.reply.resolve(value)
        self.pump(now)
        return request is not None

    def refuse(self, now: int, correlation: int, error: ClientError) -> bool:
        """Fails the request that the broker refused; returns False if there is none."""
        request = self._take(correlation)
        if request is not None:
            if request.repeated and request.tolerated == error.code:
                request.reply.resolve(None)
            else:
                request.reply.fail(error)
        self.pump(now)
        return request is not None

    def _take(self, correlation: int) -> Request | None:
        if correlation != NO_CORRELATION:
            return self._correlated.pop(correlation, None)
        request = self._current
        self._current = None
        return request

    def idle(self) -> bool:
        """Returns True if no answer without a correlation id is awaited."""
        return self._current is None and not self._waiting

    def waits(self) -> bool:
        """Returns True if a request has no answer yet."""
        return not self.idle() or any(not each.reply.done for each in self._correlated.values())

    def check_deadlines(self, now: int) -> None:
        """Fails the requests that waited too long, and those that wait for them. A later answer is dropped."""
        late = [each for each in self._correlated.values() if 0 < each.deadline <= now]
        current = self._current
        if current is not None and 0 < current.deadline <= now:
            late = [current, *late, *self._waiting]
            self._waiting.clear()
        for request in late:
            timeout_ms = self._call_timeout_ns // 1_000_000
            request.reply.fail(CallTimedOut(f"no answer within {timeout_ms} ms", 3))

    def _all(self) -> list[Request]:
        requests = list(self._waiting)
        if self._current is not None:
            requests.insert(0, self._current)
        requests += self._correlated.values()
        self._waiting.clear()
        self._current = None
        self._correlated.clear()
        return requests

    def lost(self, error: ClientError) -> None:
        """Records that the connection is lost, and that the session will be created again."""
        self.open = False
        for request in self._all():
            if request.at_loss == REPEAT:
                if request.reply.done:
                    continue  # timed out already
                request.repeated = request.repeated or request.sent
                request.sent = False
                request.deadline = 0
                if request.ordered:
                    self._waiting.append(request)
                else:
                    self._correlated[request.correlation] = request
            else:
                _end(request, error)

    def fail(self, error: ClientError) -> None:
        """Ends all requests, which get no answers any more."""
        self.open = False
        for request in self._all():
            _end(request, error)


def _end(request: Request, error: ClientError) -> None:
    reply = request.reply
    if request.at_loss == FORGET:
        reply.resolve(None)
    elif request.at_loss == ROLLED_BACK and request.sent:
        reply.fail(_outcome_unknown(error))
    elif request.at_loss == ROLLED_BACK:
        reply.fail(TransactionRolledBack(f"before the commit: {error.text}", 111))
    else:
        reply.fail(error)


def _outcome_unknown(error: ClientError) -> TransactionOutcomeUnknown:
    return TransactionOutcomeUnknown(
        f"the connection was lost while the commit was on its way ({error.text}): "
        "the transaction happened wholly or not at all"
    )
