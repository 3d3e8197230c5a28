"""Clusters with grouping handlers, and clients that send groups to all of their nodes."""

from __future__ import annotations

from collections.abc import Callable

from atalanta.cluster.grouping.config import LOCAL, REMOTE, GroupingHandlerConfig
from atalanta.cluster.grouping.handler import ClusterGrouping
from atalanta.cluster.grouping.local import LocalGrouping
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Client, Rig, node_of, queue_of

Change = Callable[[GroupingHandlerConfig], None]


def handler(kind: str, change: Change | None = None) -> GroupingHandlerConfig:
    config = GroupingHandlerConfig("groups", kind)
    if change is not None:
        change(config)
    return config


def grouped_cluster(rig: Rig, count: int = 3, local: int = 0, change: Change | None = None) -> list[Host]:
    """Node `local` decides, the others ask it."""
    hosts = [
        rig.node(grouping=handler(LOCAL if index == local else REMOTE, change))
        for index in range(count)
    ]
    rig.form(*hosts)
    return hosts


def send_group(client: Client, group: str, *bodies: str, address: str = "orders") -> None:
    for body in bodies:
        client.publish(address, body.encode(), ANYCAST, _AMQ_GROUP_ID=group)


def group_stored(rig: Rig, host: Host, group: str, body: str) -> Client:
    """A client that has sent this, and has its answer."""
    client = rig.client(host)
    send_group(client, group, body)
    rig.until(lambda: client.answers)
    return client


def readers_at(rig: Rig, hosts: list[Host]) -> list[Client]:
    """A client at each of them that consumes `orders`."""
    readers = [rig.client(host) for host in hosts]
    for reader in readers:
        reader.consume("orders")
    return readers


def grouping_of(host: Host) -> ClusterGrouping:
    found = node_of(host).broker.router.grouping
    assert isinstance(found, ClusterGrouping)
    return found


def pins_of(host: Host) -> dict[str, str]:
    """Of the LOCAL node: full id -> cluster name."""
    found = grouping_of(host)
    assert isinstance(found, LocalGrouping)
    return {full_id: pin.cluster_name for full_id, pin in found.pins.items()}


def bodies_at(host: Host, name: str = "orders") -> list[bytes]:
    return [reference.message.body for reference in queue_of(host, name).references]


def holders(hosts: list[Host], name: str = "orders") -> list[str]:
    """Names of the nodes whose queue holds something."""
    return [host.name for host in hosts if host.up and queue_of(host, name).message_count]
