"""The ids of bindings: local queues, and queues of other nodes."""

from __future__ import annotations


class BindingIds:
    """The ids of this node's bindings, ascending. Peers may store them in messages, so none is ever used twice.

    `first` is the first id of this start. A lower one belongs to a durable queue, or to an earlier start.
    """

    def __init__(self) -> None:
        self.next: int = 1
        self.first: int = 0

    def take(self) -> int:
        """Returns the next id."""
        binding_id = self.next
        self.next = binding_id + 1
        return binding_id

    def skip(self, next_id: int) -> None:
        """Continues the ids at `next_id`, unless they are higher already."""
        self.next = max(self.next, next_id)

    def start(self, now: int) -> None:
        """Starts the ids of this life of the node at the clock (`now` in ns).

        A peer may hold messages for an earlier temporary queue (`_AMQ_ROUTE_TO`), whose id no record holds.
        """
        self.skip(now // 1_000)
        self.first = self.next
