"""The common base of LOCAL and REMOTE grouping handlers: waiting senders, and messages between the nodes.

Nodes exchange notifications on the handler's address. PROPOSAL names the queue to which a node would send the group.
PROPOSAL_RESPONSE is the LOCAL handler's decision, for all nodes. UNPROPOSAL frees the group. Each node passes
received notifications to its own peers with the distance increased by one; the peers' filters stop them at max-hops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.address_prefixes import Covered
from atalanta.cluster.part import Part
from atalanta.cluster.topology.distance import DISTANCE, distance_of
from atalanta.kernel.broker.notifications import Properties
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.observer import Observer
from atalanta.kernel.publish.grouping import GroupingHandler, GroupWaiter
from atalanta.message.properties import Int

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterSettings
    from atalanta.cluster.grouping.config import GroupingHandlerConfig
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.message.message import Message

PROPOSAL: Final = "PROPOSAL"
PROPOSAL_RESPONSE: Final = "PROPOSAL_RESPONSE"
UNPROPOSAL: Final = "UNPROPOSAL"
GROUP_ID: Final = "_JBM_ProposalGroupId"
VALUE: Final = "_JBM_ProposalValue"
ALTERNATIVE: Final = "_JBM_ProposalAltValue"
# Atalanta's own: who asks, and when by its clock. The answer has it, too. Artemis ignores it, and answers without it.
ASKED: Final = "_ATALANTA_Asked"
LOCAL_QUEUE: Final = 0
ASK_TIMER: Final = "grouping.ask"
ASK_AGAIN_NS: Final = 250_000_000  # a proposal may be lost while a link is being connected
GROUPS_MAX: Final = 1_000_000  # limit per node


class Question:
    """A group without a decision that senders wait for.

    `proposed` is the queue that this node proposes, `chosen` a decided queue that is not known here. One of them is
    empty.
    """

    def __init__(self, now: int, proposed: str, chosen: str) -> None:
        self.proposed = proposed
        self.chosen = chosen
        self.first_asked_at: int = now
        self.asked_at: int = now
        self.waiting: list[WaitingSender] = []


class WaitingSender:
    """A waiting sender, and the number of its groups without a decision."""

    def __init__(self, waiter: GroupWaiter, left: int) -> None:
        self.waiter = waiter
        self.left = left


class ClusterGrouping(GroupingHandler, Part):
    """The base class. `known` holds the cluster names of other nodes' queues, `complete` the peers that sent all of
    theirs."""

    def __init__(
        self,
        config: GroupingHandlerConfig,
        settings: ClusterSettings,
        queues: QueueRegistry,
        values: NamedValues,
        timers: Timers,
        notifications: Notifications,
    ) -> None:
        super().__init__()
        self.config = config
        self.queues = queues
        self.values = values
        self.timers = timers
        self.trace = queues.messages.trace
        self.notifications = notifications
        self.node_id = notifications.node_id
        self.cover(settings)
        self.known: dict[str, bool] = {}
        self.complete: dict[str, bool] = {}
        self.questions: dict[str, Question] = {}
        self.armed: bool = False
        self.timeout_ns = config.timeout_ms * 1_000_000
        self.group_timeout_ns = config.group_timeout_ms * 1_000_000

    def start(self, now: int) -> None:
        self.queues.observers.append(GroupingQueueWatch(self))

    def cover(self, settings: ClusterSettings) -> None:
        """Takes the addresses that the cluster connections share."""
        self.covered = [Covered(each.address) for each in settings.cluster_connections]

    def covers(self, address: str) -> bool:
        return any(each.covers(address) for each in self.covered)

    def located(self, cluster_name: str) -> bool:
        """Returns True if a message for this queue can be routed."""
        if self.is_own(cluster_name):
            return cluster_name[: -len(self.node_id)] in self.queues.by_name
        return cluster_name in self.known

    def is_own(self, cluster_name: str) -> bool:
        return cluster_name.endswith(self.node_id)

    # -- waiting senders ------------------------------------------------------------------------
    def wait(self, now: int, ids: list[str], waiter: GroupWaiter) -> None:
        if waiter.since == 0:
            waiter.since = now
        different = list(dict.fromkeys(ids))
        waiting = WaitingSender(waiter, len(different))
        for full_id in different:
            self.questions[full_id].waiting.append(waiting)
        self.arm(now)

    def forget(self, waiter: GroupWaiter) -> None:
        for question in self.questions.values():
            question.waiting = [each for each in question.waiting if each.waiter is not waiter]

    def answered(self, now: int, full_id: str) -> None:
        """Continues the senders that wait for the group. They may then wait for another group."""
        question = self.questions.pop(full_id, None)
        if question is None:
            return
        for waiting in question.waiting:
            waiting.left -= 1
            if waiting.left == 0:
                waiting.waiter.decided(now)

    def not_found(self, now: int, full_id: str, cluster_name: str) -> None:
        if full_id not in self.questions:
            self.questions[full_id] = Question(now, "", cluster_name)
            self.arm(now)

    def arm(self, now: int) -> None:
        if not self.armed and self.questions:
            self.armed = True
            self.timers.set(ASK_TIMER, now + min(ASK_AGAIN_NS, self.timeout_ns))

    def on_timer(self, now: int, key: str) -> None:
        if key != ASK_TIMER:
            return
        self.armed = False
        self._end_waits(now)
        for full_id, question in list(self.questions.items()):
            if not question.waiting:
                del self.questions[full_id]
            elif now - question.asked_at >= ASK_AGAIN_NS:
                question.asked_at = now
                self.ask(now, full_id, question)
        self.arm(now)

    def _end_waits(self, now: int) -> None:
        """Ends the waits that are longer than `timeout`: tries to settle the group once more,
        then refuses the send."""
        late: list[tuple[str, GroupWaiter]] = []
        for full_id, question in list(self.questions.items()):
            for waiting in question.waiting:
                if now - waiting.waiter.since >= self.timeout_ns:
                    late.append((full_id, waiting.waiter))
        for full_id, waiter in late:
            unsettled = self.questions.get(full_id)
            if unsettled is None or all(each.waiter is not waiter for each in unsettled.waiting):
                continue
            if unsettled.chosen and self.gone(unsettled.chosen):
                self.give_up(now, full_id, unsettled.chosen)
                continue
            self.forget(waiter)
            self._refuse(now, full_id, unsettled, waiter)

    def _refuse(self, now: int, full_id: str, question: Question, waiter: GroupWaiter) -> None:
        why = self.reason(question)
        self.trace.event("group_undecided", {"group": full_id, "why": why})
        self.refusal = BrokerError(
            ILLEGAL_STATE, f"message group {full_id}: {why} within {self.config.timeout_ms} ms"
        )
        try:
            waiter.decided(now)
        finally:
            self.refusal = None

    def reason(self, question: Question) -> str:
        if question.chosen:
            return f"its queue {question.chosen} was not seen"
        return "the node with the LOCAL grouping-handler did not answer"

    def gone(self, cluster_name: str) -> bool:
        """Returns True if the queue's node has sent all its queues and this one is not among them."""
        if self.located(cluster_name):
            return False
        if self.is_own(cluster_name):
            return True
        return any(cluster_name.endswith(node_id) for node_id in self.complete)

    def ask(self, now: int, full_id: str, question: Question) -> None:
        """Sends the proposal again, since there is no decision yet."""

    def give_up(self, now: int, full_id: str, cluster_name: str) -> None:
        """Frees a group whose queue no longer exists."""
        raise NotImplementedError

    # -- the cluster's queues -------------------------------------------------------------------
    def remote_added(self, now: int, cluster_name: str) -> None:
        self.known[cluster_name] = True
        self.found(now, cluster_name)

    def found(self, now: int, cluster_name: str) -> None:
        """Continues the senders that wait for this queue."""
        for full_id, question in list(self.questions.items()):
            if question.chosen == cluster_name:
                self.answered(now, full_id)

    def remote_removed(self, now: int, cluster_name: str) -> None:
        self.known.pop(cluster_name, None)
        self.queue_gone(now, cluster_name)

    def queue_gone(self, now: int, cluster_name: str) -> None:
        """Frees the groups of the queue; open proposals of it are proposed again."""
        for full_id, question in list(self.questions.items()):
            if question.proposed == cluster_name or question.chosen == cluster_name:
                self.answered(now, full_id)

    def peer_complete(self, now: int, node_id: str) -> None:
        self.complete[node_id] = True

    def peer_lost(self, now: int, node_id: str) -> None:
        self.complete.pop(node_id, None)

    # -- notifications --------------------------------------------------------------------------
    def on_notification(self, now: int, node_id: str, kind: str, message: Message) -> None:
        properties = message.properties
        full_id = properties.get(GROUP_ID)
        value = properties.get(VALUE)
        alternative = properties.get(ALTERNATIVE)
        asked = properties.get(ASKED)
        distance = distance_of(properties)
        if not isinstance(full_id, str) or distance is None:
            self.trace.event(
                "notification_incomplete", {"node": node_id, "why": f"{kind} without its properties"}
            )
            return
        said = value if isinstance(value, str) else None
        other = alternative if isinstance(alternative, str) else None
        request = asked if isinstance(asked, str) else None
        if kind == PROPOSAL:
            self.on_proposal(now, full_id, said, distance, request)
        elif kind == PROPOSAL_RESPONSE:
            self.on_response(now, node_id, full_id, said, other, distance, request)
        else:
            self.on_unproposal(now, full_id, said, distance)

    def on_proposal(self, now: int, full_id: str, value: str | None, distance: int, asked: str | None) -> None:
        raise NotImplementedError

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
        raise NotImplementedError

    def on_unproposal(self, now: int, full_id: str, value: str | None, distance: int) -> None:
        raise NotImplementedError

    def say(
        self,
        now: int,
        kind: str,
        full_id: str,
        value: str | None,
        alternative: str | None,
        distance: int,
        after_lsn: int = 0,
        asked: str | None = None,
    ) -> None:
        """Sends a notification to all peers, but not before `after_lsn` is durable."""
        properties: Properties = {
            GROUP_ID: full_id,
            VALUE: value,
            "_AMQ_Binding_Type": Int(LOCAL_QUEUE),
            "_AMQ_Address": self.config.address,
            DISTANCE: Int(distance),
        }
        if asked is not None:
            properties[ASKED] = asked
        if kind == PROPOSAL_RESPONSE:
            properties[ALTERNATIVE] = alternative
        self.notifications.publish(now, kind, properties, after_lsn)

    def free_consumer(self, full_id: str, cluster_name: str) -> None:
        """Frees the group, also from the consumer to which it is pinned here (QueueImpl.unproposed)."""
        if not self.is_own(cluster_name):
            return
        queue = self.queues.by_name.get(cluster_name[: -len(self.node_id)])
        if queue is None or queue.groups is None:
            return
        suffix = "." + queue.routing_name()
        if full_id.endswith(suffix):
            queue.rewind(queue.groups.release_group(full_id[: -len(suffix)]))
            self.queues.messages.dispatches.mark_dirty(queue)


class GroupingQueueWatch(Observer):
    """Reports this node's own queues to the handler."""

    def __init__(self, grouping: ClusterGrouping) -> None:
        self.grouping = grouping

    def on_queue_added(self, now: int, queue: Queue) -> None:
        self.grouping.found(now, queue.name + self.grouping.node_id)

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        """Frees the groups of a deleted queue. A queue that is bound again keeps its groups."""
        if queue.deleted:
            self.grouping.queue_gone(now, queue.name + self.grouping.node_id)
