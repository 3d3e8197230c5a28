"""The picture of one node by its configuration: what it announces, where it listens, and where its links lead."""

from __future__ import annotations

from atalanta.config.configuration import Configuration
from atalanta.wire.uri import masked


def picture(configuration: Configuration) -> dict[str, object]:
    """Returns the node's name and its links: kind, name, and where they come from and lead to."""
    name = configuration.broker.name
    places = {key: f"{each.host}:{each.port}" for key, each in configuration.connectors.items()}
    links: list[dict[str, str]] = []

    def link(kind: str, element: str, start: str, end: str) -> None:
        links.append({"kind": kind, "name": element, "from": start, "to": end})

    for acceptor in configuration.acceptors:
        link("acceptor", acceptor.name, "clients", f"{acceptor.host}:{acceptor.port}")
    for group in configuration.broadcast_groups:
        link("broadcast-group", group.name, name, group.place)
    for heard in configuration.discovery_groups.values():
        link("discovery-group", heard.name, heard.place, name)
    for connection in configuration.cluster_connections:
        for each in connection.static_connectors:
            link("cluster-connection", connection.name, name, places.get(each, each))
        if connection.discovery_group is not None:
            link("cluster-connection", connection.name, name, f"discovery-group {connection.discovery_group}")
    for bridge in configuration.bridges:
        start = f"queue {bridge.queue_name}"
        targets = [places.get(each, each) for each in bridge.static_connectors]
        if bridge.discovery_group is not None:
            targets.append(f"discovery-group {bridge.discovery_group}")
        address = "" if bridge.forwarding_address is None else f" address {bridge.forwarding_address}"
        for target in targets:
            link("bridge", bridge.name, start, target + address)
    for network in configuration.networks.connectors:
        link("network-connector", network.name, name, masked(network.uri))
    for divert in configuration.broker.diverts:
        for target in divert.forwarding_address.split(","):
            link("divert", divert.name, f"address {divert.address}", f"address {target.strip()}")
    for router in configuration.routers:
        users = [each.name for each in configuration.acceptors if each.router == router.name]
        for user in users:
            link("connection-router", router.name, f"acceptor {user}", router.policy or "stays here")
    return {"node": name, "links": links}
