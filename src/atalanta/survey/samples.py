"""Two samples of a cluster as one: counts of the first, and those of the second as `later`."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.links import ClusterConnectionView
from atalanta.survey.model.queues import QueueView

COUNTS: Final = ("messages", "consumers", "delivering", "scheduled", "added", "acknowledged")


def joined(before: LiveCluster, after: LiveCluster, seconds: float) -> LiveCluster:
    """Returns the later sample, with the counts of the earlier one as its first. `seconds` lie between the two.

    What is new has no earlier counts, and so no rate.
    """
    for node in after.nodes:
        known = before.node(node.node_id)
        if known is not None:
            _join(known, node)
    after.seconds = seconds
    return after


def _join(known: NodeView, node: NodeView) -> None:
    for name, queue in node.queues.items():
        first = known.queues.get(name)
        if first is not None and first.now.added <= queue.added:  # else it was created again meanwhile
            node.queues[name] = _joined_queue(first.now, queue)
    if known.totals is not None and node.totals is not None:
        node.totals = replace(known.totals.now, later=node.totals)
    consumers = {(one.session, one.id): one.later or one for one in known.consumers}
    for at, consumer in enumerate(node.consumers):
        earlier = consumers.get((consumer.session, consumer.id))
        if earlier is not None:
            delivered, in_transit = earlier.delivered, earlier.in_transit
            node.consumers[at] = replace(consumer, delivered=delivered, in_transit=in_transit, later=consumer)
    connections = {each.name: each for each in known.connections}
    for connection in node.connections:
        if connection.name in connections:
            _join_links(connections[connection.name], connection)
    bridges = {each.name: each for each in known.bridges}
    for bridge in node.bridges:
        if bridge.name in bridges:
            bridge.later_acknowledged = bridge.acknowledged
            bridge.acknowledged = bridges[bridge.name].last_acknowledged
    networks = {(each.name, each.address): each for each in known.networks}
    for network in node.networks:
        former = networks.get((network.name, network.address))
        if former is not None:
            network.later_sent, network.later_received = network.sent, network.received
            network.sent, network.received = former.last_sent, former.last_received


def _joined_queue(first: QueueView, queue: QueueView) -> QueueView:
    return replace(queue, later=queue, **{count: getattr(first, count) for count in COUNTS})


def _join_links(known: ClusterConnectionView, connection: ClusterConnectionView) -> None:
    for node_id, link in connection.links.items():
        former = known.links.get(node_id)
        if former is not None and former.last_confirmed is not None:
            link.later_confirmed = link.confirmed
            link.confirmed = former.last_confirmed
