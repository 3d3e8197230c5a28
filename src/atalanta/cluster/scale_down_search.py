"""The search of a leaving node for one that takes its messages, while its clients are still served.

Who is leaving itself is not taken as a rule, since each would wait for the other; but where nobody else is left, of two
that both seek the one with the lower node id goes to the other, which waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.scale_down_candidate import Candidate, place
from atalanta.cluster.scale_down_link import TargetLink, session_prefix
from atalanta.cluster.scale_down_phase import SEEKING, UNDER_WAY, told_in
from atalanta.wire.core.connection import CoreConnection

if TYPE_CHECKING:
    from atalanta.cluster.scale_down import ScaleDown

# As long as Artemis waits for a node to appear (DEFAULT_DISCOVERY_INITIAL_WAIT_TIMEOUT).
SEEK_NS: Final = 10_000_000_000


class Search:
    """Of `part`, whose `candidate` is the one that is being dialled, or looked at."""

    def __init__(self, part: ScaleDown) -> None:
        self.part = part
        self.until = 0
        self.refused: dict[str, bool] = {}  # candidates of this round that could not be had
        self.coming: dict[str, bool] = {}  # node ids of those that leave, maybe to this node
        self.leaving: dict[str, bool] = {}  # those that were seen to leave themselves: asked last

    def begin(self, now: int) -> None:
        self.coming = {}
        self.go_on(now)

    def go_on(self, now: int) -> None:
        """There is time again."""
        self.until = now + SEEK_NS

    def step(self, now: int) -> Candidate | None:
        """Whom to dial next; None: all were tried in this round. `until` says how long there are more."""
        untried = self._untried()
        if untried:
            return untried[0]
        self.refused = {}
        if self._others_come():
            self.go_on(now)
        return None

    def refuse(self, candidate: Candidate) -> None:
        """That one cannot be had, in this round."""
        self.refused[place(candidate)] = True

    def _others_come(self) -> bool:
        """Whether a node that leaves to this one is still at it: whoever takes this node in gets its messages, too."""
        for connection in self.part.connections.values():
            if isinstance(connection, CoreConnection) and connection.cluster_peer:
                for session in connection.sessions.values():
                    for node_id in self.coming:
                        if session.session.name.startswith(session_prefix(node_id)):
                            return True
        return False

    def _untried(self) -> list[Candidate]:
        """Candidates of this round, those that leave themselves last."""
        found = self.part.choice.candidates()
        found = [each for each in found if place(each) not in self.refused]
        return sorted(found, key=lambda each: place(each) in self.leaving)

    def may_take(self, now: int, link: TargetLink, candidate: Candidate, value: object) -> bool:
        """By what that node says of a departure of its own."""
        phase, target = told_in(value)
        if phase not in UNDER_WAY:
            return True
        self.leaving[place(candidate)] = True
        self.coming[link.node_id] = True
        own = self.part.cluster.node_id
        if target == own:
            self.until = max(self.until, now + SEEK_NS)  # it comes here first
        return len(self._untried()) == 1 and phase == SEEKING and own < link.node_id
