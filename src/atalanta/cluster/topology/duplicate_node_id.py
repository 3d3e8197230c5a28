"""Detection of two nodes with the same node id, as opposed to a restart of one node.

Artemis warns whenever the unique id behind a node id changes (DiscoveryGroup.checkUniqueID), so it warns at every
restart. A restart changes the unique id only once. If two nodes are running, the earlier unique id is received
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.topology.topology import Member
    from atalanta.kernel.ports import Trace

NODES_MAX: Final = 10_000
WHAT_TO_DO: Final = (
    "one data folder is a copy of the other: stop one of the two nodes, delete the file node-id in its data folder,"
    " and start it again"
)


class Sighting:
    """The last mark of a node id and the one before. `mark` is the unique id, `place` the host:port."""

    def __init__(self, mark: str, place: str) -> None:
        self.mark = mark
        self.place = place
        self.before: str = ""
        self.changed_ns: int = 0
        self.told_ns: int = 0


class Sightings:
    """The marks of all node ids.

    Two marks that alternate within `window_ns` belong to two nodes. They are reported at most once in that time.
    """

    def __init__(self, window_ns: int) -> None:
        self.window_ns = window_ns
        self.seen: dict[str, Sighting] = {}

    def see(self, now: int, node_id: str, mark: str, place: str) -> tuple[str, str] | None:
        """Returns both places if two nodes use `node_id` and this was not reported lately, else None."""
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


def check_one_host(trace: Trace, known: Member, news: Member) -> None:
    """Reports a second node with the same id: `known` is connected, and `news` has another address.

    The backup of a known pair that takes over is not a second node.
    """
    if known.primary is None or news.primary is None or news.event_id <= known.event_id:
        return
    if not known.primary.same_target(news.primary) and not known.followed_by(news):
        one = known.primary.address
        other = news.primary.address
        report_shared_id(trace, news.node_id, one, other)


def report_shared_id(trace: Trace, node_id: str, one: str, other: str) -> None:
    """Records the event `node_id_shared`. Every node of the cluster records it, not only the two."""
    trace.event(
        "node_id_shared", {"node": node_id, "one": one, "other": other, "what_to_do": WHAT_TO_DO}
    )
