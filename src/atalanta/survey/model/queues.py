"""Queues and consumers of one node, and the queues of a cluster: those of one address and name, over all nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.survey.model.lease import LeaseView

ANYCAST: Final = "ANYCAST"
FORWARD_MARK: Final = "internal.sf."  # in the names of store-and-forward queues


@dataclass
class QueueView:
    """A queue of one node, with the counts of the first sample; `later` has the second."""

    name: str
    address: str
    routing_type: str = ANYCAST
    filter: str | None = None
    messages: int = 0
    consumers: int = 0
    delivering: int = 0
    scheduled: int = 0
    added: int = 0
    acknowledged: int = 0
    internal: bool = False
    temporary: bool = False
    paused: bool = False
    enabled: bool = True
    exclusive: bool = False
    consumers_before_dispatch: int = 0
    oldest_ms: int | None = None
    """The age of its first message."""
    addresses: dict[str, int] = field(default_factory=dict)
    """The numbers of the first messages in a store-and-forward queue, by address."""
    lease: LeaseView | None = None
    later: QueueView | None = None

    @property
    def waiting(self) -> int:
        """Returns the number of messages that a consumer could get now."""
        return max(0, self.messages - self.delivering - self.scheduled)

    @property
    def forwards_to(self) -> str | None:
        """Returns the node id at the end of a store-and-forward queue's name."""
        return self.name.rpartition(".")[2] if FORWARD_MARK in self.name else None

    @property
    def routing_name(self) -> str:
        """Returns the routing name: queues with one address and routing name share messages between nodes."""
        return self.address if self.routing_type == ANYCAST else self.name

    @property
    def now(self) -> QueueView:
        """Returns the counts of the last sample."""
        return self.later or self

    @property
    def notifies_peer(self) -> bool:
        """Returns whether it is the notification queue of another member."""
        return self.temporary and self.name.startswith("notif.")

    @property
    def shown(self) -> bool:
        """Returns whether it counts as load: neither internal nor another member's."""
        return not self.internal and not self.notifies_peer


@dataclass
class TotalsView:
    """The sums over the queues of a node that are load, of the first sample; `later` has the second."""

    queues: int = 0
    messages: int = 0
    consumers: int = 0
    added: int = 0
    acknowledged: int = 0
    later: TotalsView | None = None

    @property
    def now(self) -> TotalsView:
        """Returns the sums of the last sample."""
        return self.later or self


@dataclass
class ConsumerView:
    """A consumer. `ready`: has credit; None if the broker does not report it."""

    id: str
    session: str
    queue: str
    filter: str | None = None
    in_transit: int = 0
    delivered: int = 0
    ready: bool | None = None
    client: str = ""
    later: ConsumerView | None = None


@dataclass
class ClusterQueue:
    """The queues of one address and name at all nodes. `by_node` has each of them, by node id."""

    name: str
    address: str
    routing_type: str
    by_node: dict[str, QueueView] = field(default_factory=dict)

    def total(self, count: str) -> int:
        """Returns the sum of a count over the nodes, of the last sample: `messages`, `consumers`, `added` …"""
        return sum(int(getattr(queue.now, count)) for queue in self.by_node.values())

    def per_second(self, count: str, seconds: float) -> float | None:
        """Returns the rate of a count that only grows (`added`, `acknowledged`); None without a second sample."""
        if seconds <= 0:
            return None
        grown = (
            max(0, int(getattr(queue.now, count)) - int(getattr(queue, count)))
            for queue in self.by_node.values()
        )
        return sum(grown) / seconds
