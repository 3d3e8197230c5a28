"""Message groups across the nodes of a cluster: all messages of a group go to one queue of each routing name.

The node with the LOCAL handler chooses the queue (cluster/grouping/local.py). The other nodes ask that node
(cluster/grouping/remote.py). A message whose group has no queue yet cannot be routed: `MessageRouter.routes` raises
Undecided before anything has changed. The sender's session then waits as a GroupWaiter and tries again.

Follows BindingsImpl.routeUsingStrictOrdering, with two differences. A message whose group gets no queue is refused,
never routed without its group. A queue's filter counts for the messages of a group, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError, Postponed

if TYPE_CHECKING:
    from atalanta.message.message import Message


class Undecided(Postponed):
    """The message's groups have no queue yet. `ids`: the group ids (with routing names) that are being asked for."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__(ILLEGAL_STATE, f"it is not decided yet which queue group {ids[0]} belongs to")
        self.ids = ids


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupWaiter:
    """A sender that waits for the queues of its groups. `since`: the time (ns) when the wait began; 0 before that."""

    def __init__(self) -> None:
        self.since: int = 0

    def decided(self, now: int) -> None:
        """Tries again: each group has its queue, must be asked for again, or is refused by now."""
        raise NotImplementedError


@mypyc_attr(allow_interpreted_subclasses=True)
class GroupingHandler:
    """The interface of a grouping handler.

    A full id is `<group id>.<routing name>`. A queue is named by its cluster name: queue name + id of its node.
    `newest_lsn` is the journal record of this node's newest choice of a queue.
    """

    def __init__(self) -> None:
        self.newest_lsn: int = 0
        # Set while a waiter tries for the last time after its timeout: the error it gets instead of Undecided.
        self.refusal: BrokerError | None = None

    def covers(self, address: str) -> bool:
        """Returns true if other nodes may have queues of this address."""
        raise NotImplementedError

    def chosen(self, now: int, full_id: str) -> str | None:
        """Returns the queue of the group, if this node knows the queue."""
        raise NotImplementedError

    def used(self, now: int, full_id: str) -> None:
        """Records that a message of the group is routed to its queue."""
        raise NotImplementedError

    def propose(self, now: int, full_id: str, cluster_name: str) -> str | None:
        """Proposes this queue for a group that has none; returns the group's queue, or None if the sender must wait."""
        raise NotImplementedError

    def not_found(self, now: int, full_id: str, cluster_name: str) -> None:
        """Records that this node does not know the group's queue: the sender must wait."""
        raise NotImplementedError

    def wait(self, now: int, ids: list[str], waiter: GroupWaiter) -> None:
        """Notifies the waiter when all the ids may be tried again, or `timeout` after its `since`."""
        raise NotImplementedError

    def forget(self, waiter: GroupWaiter) -> None:
        """Removes a waiter."""
        raise NotImplementedError

    # -- notifications from the cluster ----------------------------------------------------------
    def on_notification(self, now: int, node_id: str, kind: str, message: Message) -> None:
        """Handles a PROPOSAL, PROPOSAL_RESPONSE or UNPROPOSAL from that peer."""
        raise NotImplementedError

    def remote_added(self, now: int, cluster_name: str) -> None:
        """Records that this node knows a queue of another node now."""
        raise NotImplementedError

    def remote_removed(self, now: int, cluster_name: str) -> None:
        """Records that a queue of another node was deleted, or that its node left the cluster in good order."""
        raise NotImplementedError

    def peer_complete(self, now: int, node_id: str) -> None:
        """Records that the peer has announced all its queues."""
        raise NotImplementedError

    def peer_lost(self, now: int, node_id: str) -> None:
        """Records that the connection to the peer is lost: its queues and decisions are unknown."""
        raise NotImplementedError
