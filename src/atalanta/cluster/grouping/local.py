"""The LOCAL grouping handler: decides for the whole cluster and keeps its decisions (LocalGroupingHandler).

A decision is in the journal before it is sent. Unlike in Artemis, a response always names the winner as alternative
value as well. REMOTE nodes of Artemis read only that value. Otherwise they would take a response to another node for
an acceptance of their own proposal, as was observed.

After a restart the groups of a node that is not there stay with it, as its queue has older messages of them. If the
LOCAL node was stopped in good order while that node was connected, both may belong to one planned stop: then the groups
are free `timeout` after the start, but not before a node that was never away has had two attempts to connect again.
Artemis frees them in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.grouping.handler import (
    GROUPS_MAX,
    PROPOSAL_RESPONSE,
    UNPROPOSAL,
    ClusterGrouping,
)
from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError

if TYPE_CHECKING:
    from atalanta.cluster.config import ClusterSettings
    from atalanta.cluster.grouping.config import GroupingHandlerConfig
    from atalanta.kernel.broker.notifications import Notifications
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.registry.queues import QueueRegistry

KEY: Final = "group:"  # of VALUE records: "group:<full id>" -> cluster name
PRESENT: Final = "grouping.present"  # VALUE record of a stop in good order: the ids of the nodes that were connected
REAP_TIMER: Final = "grouping.reap"
LEFT_TIMER: Final = "grouping.left"
ATTEMPTS: Final = 2  # to connect, of a node that runs: the answer to one may be late


class Pin:
    """The queue of one group. `restored` means read from the journal, and the queue was not seen since the start."""

    def __init__(self, cluster_name: str, lsn: int, used_at: int, restored: bool) -> None:
        self.cluster_name = cluster_name
        self.lsn = lsn
        self.used_at = used_at
        self.restored = restored


class LocalGrouping(ClusterGrouping):
    """The LOCAL handler. `pins` is by full id; `by_queue` maps a cluster name to its groups."""

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
        self.pins: dict[str, Pin] = {}
        self.by_queue: dict[str, dict[str, bool]] = {}
        self.full: bool = False
        self.rival: str = ""  # another node with a LOCAL handler
        self.awaited: list[str] = []  # nodes that were connected when this one was stopped in good order
        pause_ms = max((each.max_retry_interval_ms for each in settings.cluster_connections), default=0)
        self.absence_ns = max(self.timeout_ns, ATTEMPTS * pause_ms * 1_000_000)  # of those, until their groups are free

    # -- start ----------------------------------------------------------------------------------
    def start(self, now: int) -> None:
        super().start(now)
        values = self.values
        for key in values.keys(KEY):
            value = values.get(key)
            if value is not None:
                cluster_name = value.decode("utf-8", "surrogatepass")
                self._keep(key[len(KEY) :], Pin(cluster_name, values.lsn_of(key), now, True))
        for cluster_name in list(self.by_queue):
            if self.is_own(cluster_name) and not self.located(cluster_name):
                self.queue_gone(now, cluster_name)
        self._arm_reaper(now)
        present = values.get(PRESENT)
        if present is not None:
            self.awaited = present.decode().split("\n")
            self.timers.set(LEFT_TIMER, now + self.absence_ns)

    def stop(self, now: int) -> None:
        """Stores which nodes with groups are connected: they may leave while this node does not see it."""
        seen = dict.fromkeys([*self.awaited, *self.complete])
        self._store_present([each for each in seen if any(name.endswith(each) for name in self.by_queue)])

    def _store_present(self, nodes: list[str]) -> None:
        if nodes:
            self.values.set(PRESENT, "\n".join(nodes).encode())
        elif self.values.get(PRESENT) is not None:
            self.values.forget(PRESENT)

    def _keep(self, full_id: str, pin: Pin) -> None:
        self.pins[full_id] = pin
        self.by_queue.setdefault(pin.cluster_name, {})[full_id] = True

    def _arm_reaper(self, now: int) -> None:
        if self.group_timeout_ns > 0:
            self.timers.set(REAP_TIMER, now + self.config.reaper_period_ms * 1_000_000)

    # -- decisions ------------------------------------------------------------------------------
    def chosen(self, now: int, full_id: str) -> str | None:
        pin = self.pins.get(full_id)
        return None if pin is None else pin.cluster_name

    def used(self, now: int, full_id: str) -> None:
        self.pins[full_id].used_at = now

    def propose(self, now: int, full_id: str, cluster_name: str) -> str | None:
        if self._full():
            raise BrokerError(
                ILLEGAL_STATE,
                f"more than {GROUPS_MAX} message groups: set group-timeout of the grouping-handler",
            )
        return self._decide(now, full_id, cluster_name).cluster_name

    def _full(self) -> bool:
        full = len(self.pins) >= GROUPS_MAX
        if full and not self.full:
            self.trace.event("groups_full", {"limit": GROUPS_MAX})
        self.full = full
        return full

    def _decide(self, now: int, full_id: str, cluster_name: str) -> Pin:
        value = cluster_name.encode("utf-8", "surrogatepass")
        lsn = self.values.set(KEY + full_id, value)
        self.newest_lsn = lsn
        pin = Pin(cluster_name, lsn, now, False)
        self._keep(full_id, pin)
        return pin

    def on_proposal(self, now: int, full_id: str, value: str | None, distance: int, asked: str | None) -> None:
        pin = self.pins.get(full_id)
        if pin is None:
            if value is None or self._full():
                return
            pin = self._decide(now, full_id, value)
        pin.used_at = now
        self.say(
            now, PROPOSAL_RESPONSE, full_id, value or pin.cluster_name, pin.cluster_name, 0, pin.lsn, asked
        )

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
        """Reports a second LOCAL handler: only such a handler sends responses."""
        if node_id != self.rival:
            self.rival = node_id
            self.trace.event(
                "second_grouping_handler",
                {"node": node_id, "why": "two nodes have a LOCAL grouping-handler: groups will split"},
            )

    # -- the end of a group ---------------------------------------------------------------------
    def on_unproposal(self, now: int, full_id: str, value: str | None, distance: int) -> None:
        """Frees the group if its queue is unknown here too.

        A REMOTE node of Artemis sends this when it does not know the queue, perhaps only not yet. A known queue
        keeps the group.
        """
        pin = self.pins.get(full_id)
        if pin is not None and pin.cluster_name == value and not self.located(pin.cluster_name):
            self._release(now, full_id, distance + 1)
            self.answered(now, full_id)

    def give_up(self, now: int, full_id: str, cluster_name: str) -> None:
        pin = self.pins.get(full_id)
        if pin is not None and pin.cluster_name == cluster_name:
            self._release(now, full_id, 0)
        self.answered(now, full_id)

    def _release(self, now: int, full_id: str, distance: int) -> None:
        pin = self.pins.pop(full_id)
        of_queue = self.by_queue.get(pin.cluster_name)
        if of_queue is not None:
            of_queue.pop(full_id, None)
            if not of_queue:
                del self.by_queue[pin.cluster_name]
        lsn = self.values.forget(KEY + full_id)
        self.say(now, UNPROPOSAL, full_id, pin.cluster_name, None, distance, lsn)
        self.free_consumer(full_id, pin.cluster_name)

    def queue_gone(self, now: int, cluster_name: str) -> None:
        for full_id in list(self.by_queue.get(cluster_name, {})):
            self._release(now, full_id, 0)
        super().queue_gone(now, cluster_name)

    def found(self, now: int, cluster_name: str) -> None:
        for full_id in self.by_queue.get(cluster_name, {}):
            self.pins[full_id].restored = False
        super().found(now, cluster_name)

    def peer_complete(self, now: int, node_id: str) -> None:
        """Frees the groups of queues that were deleted while this node was stopped."""
        super().peer_complete(now, node_id)
        if node_id in self.awaited:
            self.awaited.remove(node_id)
            self._store_present(self.awaited)
        self._release_restored(now, node_id)

    def _release_restored(self, now: int, node_id: str) -> int:
        """Frees the groups of the node's queues that were not seen since the start. Returns their number."""
        count = 0
        for cluster_name in list(self.by_queue):
            if cluster_name.endswith(node_id) and not self.located(cluster_name):
                for full_id in list(self.by_queue.get(cluster_name, {})):
                    if self.pins[full_id].restored:
                        self._release(now, full_id, 0)
                        self.answered(now, full_id)
                        count += 1
        return count

    def _end_absence(self, now: int) -> None:
        """Frees the groups of the nodes that were connected at the last stop, and are not back."""
        why = f"the node is not back {self.absence_ns // 1_000_000} ms after the start: it counts as stopped"
        for node_id in self.awaited:
            count = self._release_restored(now, node_id)
            if count:
                self.trace.event("groups_freed", {"node": node_id, "groups": count, "why": why})
        self.awaited = []
        self._store_present([])

    def on_timer(self, now: int, key: str) -> None:
        if key == LEFT_TIMER:
            self._end_absence(now)
            return
        if key != REAP_TIMER:
            super().on_timer(now, key)
            return
        for full_id, pin in list(self.pins.items()):
            if pin.used_at + self.group_timeout_ns < now:
                self._release(now, full_id, 0)
                self.answered(now, full_id)
        self._arm_reaper(now)
