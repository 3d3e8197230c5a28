"""Scale-down of a peer: messages that wait here for it are routed to the target that it named.

This follows BridgeImpl.scaleDown and QueueImpl.moveBetweenSnFQueues, with two differences. Queues are identified by
name, not by ids that several nodes may use. Messages for a peer that leaves to *this* node go to the queues of that
name here (Artemis deletes them). The target gets some of its queues only while the peer leaves. A message without a
queue at the target waits for it.

The peer answered all messages of its last link before its DISCONNECT. A message of an earlier link, or one whose
answer this node could not record any more, may be at the peer too (cluster/links/sent_mark.py). It goes to the
target under the id it had on the link. The target knows the ids of the peer's messages by then
(cluster/scale_down/disconnect.py), and drops a repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.cluster.links.forward_frame import forward_id, link_bytes
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.queue.reference import READY
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.registry.duplicate_spaces import BRIDGE_PREFIX
from atalanta.kernel.routing.router import Route, add_remote_route, join_route
from atalanta.message.internal_headers import FORWARD_DUPLICATE

if TYPE_CHECKING:
    from atalanta.cluster.connection.peer import PeerRecord
    from atalanta.cluster.store_and_forward.parked_messages import ParkedMessages
    from atalanta.cluster.topology.local_node import LocalNode
    from atalanta.kernel.publish.message_mover import MessageMover
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.registry.duplicate_caches import DuplicateCaches
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.routing.bindings import RemoteBinding

DEPARTURE: Final = "departure."
CHECK_NS: Final = 200_000_000
# The target should have the queues by then. After that this node creates its own, or leaves the rest to
# cluster/store_and_forward/parked_messages.py.
WAIT_NS: Final = 10_000_000_000
GIVE_UP_NS: Final = 120_000_000_000  # since a message was last moved
MOVES_MAX: Final = 500
WHY: Final = "its node has left"


class Departed:
    """A peer that left. `meant`: binding id at the peer -> its remote binding."""

    def __init__(self, now: int, node_id: str, target: str, forward: Queue) -> None:
        self.since = now
        self.progress_at = now
        self.waiting = -1  # messages at the last check
        self.node_id = node_id
        self.target = target
        self.forward = forward
        self.meant: dict[int, RemoteBinding] = {}


class Departures:
    """The peers of one cluster connection that left, by node id."""

    def __init__(
        self,
        local: LocalNode,
        mover: MessageMover,
        queues: QueueRegistry,
        caches: DuplicateCaches,
        peers: dict[str, PeerRecord],
        routes: dict[str, RemoteBinding],
        parked: ParkedMessages,
    ) -> None:
        """`peers` is by node id, `routes` has the active remote bindings of this node by cluster name."""
        self.local = local
        self.mover = mover
        self.store = mover.store
        self.queues = queues
        self.caches = caches
        self.peers = peers
        self.routes = routes
        self.parked = parked
        self.left: dict[str, Departed] = {}
        self.targets: dict[str, str] = {}  # of each peer that left and did not return

    def add(self, now: int, record: PeerRecord, target: str) -> None:
        """Records the peer and its bindings, before they are removed."""
        departed = Departed(now, record.node_id, target, record.forward)
        bindings = record.bindings
        for remote in [*bindings.spares.values(), *bindings.bindings.values()]:
            departed.meant[remote.remote_id] = remote
        self.left[record.node_id] = departed
        self.targets[record.node_id] = target
        self.local.report("member_left", record.node_id, f"its messages are with {target} now")
        self._set_timer(record.node_id, now)

    def _set_timer(self, node_id: str, at_ns: int) -> None:
        self.local.set_timer(DEPARTURE + node_id, at_ns)

    def forget(self, node_id: str) -> None:
        """Forgets a peer that is a member again; its waiting messages are delivered to it."""
        self.left.pop(node_id, None)
        self.targets.pop(node_id, None)

    def _final_target(self, node_id: str) -> str:
        """Returns the node that has its messages now: a target may have left later."""
        seen: dict[str, bool] = {}
        while node_id in self.targets and node_id not in seen and node_id not in self.peers:
            seen[node_id] = True
            node_id = self.targets[node_id]
        return node_id

    def on_timer(self, now: int, node_id: str) -> None:
        departed = self.left.get(node_id)
        if departed is None:
            return
        if node_id in self.peers:
            self.forget(node_id)
            return
        departed.target = self._final_target(departed.target)
        moves = self._move(now, departed)
        queue = departed.forward
        waiting = queue.message_count + queue.pending
        if moves or waiting != departed.waiting:
            departed.progress_at = now
            departed.waiting = waiting
        if moves >= MOVES_MAX:
            self._set_timer(node_id, now)
        elif waiting == 0:
            del self.left[node_id]
            if not queue.deleted:
                self.queues.delete(now, queue.name, "its node has left")
        elif now - departed.progress_at < GIVE_UP_NS:
            self._set_timer(node_id, now + CHECK_NS)
        else:
            del self.left[node_id]

    # -- moving ---------------------------------------------------------------------------------
    def _move(self, now: int, departed: Departed) -> int:
        queue = departed.forward
        if queue.paged is not None:
            queue.paged.request()
            self.store.paging.touch(queue)
        through = self.parked.mark_of(departed.node_id, queue).through
        moves = 0
        for reference in queue.live():
            if reference.state != READY:
                continue
            known = self._known_as(departed, reference, through)
            if self._move_one(now, departed, reference, known):
                moves += 1
            else:
                break  # keeps the order: later messages wait too
            if moves >= MOVES_MAX:
                break
        if moves:
            self.local.trace.count("messages_followed_departure", moves)
        return moves

    def _known_as(self, departed: Departed, reference: Reference, through: int) -> bytes:
        """Returns the id under which the peer may have the message; empty if it certainly has not."""
        message = reference.message
        if message.special and message.has_property(FORWARD_DUPLICATE):
            known = message.properties.get(FORWARD_DUPLICATE)
            return known if isinstance(known, bytes) else b""
        if 0 < reference.sequence <= through:
            link = link_bytes(self.local.node_id, departed.node_id)
            return forward_id(link, int(message.id))
        return b""

    def _move_one(
        self, now: int, departed: Departed, reference: Reference, known: bytes
    ) -> bool:
        """Moves one message. Returns False if it has to wait."""
        if departed.target != self.local.node_id:
            routes = self._routes(now, departed, reference)
            if known and any(not route.queue.name.endswith("." + departed.target) for route in routes):
                return False  # only the target knows if the peer had it
            if routes:
                self.mover.reroute(reference, routes, WHY, "", known)
            return bool(routes)
        name = BRIDGE_PREFIX + reference.message.address
        if known and self.caches.cache_of(name).lsn_of(known) >= 0:
            # It arrives, or has arrived, with the peer's own messages.
            self.store.acknowledge([reference], None, 0)
            return True
        routes = self._routes(now, departed, reference)
        if routes:
            # In local queues it is an ordinary message; each copy may be forwarded from there.
            self.mover.reroute(reference, routes, WHY, FORWARD_DUPLICATE)
        return bool(routes)

    def _routes(self, now: int, departed: Departed, reference: Reference) -> list[Route]:
        """Returns one route for each queue of the message; none if one of the queues has no route."""
        raw_ids = reference.route_to
        routes: list[Route] = []
        for start in range(0, len(raw_ids) - 7, 8):
            remote = departed.meant.get(int.from_bytes(raw_ids[start : start + 8], "big", signed=True))
            if remote is None:
                return []
            if not remote.cluster_name.endswith(departed.node_id):
                # A queue behind the peer that left: another peer may reach its node.
                other = self.routes.get(remote.cluster_name)
                if other is None:
                    return []
                add_remote_route(routes, other)
                continue
            name = remote.cluster_name.removesuffix(departed.node_id)
            if departed.target == self.local.node_id:
                queue = self._own(now, departed, remote, name)
                if queue is None:
                    return []
                join_route(routes, queue, b"")
                continue
            there = self._of_target(departed.target, name)
            if there is None:
                return []
            add_remote_route(routes, there)
        return routes

    def _of_target(self, target: str, name: str) -> RemoteBinding | None:
        record = self.peers.get(target)
        return None if record is None else record.bindings.bindings.get(name + target)

    def _own(self, now: int, departed: Departed, remote: RemoteBinding, name: str) -> Queue | None:
        """Returns the local queue, which the leaving peer creates here if it has messages for it.

        After WAIT_NS (10 s) this node creates the queue itself.
        """
        found = self.queues.by_name.get(name)
        if found is not None or now - departed.since < WAIT_NS:
            return found
        anycast = remote.routing_name == remote.address and name == remote.address
        spec = QueueSpec(name, remote.address, ANYCAST if anycast else MULTICAST)
        spec.filter_text = remote.filter_text
        try:
            self.queues.addresses.ensure(now, remote.address, spec.routing_type, True, True)
            return self.queues.create(now, spec, False)
        except BrokerError as error:
            self.local.report("departure_without_queue", departed.node_id, error.text)
            return None
