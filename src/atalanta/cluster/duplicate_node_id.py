"""Two nodes under one id, told from one node that was restarted.

Artemis warns whenever the unique id behind a node id changes (DiscoveryGroup.checkUniqueID), so also at every restart.
Here a restart changes it once; two nodes that are both there bring the earlier one back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.topology import Member
    from atalanta.kernel.ports import Trace

NODES_MAX: Final = 10_000
WHAT_TO_DO: Final = (
    "one data folder is a copy of the other: stop one of the two nodes, delete the file node-id in its data folder,"
    " and start it again"
)


class Sighting:
    """What was seen last under a node id, and what before that."""

    def __init__(self, mark: str, place: str) -> None:
        self.mark = mark
        self.place = place
        self.before: str = ""
        self.changed_ns: int = 0
        self.told_ns: int = 0


class Sightings:
    """`window_ns`: two marks that alternate within it are two nodes; said once in that time."""

    def __init__(self, window_ns: int) -> None:
        self.window_ns = window_ns
        self.seen: dict[str, Sighting] = {}

    def see(self, now: int, node_id: str, mark: str, place: str) -> tuple[str, str] | None:
        """Both places if `node_id` is shown by two nodes and nobody was told lately."""
        known = self.seen.get(node_id)
        if known is None:
            if len(self.seen) >= NODES_MAX:
                del self.seen[next(iter(self.seen))]
            self.seen[node_id] = Sighting(mark, place)
            return None
        if mark == known.mark:
            known.place = place
            return None
        both = (known.place, place)
        returned = mark == known.before and now - known.changed_ns <= self.window_ns
        known.before = known.mark
        known.mark, known.place = mark, place
        known.changed_ns = now
        if not returned or (known.told_ns and now - known.told_ns < self.window_ns):
            return None
        known.told_ns = now
        return both


def check_one_place(trace: Trace, known: Member, news: Member) -> None:
    """`known` answers at its address: the same id at another address is a second node."""
    if known.primary is None or news.primary is None or news.event_id <= known.event_id:
        return
    if not known.primary.same_target(news.primary):
        one = f"{known.primary.host}:{known.primary.port}"
        other = f"{news.primary.host}:{news.primary.port}"
        tell_shared(trace, news.node_id, one, other)


def tell_shared(trace: Trace, node_id: str, one: str, other: str) -> None:
    """For the log of every node, not only of the two."""
    trace.event(
        "node_id_shared", {"node": node_id, "one": one, "other": other, "what_to_do": WHAT_TO_DO}
    )
