"""The views that nodes and clients have of the cluster. After the end of all faults they must be correct.

At the end of some simulations one node stops for good, and all others must forget it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.clients.client import SimClient
from atalanta.sim.host import Host
from atalanta.sim.world.world import SECOND, World

if TYPE_CHECKING:
    from atalanta.cluster import ClusterConnection
    from atalanta.node import Node

LAST_STOP_SHARE: Final = 0.2  # of the simulations
FORGETTING_SECONDS_MAX: Final = 30

View = dict[str, tuple[str, int]]


def wrong_views(hosts: list[Host], clients: list[SimClient]) -> list[str]:
    """Returns one line for each wrong view of a running node or a client.

    A node must know every member under the address of its acceptor, and no other. It must have a bridge to each
    member and know its queues and consumers. A client must know the same members as the nodes.
    """
    found: list[str] = []
    truth: View = {}
    clusters: list[tuple[Node, ClusterConnection]] = []
    for host in hosts:
        if host.node is not None and host.node.cluster is not None:
            truth[host.node.broker.node_id] = (host.address, host.port)
            clusters.append((host.node, host.node.cluster))
    for node, cluster in clusters:
        name = node.config.broker.name
        view: View = {}
        for node_id, member in cluster.topology.members.items():
            at = member.primary
            view[node_id] = (at.host, at.port) if at is not None else ("", 0)
        if view != truth:
            found.append(f"{name} knows {_names(view)} of {_names(truth)}")
        others = [node_id for node_id in truth if node_id != node.broker.node_id]
        if sorted(cluster.peers) != sorted(others):
            found.append(f"{name} sends to {sorted(cluster.peers)}")
        for owner, _ in clusters:
            if owner is not node:
                found.extend(_wrong_bindings(name, cluster, owner))
    for client in clients:
        if client.ready and client.view != truth and truth:
            found.append(f"{client.name} knows {_names(client.view)} of {_names(truth)}")
    return found


def _names(view: View) -> list[str]:
    return [f"{node_id}={host}:{port}" for node_id, (host, port) in sorted(view.items())]


def _wrong_bindings(name: str, cluster: ClusterConnection, owner: Node) -> list[str]:
    """Returns errors in that node's view of the queues of `owner` and their consumers."""
    record = cluster.peers.get(owner.broker.node_id)
    if record is None or not record.linked() or not record.bindings.complete:
        return [f"{name} has no link to {owner.config.broker.name}"]
    there: dict[str, int] = {}
    bridged = [each.queue_name for each in owner.config.bridges.bridges]
    for queue in owner.broker.queues.values():
        if queue.durable and not queue.name.startswith("$"):
            # A core bridge takes messages, but is not announced to other nodes as a consumer (as in Artemis).
            count = 0 if queue.name in bridged else queue.consumer_count()
            there[queue.name + owner.broker.node_id] = count
    known = {
        cluster_name: binding.consumer_count if binding.connected else -1
        for cluster_name, binding in record.bindings.bindings.items()
        if not cluster_name.startswith("$")  # the reply queues of a router's connections
    }
    if known == there:
        return []
    return [f"{name} knows {known} of {owner.config.broker.name}, which has {there}"]


def check_last_stop(world: World, hosts: list[Host], clients: list[SimClient]) -> None:
    """Raises Violation if a node or a client still knows the stopped node after FORGETTING_SECONDS_MAX virtual seconds.

    A node on several machines does not stop: the other one goes on.
    """
    draw = world.random("farewell")  # the name decides the draws: a new one changes every listed seed
    if len(hosts) < 2 or draw.random() >= LAST_STOP_SHARE:
        return
    single = [each for each in hosts if not each.paired]
    if not single:
        return
    host = draw.choice(single)
    host.stop()
    wrong: list[str] = []
    for _ in range(FORGETTING_SECONDS_MAX):
        world.run_until(world.now + SECOND)
        wrong = wrong_views(hosts, clients)
        if not wrong:
            return
    raise Violation(f"{host.name} has left {FORGETTING_SECONDS_MAX} s ago: {wrong}")
