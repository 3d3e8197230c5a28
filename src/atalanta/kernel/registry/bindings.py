"""The registry of a node's bindings: the ids of its queues, and the remote bindings to queues of other nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.routing.bindings import RemoteBinding

LOST_MAX: Final = 10_000


class BindingRegistry:
    """The ids of bindings, and the remote bindings by id.

    Peers may store the ids in messages, so none is ever used twice. They ascend; `next_id` is the next one. `first_id`
    is the first of this start: a lower one belongs to a durable queue, or to an earlier start. `lost`: ids of remote
    bindings whose connection was lost, not their queue.
    """

    def __init__(self) -> None:
        self.next_id: int = 1
        self.first_id: int = 0
        self.remotes: dict[int, RemoteBinding] = {}
        self.lost: dict[int, bool] = {}

    # -- ids ------------------------------------------------------------------------------------
    def take_id(self) -> int:
        """Returns the next id."""
        binding_id = self.next_id
        self.next_id = binding_id + 1
        return binding_id

    def begin(self, next_id: int) -> None:
        """Begins the ids of this life of the node: all below may have been used.

        A peer may hold messages for an earlier temporary queue (`_AMQ_ROUTE_TO`), whose id no record holds.
        """
        self.next_id = max(self.next_id, next_id)
        self.first_id = self.next_id

    # -- remote bindings ------------------------------------------------------------------------
    def add(self, remote: RemoteBinding) -> None:
        """Adds a remote binding, so that messages may name it by its id."""
        self.remotes[remote.id] = remote

    def remove(self, remote: RemoteBinding) -> None:
        """Removes a remote binding, if it is there."""
        self.remotes.pop(remote.id, None)

    def add_lost(self, remote: RemoteBinding) -> None:
        """Records that the binding is removed because its peer left; the queue behind may still exist."""
        if len(self.lost) >= LOST_MAX:
            del self.lost[next(iter(self.lost))]
        self.lost[remote.id] = True

    def is_lost(self, binding_id: int) -> bool:
        """Returns True for a binding of an earlier life of this node, or of a peer that has not announced it again."""
        return binding_id < self.first_id or binding_id in self.lost
