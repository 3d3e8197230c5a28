"""A peer left for good, and said who takes its place: what waits here for it goes there.

As BridgeImpl.scaleDown and QueueImpl.moveBetweenSnFQueues, with two differences: queues are told apart by their names,
not by ids that several nodes may use; and what waits for a peer that leaves to *this* node goes to the queues of that
name here (Artemis deletes it). The target gets some of its queues only while the peer leaves: what finds none waits
for it. Everything that the peer took was answered before its good-bye, so nothing of this is there already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel import catalogue
from atalanta.kernel.absorbing import FORWARD_DUPLICATE
from atalanta.kernel.errors import BrokerError
from atalanta.kernel.moves import reroute
from atalanta.kernel.queue_spec import ANYCAST, MULTICAST, QueueSpec
from atalanta.kernel.reference import READY, Reference
from atalanta.kernel.router import Route, add_remote_route

if TYPE_CHECKING:
    from atalanta.cluster.cluster import Cluster
    from atalanta.cluster.record import PeerRecord
    from atalanta.kernel.bindings import RemoteBinding
    from atalanta.kernel.queue import Queue

DEPARTURE: Final = "departure."
LOOK_NS: Final = 200_000_000
# The target should have the queues by then: this node makes its own, or leaves the rest to parked.py.
PATIENCE_NS: Final = 10_000_000_000
GIVE_UP_NS: Final = 120_000_000_000
MOVES_MAX: Final = 500


class Departed:
    """`meant`: binding id at the peer -> what it was bound to."""

    def __init__(self, now: int, node_id: str, target: str, forward: Queue) -> None:
        self.since = now
        self.node_id = node_id
        self.target = target
        self.forward = forward
        self.meant: dict[int, RemoteBinding] = {}


class Departures:
    """Of one cluster connection, by node id."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.left: dict[str, Departed] = {}

    def add(self, now: int, record: PeerRecord, target: str) -> None:
        """Before its bindings go."""
        departed = Departed(now, record.node_id, target, record.forward)
        bindings = record.bindings
        for remote in [*bindings.spares.values(), *bindings.bindings.values()]:
            departed.meant[remote.remote_id] = remote
        self.left[record.node_id] = departed
        self.cluster.told("member_left", record.node_id, f"its messages are with {target} now")
        self.arm(now, record.node_id, 0)

    def arm(self, now: int, node_id: str, pause_ns: int) -> None:
        self.cluster.broker.timers.set(self.cluster.key(DEPARTURE + node_id), now + pause_ns)

    def on_timer(self, now: int, node_id: str) -> None:
        departed = self.left.get(node_id)
        if departed is None:
            return
        if node_id in self.cluster.peers:
            del self.left[node_id]  # it is back
            return
        moves = self._move(now, departed)
        queue = departed.forward
        age = now - departed.since
        if moves >= MOVES_MAX:
            self.arm(now, node_id, 0)
        elif queue.message_count == 0 and queue.pending == 0:
            del self.left[node_id]
            if not queue.deleted:
                catalogue.delete_queue(self.cluster.broker, now, queue.name, "its node has left")
        elif age < GIVE_UP_NS:
            self.arm(now, node_id, LOOK_NS)
        else:
            del self.left[node_id]

    # -- moving ---------------------------------------------------------------------------------
    def _move(self, now: int, departed: Departed) -> int:
        queue = departed.forward
        broker = self.cluster.broker
        if queue.paged is not None:
            queue.paged.wanted = True
            broker.paging.touch(queue)
        moves = 0
        for reference in queue.live():
            if reference.state != READY:
                continue
            routes = self._routes(now, departed, reference)
            if not routes:
                break  # in order: what is behind it waits with it
            # In queues of our own it is a message like any other: each may go on from there.
            ours = departed.target == self.cluster.node_id
            without = FORWARD_DUPLICATE if ours else ""
            reroute(broker, reference, routes, "its node has left", without)
            moves += 1
            if moves >= MOVES_MAX:
                break
        if moves:
            broker.trace.count("messages_followed_departure", moves)
        return moves

    def _routes(self, now: int, departed: Departed, reference: Reference) -> list[Route]:
        """One for each queue that the message was for; none unless there is one for all of them."""
        raw_ids = reference.route_to
        routes: list[Route] = []
        for start in range(0, len(raw_ids) - 7, 8):
            remote = departed.meant.get(int.from_bytes(raw_ids[start : start + 8], "big", signed=True))
            if remote is None:
                return []
            if not remote.cluster_name.endswith(departed.node_id):
                other = self._other_way(remote.cluster_name)
                if other is None:
                    return []
                add_remote_route(routes, other)
                continue
            name = remote.cluster_name.removesuffix(departed.node_id)
            if departed.target == self.cluster.node_id:
                queue = self._own(now, departed, remote, name)
                if queue is None:
                    return []
                routes.append(Route(queue, b""))
                continue
            there = self._of_target(departed.target, name)
            if there is None:
                return []
            add_remote_route(routes, there)
        return routes

    def _other_way(self, cluster_name: str) -> RemoteBinding | None:
        """To a queue behind the peer that left: its node is still there, and not the peer's."""
        holder = self.cluster.clusters.holder_of(cluster_name)
        if holder is None:
            return None
        cluster, node_id = holder
        return cluster.peers[node_id].bindings.bindings[cluster_name]

    def _of_target(self, target: str, name: str) -> RemoteBinding | None:
        record = self.cluster.peers.get(target)
        return None if record is None else record.bindings.bindings.get(name + target)

    def _own(self, now: int, departed: Departed, remote: RemoteBinding, name: str) -> Queue | None:
        """The peer makes its queues here as it leaves; what it had no message for is made after a while."""
        broker = self.cluster.broker
        found = broker.queues.get(name)
        if found is not None or now - departed.since < PATIENCE_NS:
            return found
        anycast = remote.routing_name == remote.address and name == remote.address
        spec = QueueSpec(name, remote.address, ANYCAST if anycast else MULTICAST)
        spec.filter_text = remote.filter_text
        try:
            catalogue.ensure_address(broker, remote.address, spec.routing_type, True, True)
            return catalogue.create_queue(broker, now, spec)
        except BrokerError as error:
            self.cluster.told("departure_without_queue", departed.node_id, error.text)
            return None
