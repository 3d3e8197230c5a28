"""The refusals of demand: each is told once, and tried again when permissions have changed or its queue is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.sessions.clients import ClientObserver

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue
    from atalanta.wire.openwire.server.bridge.node_demands import DemandOwner

REFUSED_TIMER: Final = "wire.openwire.refused"
RETRY_NS: Final = 5_000_000_000
PERIOD_NS: Final = 60_000_000_000
TOLD_MAX: Final = 100  # in a period: the other broker chooses what it asks for
KNOWN_MAX: Final = 10_000


class RefusedDemands(ClientObserver):
    """The refusals of a node.

    `told`: the reasons by bridge and destination. `waiting`: the bridges that were refused some. `created`: the names
    of queues since they last tried.
    """

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.told: dict[tuple[str, str], str] = {}
        self.waiting: list[DemandOwner] = []
        self.created: dict[str, bool] = {}
        self._period_end: int = 0
        self._told_in_period: int = 0

    def is_news(self, now: int, bridge: str, destination: str, why: str) -> bool:
        """Returns True if the refusal is to be told: it is another one than before, and not one of very many."""
        key = (bridge, destination)
        if self.told.get(key) == why:
            return False
        if now >= self._period_end:
            self._period_end = now + PERIOD_NS
            self._told_in_period = 0
        if self._told_in_period >= TOLD_MAX:
            return False
        self._told_in_period += 1
        if len(self.told) >= KNOWN_MAX:
            self.told.clear()
        self.told[key] = why
        return True

    def served(self, bridge: str, destination: str) -> None:
        """Forgets the refusal of a demand that is served now."""
        if self.told:
            self.told.pop((bridge, destination), None)

    def wait(self, now: int, bridge: DemandOwner) -> None:
        """Lets a bridge try again later."""
        if not any(each is bridge for each in self.waiting):
            self.waiting.append(bridge)
            if len(self.waiting) == 1:
                self.timers.set(REFUSED_TIMER, now + RETRY_NS)

    def on_queue_added(self, now: int, queue: Queue) -> None:
        if self.waiting:
            self.created[queue.name] = True
            self.timers.set(REFUSED_TIMER, 0)

    def on_timer(self, now: int) -> None:
        """Lets the bridges try again, but for those that have ended."""
        created = self.created
        self.created = {}
        self.waiting = [each for each in self.waiting if each.retry(now, created)]
        if self.waiting:
            self.timers.set(REFUSED_TIMER, now + RETRY_NS)
