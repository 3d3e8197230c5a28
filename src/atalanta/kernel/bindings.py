"""Where messages of an address can go: queues here, and queues of other nodes.

Bindings of one routing name (queue name) form a group; a message goes to one binding of each group. The choice
follows BindingsImpl of Artemis as stated in the fact sheet ("Routing algorithm").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.filter import Filter
    from atalanta.kernel.message import Message
    from atalanta.kernel.queue import Queue

OFF: Final = 0
STRICT: Final = 1
ON_DEMAND: Final = 2
OFF_WITH_REDISTRIBUTION: Final = 3


class RemoteBinding:
    """A queue of another node, reached through the store-and-forward queue `forward`.

    `remote_id` is the binding id on the next hop (what goes into `_AMQ_ROUTE_TO`), `id` our own; `selectors` maps the
    text of a consumer's selector to (parsed, count); consumers without one count in `consumer_count` only.
    """

    def __init__(
        self,
        binding_id: int,
        address: str,
        routing_name: str,
        cluster_name: str,
        remote_id: int,
        distance: int,
        forward: Queue,
        mode: int,
    ) -> None:
        self.id = binding_id
        self.address = address
        self.routing_name = routing_name
        self.cluster_name = cluster_name
        self.remote_id = remote_id
        self.distance = distance
        self.forward = forward
        self.mode = mode
        self.filter: Filter | None = None
        self.filter_text: str | None = None
        self.consumer_count: int = 0
        self.selectors: dict[str, tuple[Filter, int]] = {}
        self.connected: bool = True

    def accepts(self, message: Message) -> bool:
        return self.filter is None or self.filter.matches(message)

    def high_accept(self, message: Message) -> bool:
        """Has a consumer there asked for messages like this one?"""
        if self.consumer_count <= 0 or self.mode == OFF:
            return False
        if not self.selectors:
            return True
        with_selector = 0
        for selector, count in self.selectors.values():
            with_selector += count
            if selector.matches(message):
                return True
        return with_selector < self.consumer_count

    def add_consumer(self, text: str | None, selector: Filter | None) -> None:
        self.consumer_count += 1
        if text is not None and selector is not None:
            known = self.selectors.get(text)
            self.selectors[text] = (selector, 1 if known is None else known[1] + 1)

    def remove_consumer(self, text: str | None) -> None:
        if self.consumer_count > 0:
            self.consumer_count -= 1
        if text is not None:
            known = self.selectors.get(text)
            if known is not None:
                if known[1] <= 1:
                    del self.selectors[text]
                else:
                    self.selectors[text] = (known[0], known[1] - 1)

    def clear_consumers(self) -> None:
        self.consumer_count = 0
        self.selectors.clear()


class BindingGroup:
    """Bindings of one routing name; index 0 is the local queue when there is one."""

    def __init__(self, routing_name: str) -> None:
        self.routing_name = routing_name
        self.local: Queue | None = None
        self.remotes: list[RemoteBinding] = []
        self.position: int = 0

    def empty(self) -> bool:
        return self.local is None and not self.remotes

    def choose(self, message: Message, routing_type: int) -> int:
        """-2: nobody; -1: the local queue; n >= 0: remotes[n]. Moves the round-robin position past the choice."""
        local = self.local
        remotes = self.remotes
        if not remotes:
            if local is None or not _local_eligible(local, message, routing_type):
                return -2
            return -1
        first_remote = 0 if local is None else 1
        total = len(remotes) + first_remote
        position = self.position
        fallback = -3
        eligible = 0
        for step in range(total):
            place = (position + step) % total
            if place < first_remote:
                assert local is not None
                if not _local_eligible(local, message, routing_type):
                    continue
                eligible += 1
                if self._local_high(local, message):
                    self.position = (place + 1) % total
                    return -1
                if fallback == -3 or self._prefers_local():
                    fallback = -1
            else:
                remote = remotes[place - first_remote]
                if not _remote_eligible(remote, message, routing_type):
                    continue
                eligible += 1
                if remote.connected and (remote.mode == STRICT or remote.high_accept(message)):
                    self.position = (place + 1) % total
                    return place - first_remote
                if fallback == -3:
                    fallback = place - first_remote
        if fallback == -3:
            return -2
        self.position = (fallback + first_remote + 1) % total
        return fallback

    def _local_high(self, local: Queue, message: Message) -> bool:
        return self.remotes[0].mode == STRICT or local.has_match(message)

    def _prefers_local(self) -> bool:
        return self.remotes[0].mode != STRICT

    def redistribution_target(self, message: Message) -> RemoteBinding | None:
        """Next connected remote queue with a consumer for `message` (Redistributor), or None.

        Artemis also moves to members that are away (fact sheet, "Leaving"): here a binding that is not connected is
        never a target, so nothing more is parked behind a dead member.
        """
        total = len(self.remotes)
        for step in range(total):
            remote = self.remotes[(self.position + step) % total]
            if not remote.connected or remote.mode == OFF or remote.mode == STRICT:
                continue
            if remote.accepts(message) and remote.high_accept(message):
                self.position = (self.position + step + 1) % total
                return remote
        return None


def _local_eligible(queue: Queue, message: Message, routing_type: int) -> bool:
    if routing_type != -1 and queue.spec.routing_type != routing_type:
        return False
    return queue.filter is None or queue.filter.matches(message)


def _remote_eligible(remote: RemoteBinding, message: Message, routing_type: int) -> bool:
    if (remote.mode == OFF or remote.mode == OFF_WITH_REDISTRIBUTION) and routing_type != 0:
        return False
    return remote.accepts(message)
