"""Who goes on for a target that is away: if it has left in order meanwhile, another node has what it had.

The good-bye that says so may have been missed, by a node that was down itself. So before anything is sent over a link
the target remembers a token among its duplicate ids, and so does the mark of the departure. A node that leaves takes up
nothing any more when it hands its ids on, and tokens go last (scale_down_caches.py): who has the token on disk has all
ids of what that target ever had of this node, and repeats of it come to nothing there. A target that was only restarted
gets another token with the next link, which nobody else has.

While the target cannot be reached, the members that were known at the freeze, and those the configuration leads to, are
asked for the token, one between two calls of the target. A real Artemis remembers no token: it is waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.scale_down_candidate import Candidate, Heard, place

if TYPE_CHECKING:
    from atalanta.cluster.scale_down import ScaleDown
    from atalanta.cluster.scale_down_link import TargetLink
    from atalanta.wire.core.transport import TransportConfiguration

MEMBERS_MAX: Final = 100
WHAT_TO_DO: Final = (
    "start it again (or let it leave to a member of this cluster); if it never returns, scale-down-resume = false lets"
    " this node serve its clients again, and what was under way may be at both"
)


class Heirs:
    """`asked`: who is being asked, instead of the target; `known`: members by node id, as the mark has them."""

    def __init__(self, part: ScaleDown) -> None:
        self.part = part
        self.known: dict[str, Candidate] = {}
        self.heard: Heard | None = None
        self.asked: Candidate | None = None
        self.due: bool = False  # the target was called last
        self.tried: dict[str, bool] = {}  # places, in this round
        self.answers: int = 0  # in this round: members that have nothing of it
        self.finding: str = ""  # of the last whole round
        self.told: str = ""  # the target that is waited for, as was said

    def remember(self) -> None:
        """The members of now, for the mark."""
        for member in self.part.cluster.topology.members.values():
            if member.primary is not None and len(self.known) < MEMBERS_MAX:
                self.known[member.node_id] = Candidate(member.node_id, member.primary)

    def called(self, candidate: Candidate) -> None:
        """That one could not be reached, or had no answer that helps."""
        self.due = candidate is not self.asked
        self.asked = None

    def next(self, now: int) -> Candidate | None:
        """Whom to ask before the target is called again."""
        if not self.due:
            return None
        self.due = False
        if not self.part.mark.token:
            self._waits("who takes over from it nobody could tell")
            return None
        for candidate in self._others(now):
            if place(candidate) not in self.tried:
                self.tried[place(candidate)] = True
                self.asked = candidate
                return candidate
        self._round_over()
        return None

    def has_nothing(self, link: TargetLink) -> None:
        self.answers += 1
        link.close("it has not taken over from the target")

    def _round_over(self) -> None:
        self._waits(f"of {self.answers} other members that answer none has taken over from it")
        self.tried = {}
        self.answers = 0

    def _waits(self, finding: str) -> None:
        target = self.part.target
        assert target is not None
        self.finding = finding
        if self.told != target.node_id:
            self.told = target.node_id
            why = f"{self.part.why}; {self.finding}. It is called until the time is up: {WHAT_TO_DO}"
            self.part.cluster.told("scale_down_waits_for_target", target.node_id, why)

    def _others(self, now: int) -> list[Candidate]:
        part = self.part
        cluster = part.cluster
        found = [*self.known.values(), *part.choice.candidates()]
        found += [Candidate("", cluster.transport(name)) for name in cluster.config.static_connectors]
        found += [Candidate(node_id, at) for node_id, at in self._heard(now).items()]
        assert part.target is not None
        gone = part.target.transport
        return [
            each
            for each in found
            if not each.transport.same_target(gone) and not part.clusters.is_own(each.transport)
        ]

    def _heard(self, now: int) -> dict[str, TransportConfiguration]:
        """Nodes in the discovery group, which a node that a crash interrupted joins for this alone."""
        part = self.part
        group = part.choice.group or part.cluster.config.discovery_group
        discovery = part.clusters.discovery
        if group is None:
            return {}
        if self.heard is None and not discovery.stopping:
            self.heard = Heard()
            discovery.listen(now, group, self.heard)
        return discovery.entries(group)
