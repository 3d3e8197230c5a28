"""The announcements of temporary destinations that a node has otherwise: from another bridge, or of its own client.

When that has ended the next bridge brings the destination. So replies find a client that has gone to another broker
before its former broker has seen its end, and the way around a broker that is away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.wire.openwire.server.bridge.local_receiver import LocalReceiver

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue
    from atalanta.wire.openwire.commands.producers import DestinationInfo

WAYS_TIMER: Final = "wire.openwire.ways"


@mypyc_attr(allow_interpreted_subclasses=True)
class Way(LocalReceiver):
    """A bridge that has announced temporary destinations."""

    def bring(self, now: int, info: DestinationInfo) -> None:
        """Creates the destination here, unless it has come another way again."""
        raise NotImplementedError


class OtherWays(ClientObserver):
    """The announcements by name, each with its bridge. `ended`: the names whose queue was deleted in this turn."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.by_name: dict[str, list[tuple[Way, DestinationInfo]]] = {}
        self.ended: dict[str, bool] = {}

    def add(self, name: str, way: Way, info: DestinationInfo) -> None:
        """Keeps an announcement."""
        self.by_name.setdefault(name, []).append((way, info))

    def remove(self, name: str, way: Way) -> None:
        """Forgets the announcement of a bridge."""
        left = [each for each in self.by_name.get(name, []) if each[0] is not way]
        if left:
            self.by_name[name] = left
        else:
            self.by_name.pop(name, None)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        if queue.name in self.by_name:
            self.ended[queue.name] = True
            self.timers.set(WAYS_TIMER, 0)

    def on_timer(self, now: int) -> None:
        """Lets the bridges bring what has ended; all but the first wait again."""
        ended = self.ended
        self.ended = {}
        for name in ended:
            for way, info in self.by_name.pop(name, []):
                way.bring(now, info)
