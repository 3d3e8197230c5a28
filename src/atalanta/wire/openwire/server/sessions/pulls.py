"""Consumers with prefetch 0: each message is asked for by MessagePull (PrefetchSubscription.pullMessage of Classic)."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.commands.deliveries import MessageDispatch

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.sessions.session import Session
    from atalanta.wire.openwire.commands.consumers import MessagePull
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput
    from atalanta.wire.openwire.server.sessions.subscription import Subscription

PULL_TIMER: Final = "wire.openwire.pulls"
NOT_WAITING: Final = -1
NS_PER_MS: Final = 1_000_000
WAIT_MS_MAX: Final = 365 * 86_400_000
SWEPT_MIN: Final = 1_000


class Pulls:
    """The pulls of a node that wait. `due`: time (ns), number of the pull, its session, connection and consumer.

    Most are answered long before their time: at `sweep_at` entries those that wait no more are forgotten. A consumer
    has one that waits, and the memory of consumers has its limits: nothing else is refused here.
    """

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.due: list[tuple[int, int, Session, OpenWireOutput, Subscription]] = []
        self.number: int = 0
        self.sweep_at: int = SWEPT_MIN

    def pull(
        self, kernel: Session, connection: OpenWireOutput, now: int, subscription: Subscription, pull: MessagePull
    ) -> None:
        """Asks for one message. `timeout`: 0 waits for ever, -1 not at all, else so many ms."""
        if len(self.due) >= self.sweep_at:
            self._sweep()
        self.number += 1
        subscription.begin_pull(self.number)
        for part in subscription.parts.values():
            consumer = kernel.consumers.get(part.number)
            if consumer is not None and consumer.credits < 1:
                kernel.add_credits(part.number, 1 - consumer.credits)
        if pull.timeout == NOT_WAITING:
            for number in list(subscription.parts):
                kernel.drain(now, number, self.number)
        elif pull.timeout > 0:
            at = now + min(pull.timeout, WAIT_MS_MAX) * NS_PER_MS
            heapq.heappush(self.due, (at, self.number, kernel, connection, subscription))
            self._arm()

    def end(self, subscription: Subscription) -> None:
        """Ends the pull of a consumer: it got a message, or it closes."""
        subscription.pulling = False

    def delivered(self, kernel: Session, subscription: Subscription, number: int) -> None:
        """Ends the pull that the kernel's consumer `number` has answered; the other parts get no message for it."""
        self.end(subscription)
        for part in subscription.parts.values():
            consumer = kernel.consumers.get(part.number)
            if consumer is not None and part.number != number and consumer.credits > 0:
                consumer.take_credits(consumer.credits)

    def found_nothing(
        self, kernel: Session, connection: OpenWireOutput, subscription: Subscription, number: int
    ) -> None:
        """Answers a pull that found no message, unless it got one or another one followed."""
        if not subscription.waits_for(number):
            return
        self.end(subscription)
        for part in subscription.parts.values():
            consumer = kernel.consumers.get(part.number)
            if consumer is not None and consumer.credits > 0:
                consumer.take_credits(consumer.credits)
        connection.answer(MessageDispatch(subscription.id, subscription.info.destination, None, 0))

    def on_timer(self, now: int) -> None:
        """Answers what is due."""
        while self.due and self.due[0][0] <= now:
            _, number, kernel, connection, subscription = heapq.heappop(self.due)
            if not connection.gone:
                self.found_nothing(kernel, connection, subscription, number)
        self._arm()

    def _sweep(self) -> None:
        """Forgets the pulls that are answered, or whose client has gone."""
        self.due = [entry for entry in self.due if not entry[3].gone and entry[4].waits_for(entry[1])]
        heapq.heapify(self.due)
        self.sweep_at = max(2 * len(self.due), SWEPT_MIN)

    def _arm(self) -> None:
        if self.due:
            self.timers.set(PULL_TIMER, self.due[0][0])
