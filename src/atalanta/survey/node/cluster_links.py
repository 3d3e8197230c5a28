"""The cluster connections of one node and their links, as its management reports them."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.client import ClientError, Management, NotAuthorized
from atalanta.survey.model.cluster import NodeView
from atalanta.survey.model.links import ClusterConnectionView, LinkView
from atalanta.survey.node.answers import rows_of


async def cluster_connection(
    node: NodeView, management: Management, name: str
) -> ClusterConnectionView:
    resource = f"clusterconnection.{name}"

    async def get(attribute: str) -> object:
        return await management.get(resource, attribute)

    view = ClusterConnectionView(name)
    view.address = str(await get("Address") or "")
    view.load_balancing = str(await get("MessageLoadBalancingType") or "")
    hops = await get("MaxHops")
    view.max_hops = hops if isinstance(hops, int) else 1
    view.duplicate_detection = (await get("DuplicateDetection")) is not False
    connectors = await get("StaticConnectors")
    view.static_connectors = (
        [str(one) for one in connectors] if isinstance(connectors, list) else []
    )
    group = await get("DiscoveryGroupName")
    view.discovery_group = str(group) if group else None
    nodes = await get("Nodes")
    for node_id, address in (nodes if isinstance(nodes, dict) else {}).items():
        view.links[str(node_id)] = LinkView(str(node_id), str(address))
    if not node.ours:
        await count_links(management, view, _first)
        return view
    text = await management.call(resource, "listLinks")
    failures = await get("ConnectorFailures")
    for at, why in (failures if isinstance(failures, dict) else {}).items():
        view.failures[str(at)] = str(why)
    numbers = dict.fromkeys(("awaySince", "waiting", "mayHaveArrived", "confirmed"), int)
    rows = rows_of(text, resource, "listLinks", nodeID=str, address=str, state=str, **numbers)
    for row in rows:
        view.links[str(row["nodeID"])] = LinkView(
            str(row["nodeID"]),
            str(row["address"]),
            row["state"] == "linked",
            row["awaySince"] or None,
            row["waiting"],
            row["mayHaveArrived"],
            row["confirmed"],
        )
    return view


async def count_links(
    management: Management,
    connection: ClusterConnectionView,
    note: Callable[[LinkView, int], None],
) -> None:
    """Counts the messages that each member has confirmed (getBridgeMetrics)."""
    for link in connection.links.values():
        if link.linked:
            resource = f"clusterconnection.{connection.name}"
            try:
                found = await management.call(resource, "getBridgeMetrics", link.node_id)
            except NotAuthorized:
                raise
            except ClientError:
                continue
            count = found.get("messagesAcknowledged") if isinstance(found, dict) else None
            if isinstance(count, int):
                note(link, count)


def _first(link: LinkView, confirmed: int) -> None:
    link.confirmed = confirmed


def note_later(link: LinkView, confirmed: int) -> None:
    link.later_confirmed = confirmed
