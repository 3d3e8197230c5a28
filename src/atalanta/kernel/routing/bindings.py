"""The bindings of an address: local queues, and queues of other nodes.

Bindings of one routing name (queue name) form a group; a message goes to one binding of each group. The choice
follows Artemis' BindingsImpl.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import MULTICAST
from atalanta.message.internal_headers import BROKER_PATH

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.message.message import Message
    from atalanta.message.selector.selector import Filter

NODE_ID_CHARACTERS: Final = 36  # a UUID's text

OFF: Final = 0
STRICT: Final = 1
ON_DEMAND: Final = 2
OFF_WITH_REDISTRIBUTION: Final = 3


class RemoteBinding:
    """The binding of another node's queue, reached through the store-and-forward queue `forward`.

    `remote_id` is the binding id on the next hop (for `_AMQ_ROUTE_TO`), `id` is this node's own. `selectors` maps the
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
        # Node ids from the peer to the owner, with commas; "" if a node between them (a real Artemis) sends none.
        self.path: str = ""

    def accepts(self, message: Message) -> bool:
        return self.filter is None or self.filter.matches(message)

    def is_of_queue(self, name: str) -> bool:
        """Returns True for that queue name: the cluster name is queue name + owner's id (BindingsImpl.matchBinding)."""
        return self.cluster_name[:-NODE_ID_CHARACTERS] == name or self.routing_name == name

    def high_accept(self, message: Message) -> bool:
        """Returns True if a consumer of the remote queue takes the message; False with OFF (isHighAcceptPriority)."""
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

    def redistributes(self) -> bool:
        """Returns True if redistribution to this binding is allowed: not with OFF, STRICT or a disconnected node."""
        return self.connected and self.mode != OFF and self.mode != STRICT

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
    """The bindings of one routing name: local queues (several if they are anycast), then remote ones."""

    def __init__(self, routing_name: str) -> None:
        self.routing_name = routing_name
        self.locals: list[Queue] = []
        self.remotes: list[RemoteBinding] = []
        self.position: int = 0

    def empty(self) -> bool:
        return not self.locals and not self.remotes

    def choose(self, message: Message, routing_type: int, only_queue: str) -> int:
        """Returns an index in locals + remotes, or -1 for no binding, and moves the round-robin position past it.

        `only_queue` (of an FQQN) excludes queues of other names. A single binding needs no consumer. A disconnected
        node gets the message only if no other binding takes it.
        """
        queues = self.locals
        remotes = self.remotes
        here = len(queues)
        total = here + len(remotes)
        if total == 1 and here == 1:
            return 0 if _local_eligible(queues[0], message, routing_type, only_queue) else -1
        strict = bool(remotes) and remotes[0].mode == STRICT
        stays = bool(remotes) and remotes[0].mode == ON_DEMAND
        fallback = -1
        for step in range(total):
            place = (self.position + step) % total
            if place < here:
                queue = queues[place]
                if not _local_eligible(queue, message, routing_type, only_queue):
                    continue
                high = strict or queue.has_match(message)
                if fallback < 0 or (fallback >= here and (stays or self.is_away(fallback))):
                    fallback = place
            else:
                remote = remotes[place - here]
                if not _remote_eligible(remote, message, routing_type, only_queue):
                    continue
                high = remote.connected and (strict or remote.high_accept(message))
                if fallback < 0 or (remote.connected and self.is_away(fallback)):
                    fallback = place
            if high:
                self.position = (place + 1) % total
                return place
        if fallback >= 0:
            self.position = (fallback + 1) % total
        return fallback

    def is_away(self, place: int) -> bool:
        """Returns True if the binding belongs to a disconnected node."""
        here = len(self.locals)
        return place >= here and not self.remotes[place - here].connected

    def attended(self, message: Message, only_queue: str, besides: Queue) -> int:
        """Chooses a binding with a consumer for the message, but none through `besides`; -1: there is none.

        Local queues are preferred. A queue with a log-view reader takes none, because its reader relies on the order in
        which messages arrived.
        """
        here = len(self.locals)
        remotes = len(self.remotes)
        for step in range(here):
            place = (self.position + step) % here
            queue = self.locals[place]
            if (
                _local_eligible(queue, message, message.routing_type, only_queue)
                and queue.active_lease() is None
                and queue.has_match(message)
            ):
                self.position = (place + 1) % (here + remotes)
                return place
        for step in range(remotes):
            place = (self.position + step) % remotes
            remote = self.remotes[place]
            if (
                remote.connected
                and remote.forward is not besides
                and (not only_queue or remote.is_of_queue(only_queue))
                and remote.accepts(message)
                and remote.high_accept(message)
            ):
                self.position = (here + place + 1) % (here + remotes)
                return here + place
        return -1

    def has_queue(self, name: str) -> bool:
        """Returns True if the group has a queue of that name."""
        for queue in self.locals:
            if queue.name == name:
                return True
        for remote in self.remotes:
            if remote.is_of_queue(name):
                return True
        return False

    def cluster_name_at(self, place: int, node_id: str) -> str:
        """Returns the cluster name of the binding at that index of locals + remotes: queue name + id of its node."""
        here = len(self.locals)
        if place < here:
            return self.locals[place].name + node_id
        return self.remotes[place - here].cluster_name

    def place_of(self, cluster_name: str, node_id: str) -> int:
        """Returns the index of the binding with that cluster name, -1 if the group has none."""
        for place, queue in enumerate(self.locals):
            if queue.name + node_id == cluster_name:
                return place
        for place, remote in enumerate(self.remotes):
            if remote.cluster_name == cluster_name:
                return len(self.locals) + place
        return -1

    def takes(self, place: int, message: Message, routing_type: int, only_queue: str) -> bool:
        """Returns True if the binding at `place` may have the message, regardless of its consumers."""
        here = len(self.locals)
        if place < here:
            return _local_eligible(self.locals[place], message, routing_type, only_queue)
        remote = self.remotes[place - here]
        if only_queue and not remote.is_of_queue(only_queue):
            return False
        return remote.accepts(message)

    def redistribution_target(self, message: Message) -> RemoteBinding | None:
        """Returns the next connected remote queue with a consumer for `message` (Redistributor), or None.

        Artemis also redistributes to disconnected nodes. Here a disconnected binding is never a target, so that no more
        messages wait for a dead node.
        """
        total = len(self.remotes)
        for step in range(total):
            remote = self.remotes[(self.position + step) % total]
            if not remote.redistributes():
                continue
            if remote.accepts(message) and remote.high_accept(message):
                self.position = (self.position + step + 1) % total
                return remote
        return None


def _local_eligible(queue: Queue, message: Message, routing_type: int, only_queue: str) -> bool:
    if routing_type != -1 and queue.spec.routing_type != routing_type:
        return False
    if only_queue and queue.name != only_queue:
        return False
    if queue.local_only and not only_queue and message.special and message.has_property(BROKER_PATH):
        return False
    if queue.closable and not _open_to_messages(queue):
        return False
    return queue.filter is None or queue.filter.matches(message)


def _remote_eligible(
    remote: RemoteBinding, message: Message, routing_type: int, only_queue: str
) -> bool:
    if (remote.mode == OFF or remote.mode == OFF_WITH_REDISTRIBUTION) and routing_type != 0:
        return False
    if only_queue and not remote.is_of_queue(only_queue):
        return False
    if message.special and routing_type == MULTICAST and message.has_property(BROKER_PATH):
        return False  # a network of brokers brings a topic's messages to each member itself
    return remote.accepts(message)


def _open_to_messages(queue: Queue) -> bool:
    """Returns false if the queue is disabled, or purges messages and has no consumer (QueueImpl.route)."""
    spec = queue.spec
    return spec.enabled and (not spec.purge_on_no_consumers or queue.consumer_count() > 0)
