"""Findings about messages: stranded and parked messages, growing queues, consumers without messages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from atalanta.survey.findings.cluster_finding import (
    ERROR,
    NOTE,
    WARNING,
    ClusterFinding,
    delay_line,
)
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.links import LinkView
from atalanta.survey.model.queues import ConsumerView, QueueView
from atalanta.survey.texts import duration_text, messages

STILL_S: Final = 1.0  # a shorter look proves nothing
OFF: Final = "OFF"
STRICT: Final = "STRICT"
CONNECTOR_FAILED: Final = "see the finding connector_failed"


def message_findings(cluster: LiveCluster) -> Iterator[ClusterFinding]:
    for node in cluster.nodes:
        yield from prepared(cluster, node)
        for queue in node.queues.values():
            if queue.forwards_to is not None:
                yield from parked(cluster, node, queue, queue.forwards_to)
            elif not queue.internal and not queue.temporary:
                yield from stranded(cluster, node, queue)
                yield from starving(cluster, node, queue)


def prepared(cluster: LiveCluster, node: NodeView) -> Iterator[ClusterFinding]:
    """Finds XA transactions that stay prepared: nobody gets their messages before they are committed or rolled back."""
    count = len(node.prepared)
    if count == 0:
        return
    many = "transactions wait" if count > 1 else "transaction waits"
    yield ClusterFinding(
        WARNING,
        "prepared_transactions",
        node.label,
        f"{count} prepared XA {many} for the decision of a manager (an application server, a Spark query with a sink): "
        "no consumer gets their messages",
        "start the manager, which ends them; if it is gone for good: management operation rollbackPreparedTransaction "
        f"(or commitPreparedTransaction) of the broker with {node.prepared[0]}",
        {"transactions": node.prepared},
    )


# -- stranded -------------------------------------------------------------------------------------
def remote_consumers(
    cluster: LiveCluster, node: NodeView, queue: QueueView
) -> list[tuple[NodeView, list[ConsumerView]]]:
    """Returns other nodes whose queue of the same address and routing name has consumers."""
    found: list[tuple[NodeView, list[ConsumerView]]] = []
    for other in cluster.nodes:
        if other is node:
            continue
        takers: list[ConsumerView] = []
        for theirs in other.queues.values():
            if theirs.address == queue.address and theirs.routing_name == queue.routing_name:
                takers += other.consumers_of(theirs.name)
        if takers:
            found.append((other, takers))
    return found


def stranded(cluster: LiveCluster, node: NodeView, queue: QueueView) -> Iterator[ClusterFinding]:
    """Finds waiting messages without local consumers that a consumer on another node would take."""
    if queue.waiting == 0 or any(one.filter is None for one in node.consumers_of(queue.name)):
        return
    if queue.lease is not None:
        return  # its owner reads them
    if queue.later is not None and queue.later.acknowledged > queue.acknowledged:
        return  # the queue is being emptied
    elsewhere = remote_consumers(cluster, node, queue)
    if not elsewhere:
        return
    all_select = all(one.filter is not None for _, takers in elsewhere for one in takers)
    who = ", ".join(
        f"{other.label} ({len(takers)} consumer{'s' if len(takers) > 1 else ''})"
        for other, takers in elsewhere
    )
    why, remedy = stranding_reason(node, queue, [other for other, _ in elsewhere])
    text = (
        f"{messages(queue.waiting)} in {queue.name} for {duration_text(queue.oldest_ms)}: no consumer here takes them, "
        f"consumers at {who}{' (by selector)' if all_select else ''}; {why}"
    )
    yield ClusterFinding(
        NOTE if all_select else ERROR,
        "stranded",
        node.label,
        text,
        remedy,
        {
            "queue": queue.name,
            "messages": queue.waiting,
            "oldest_ms": queue.oldest_ms,
            "consumers_at": [other.label for other, _ in elsewhere],
        },
    )


def stranding_reason(node: NodeView, queue: QueueView, others: list[NodeView]) -> tuple[str, str]:
    """Returns the reason why the messages stay, and the remedy."""
    if not node.connections:
        return "the node has no cluster connection", "<cluster-connections>…</cluster-connections>"
    covering = [one for one in node.connections if one.covers(queue.address)]
    if not covering:
        text = node.connections[0].address
        return (
            f"the cluster connection's address '{text}' does not cover {queue.address}",
            f"<address>{_widened(text, queue.address)}</address>",
        )
    connection = covering[0]
    linked = node.linked()
    if not any(other.node_id in linked for other in others):
        if connection.max_hops == 1 and any(
            link in [member.node_id for member in others] for link in _two_hops(node, others)
        ):
            return "they are two hops away", "<max-hops>2</max-hops>"
        failed = next((one for one in connection.failures.values()), None)
        if failed is not None:
            return f"no link from here: {failed}", CONNECTOR_FAILED
        return (
            f"no link from here to {', '.join(other.label for other in others)}",
            "<static-connectors><connector-ref>…</connector-ref></static-connectors>",
        )
    if connection.load_balancing in (OFF, STRICT):
        better = "OFF_WITH_REDISTRIBUTION" if connection.load_balancing == OFF else "ON_DEMAND"
        return (
            f"message-load-balancing is {connection.load_balancing}",
            f"<message-load-balancing>{better}</message-load-balancing>",
        )
    delay_ms = node.redistribution_delay_ms.get(queue.address, -1)
    if delay_ms < 0:
        return (
            "redistribution-delay is -1",
            delay_line(queue.address, 0),
        )
    if queue.oldest_ms is not None and queue.oldest_ms < delay_ms + 2_000:
        return f"they go after redistribution-delay ({delay_ms} ms)", ""
    return (
        "redistribution is on: messages of a group are never redistributed, nor those a selector or a filter refuses",
        '<grouping-handler name="…"><type>LOCAL</type><address>…</address></grouping-handler>',
    )


def _widened(prefixes: str, address: str) -> str:
    kept = [
        part.strip()
        for part in prefixes.split(",")
        if part.strip() and not address.startswith(part.strip().removeprefix("!"))
    ]
    return (
        ",".join([*kept, address])
        if any(not part.startswith("!") for part in kept)
        else ",".join(kept)
    )


def _two_hops(node: NodeView, others: list[NodeView]) -> list[str]:
    """Returns the others that a neighbour of this node could forward to: it has a link to one of them."""
    near = node.linked()
    return [other.node_id for other in others if any(each in near for each in other.linked())]


# -- parked ---------------------------------------------------------------------------------------
def parked(
    cluster: LiveCluster, node: NodeView, queue: QueueView, node_id: str
) -> Iterator[ClusterFinding]:
    """Finds store-and-forward queues with messages: for a member that is not connected, or that is too slow."""
    if queue.messages == 0:
        return
    link = _link_of(node, node_id)
    facts: dict[str, object] = {
        "queue": queue.name,
        "messages": queue.messages,
        "oldest_ms": queue.oldest_ms,
        "member": node_id,
        "addresses": dict(queue.addresses),
    }
    name = cluster.label(node_id)
    if link is None or not link.linked:
        yield _parked_for(cluster, node, queue, name, link, facts)
    elif queue.later is not None and stands_still(queue, queue.later) and cluster.seconds >= STILL_S:
        text = f"{messages(queue.later.messages)} wait for {name}, and it took none for {cluster.seconds:g} s"
        remedy = f"the findings and the log of {name} may say why: a full address, a paused process, a slow network"
        yield ClusterFinding(WARNING, "forwarding_stands_still", node.label, text, remedy, facts)
    elif queue.later is not None and queue.later.messages > queue.messages:
        target = cluster.node(node_id)
        addresses = ", ".join(queue.addresses) or "its addresses"
        yield ClusterFinding(
            WARNING,
            "forwarding_falls_behind",
            node.label,
            f"{messages(queue.later.messages)} wait for {name}, {queue.later.messages - queue.messages:,} more than "
            f"{cluster.seconds:g} s ago: it takes them slower than they come ({addresses})",
            f'at {target.label if target else name}: <address-setting match="{next(iter(queue.addresses), "#")}">'
            "<address-full-policy>PAGE</address-full-policy></address-setting>",
            facts,
        )


def stands_still(queue: QueueView, later: QueueView) -> bool:
    """Returns whether no message left the queue between the samples, though messages wait."""
    return 0 < queue.messages <= later.messages and later.acknowledged <= queue.acknowledged


def _parked_for(
    cluster: LiveCluster,
    node: NodeView,
    queue: QueueView,
    name: str,
    link: LinkView | None,
    facts: dict[str, object],
) -> ClusterFinding:
    takers: list[str] = []
    for address in queue.addresses:
        for other in cluster.nodes:
            if any(
                theirs.address == address and theirs.consumers for theirs in other.queues.values()
            ):
                takers.append(f"{other.label} ({address})")
    certain = 0 if link is None else link.may_have_arrived or 0
    facts["consumers_at"] = takers
    facts["may_have_arrived"] = None if link is None else link.may_have_arrived
    away = "which is away"
    if link is not None and link.away_since_ms:
        away = f"which has been away for {duration_text(int(time.time() * 1_000) - link.away_since_ms)}"
    text = f"{messages(queue.messages)} parked for {name}, {away}; the oldest for {duration_text(queue.oldest_ms)}"
    if takers:
        text += f"; consumers at {', '.join(takers)} would take them"
    remedy = f"start {name} again: it gets them once"
    if node.ours:
        if certain:
            text += f"; {certain:,} of them may have arrived there and stay until it is back"
        if takers and certain < queue.messages:
            remedy = "parked-message-timeout = 10000  (atalanta.toml)"
    elif takers:
        remedy += "; Artemis keeps them until then (an Atalanta node gives them back)"
    return ClusterFinding(ERROR if takers else WARNING, "parked", node.label, text, remedy, facts)


def _link_of(node: NodeView, node_id: str) -> LinkView | None:
    for connection in node.connections:
        if node_id in connection.links:
            return connection.links[node_id]
    return None


# -- starving -------------------------------------------------------------------------------------
def starving(cluster: LiveCluster, node: NodeView, queue: QueueView) -> Iterator[ClusterFinding]:
    """Finds consumers that match waiting messages and received none between the two surveys."""
    later = queue.later
    if later is None or queue.waiting == 0 or later.waiting == 0:
        return
    starved = [
        one
        for one in node.consumers_of(queue.name)
        if one.later is not None
        and one.filter is None
        and one.later.delivered == one.delivered
        and (one.ready if one.ready is not None else one.in_transit == 0)
    ]
    if not starved:
        return
    why, remedy = _starving_reason(queue)
    yield ClusterFinding(
        WARNING,
        "consumers_starve",
        node.label,
        f"{len(starved)} of {queue.consumers} consumers of {queue.name} have credit and got nothing for "
        f"{cluster.seconds:g} s, while {messages(later.waiting)} wait: {why}",
        remedy,
        {"queue": queue.name, "messages": later.waiting, "consumers": len(starved)},
    )


def _starving_reason(queue: QueueView) -> tuple[str, str]:
    if queue.paused:
        return "the queue is paused", f"atalanta queue resume {queue.name}"
    if not queue.enabled:
        return "the queue is disabled", f'<queue name="{queue.name}" enabled="true"/>'
    if queue.exclusive and queue.consumers > 1:
        return (
            "the queue is exclusive: another consumer gets all",
            f'<queue name="{queue.name}" exclusive="false"/>',
        )
    if queue.consumers_before_dispatch > queue.consumers:
        return (
            f"it waits for {queue.consumers_before_dispatch} consumers",
            f'<queue name="{queue.name}" consumers-before-dispatch="{queue.consumers}"/>',
        )
    return (
        "the waiting messages belong to groups of other consumers, or the consumers' sessions are not started",
        f'<queue name="{queue.name}" group-rebalance="true"/>',
    )
