"""The REMOTE grouping handler: asks the LOCAL handler and caches its answers (RemoteGroupingHandler).

With a group-timeout an answer is valid for that time from its request on, which it names: a LOCAL node that waits for
its disk or its replicas answers late. While the group is in use, the answer is renewed at half of that time. The LOCAL
handler frees no group earlier, so both always mean the same queue. A LOCAL handler of Artemis names no request: its
answer counts from the first request that is open.

Three things differ from Artemis. The queue in the response counts, never the one that this node proposed. If the
queue is not known here yet, the sender waits for it. Without an answer within `timeout` the send is refused, as
Artemis' manual says; Artemis' code asks ten times more and then routes the message without its group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.grouping.handler import (
    GROUPS_MAX,
    PROPOSAL,
    PROPOSAL_RESPONSE,
    UNPROPOSAL,
    ClusterGrouping,
    Question,
)

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterSettings
    from atalanta.cluster.grouping.config import GroupingHandlerConfig
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.registry.queues import QueueRegistry

DIGITS_MAX: Final = 20  # of a time in nanoseconds


class CachedDecision:
    """A cached decision, valid for group-timeout from `since` on. `renewed_at` is the time of the last renewal."""

    def __init__(self, cluster_name: str, since: int) -> None:
        self.cluster_name = cluster_name
        self.since = since
        self.renewed_at: int = since


class RemoteGrouping(ClusterGrouping):
    """The REMOTE handler. `answers` is by full id, oldest first. `arbiter` is the peer whose LOCAL handler has
    answered."""

    def __init__(
        self,
        config: GroupingHandlerConfig,
        settings: ClusterSettings,
        queues: QueueRegistry,
        values: NamedValues,
        timers: Timers,
        notifications: Notifications,
    ) -> None:
        super().__init__(config, settings, queues, values, timers, notifications)
        self.answers: dict[str, CachedDecision] = {}
        self.by_queue: dict[str, dict[str, bool]] = {}  # cluster name -> its groups
        self.arbiter: str = ""
        self.left: dict[str, bool] = {}  # queues that were deleted or whose node left in good order, while this one ran

    # -- routing --------------------------------------------------------------------------------
    def chosen(self, now: int, full_id: str) -> str | None:
        answer = self.answers.get(full_id)
        if answer is None:
            return None
        if self.group_timeout_ns > 0 and now - answer.since >= self.group_timeout_ns:
            self._forget(full_id)
            return None
        return answer.cluster_name

    def used(self, now: int, full_id: str) -> None:
        """Renews the group at the LOCAL handler, at half of the group-timeout."""
        if self.group_timeout_ns <= 0:
            return
        answer = self.answers[full_id]
        half = self.group_timeout_ns // 2
        if now - answer.since > half and now - answer.renewed_at > half // 2:
            answer.renewed_at = now
            self._ask(now, full_id, answer.cluster_name)

    def propose(self, now: int, full_id: str, cluster_name: str) -> str | None:
        if full_id not in self.questions:
            self.questions[full_id] = Question(now, cluster_name, "")
            self._ask(now, full_id, cluster_name)
            self.arm(now)
        return None

    def not_found(self, now: int, full_id: str, cluster_name: str) -> None:
        """Asks the LOCAL handler, since the queue may have been deleted."""
        if full_id not in self.questions:
            super().not_found(now, full_id, cluster_name)
            self._ask(now, full_id, cluster_name)

    def ask(self, now: int, full_id: str, question: Question) -> None:
        self._ask(now, full_id, question.proposed or question.chosen)

    def _ask(self, now: int, full_id: str, cluster_name: str) -> None:
        self.say(now, PROPOSAL, full_id, cluster_name, None, 0, asked=f"{self.node_id} {now}")

    # -- notifications --------------------------------------------------------------------------
    def on_proposal(self, now: int, full_id: str, value: str | None, distance: int, asked: str | None) -> None:
        self.say(now, PROPOSAL, full_id, value, None, distance + 1, asked=asked)

    def on_response(
        self,
        now: int,
        node_id: str,
        full_id: str,
        value: str | None,
        alternative: str | None,
        distance: int,
        asked: str | None,
    ) -> None:
        self.say(now, PROPOSAL_RESPONSE, full_id, value, alternative, distance + 1, asked=asked)
        if distance == 0:
            self.arbiter = node_id
        winner = alternative or value
        if not winner:
            return
        question = self.questions.get(full_id)
        since = self._since(now, full_id, winner, asked)
        if since < 0:
            return
        self._remember(full_id, winner, since)
        if question is None:
            return
        if self.located(winner):
            self.answered(now, full_id)
        else:
            question.proposed = ""
            question.chosen = winner

    def _since(self, now: int, full_id: str, winner: str, asked: str | None) -> int:
        """Returns the time of an answer's request; -1 if it is not valid here: another node asked, or too long ago."""
        if self.group_timeout_ns <= 0:
            return now
        known = self.answers.get(full_id)
        if asked is None:
            question = self.questions.get(full_id)
            if question is not None:
                return question.first_asked_at
            if known is not None and known.cluster_name == winner:
                return max(known.since, known.renewed_at)
            return now - self.group_timeout_ns // 2
        asker, _, asked_at = asked.rpartition(" ")
        if asker != self.node_id or not asked_at.isdecimal():
            return -1
        since = min(int(asked_at[:DIGITS_MAX]), now)
        if now - since >= self.group_timeout_ns or (known is not None and since < known.since):
            return -1
        return since

    def _remember(self, full_id: str, winner: str, since: int) -> None:
        """Caches the answer."""
        self._forget(full_id)
        if len(self.answers) >= GROUPS_MAX:
            self._forget(next(iter(self.answers)))
        self.answers[full_id] = CachedDecision(winner, since)
        self.by_queue.setdefault(winner, {})[full_id] = True

    def on_unproposal(self, now: int, full_id: str, value: str | None, distance: int) -> None:
        self.say(now, UNPROPOSAL, full_id, value, None, distance + 1)
        answer = self.answers.get(full_id)
        if answer is not None:
            self.free_consumer(full_id, answer.cluster_name)
            self._forget(full_id)
        self.answered(now, full_id)

    def _forget(self, full_id: str) -> None:
        answer = self.answers.pop(full_id, None)
        if answer is None:
            return
        of_queue = self.by_queue.get(answer.cluster_name)
        if of_queue is not None:
            of_queue.pop(full_id, None)
            if not of_queue:
                del self.by_queue[answer.cluster_name]

    def give_up(self, now: int, full_id: str, cluster_name: str) -> None:
        """Frees the group for a LOCAL handler that has not noticed. A LOCAL handler of Artemis accepts this from any
        node."""
        self._forget(full_id)
        self.say(now, UNPROPOSAL, full_id, cluster_name, None, 0)
        self.answered(now, full_id)

    def gone(self, cluster_name: str) -> bool:
        """Implements ClusterGrouping.gone; the LOCAL node may have been away when the queue went."""
        return cluster_name in self.left or super().gone(cluster_name)

    # -- changes in the cluster -----------------------------------------------------------------
    def remote_added(self, now: int, cluster_name: str) -> None:
        self.left.pop(cluster_name, None)
        super().remote_added(now, cluster_name)

    def remote_removed(self, now: int, cluster_name: str) -> None:
        if len(self.left) < GROUPS_MAX:
            self.left[cluster_name] = True
        super().remote_removed(now, cluster_name)

    def queue_gone(self, now: int, cluster_name: str) -> None:
        for full_id in list(self.by_queue.get(cluster_name, {})):
            self._forget(full_id)
        super().queue_gone(now, cluster_name)

    def peer_complete(self, now: int, node_id: str) -> None:
        """Asks again for every group: responses of the LOCAL handler may have been lost while its link was down."""
        super().peer_complete(now, node_id)
        if node_id == self.arbiter:
            self.answers.clear()
            self.by_queue.clear()
        for full_id, question in list(self.questions.items()):
            if question.waiting:
                question.asked_at = now
                self.ask(now, full_id, question)
