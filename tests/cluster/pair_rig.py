"""A pair with a shared store in the virtual world: two machines with the same node id, one of which runs."""

from __future__ import annotations

from atalanta.kernel.queue.spec import MULTICAST
from atalanta.kernel.settings.broker_config import QueueConfig
from atalanta.sim.host import Host
from atalanta.sim.nodes import PORT, queue
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.cluster_rig import Rig, both, node_of


def with_reports() -> list[QueueConfig]:
    """The queues of all nodes, and the subscription `reports` on the address `prices` that only the pair has."""
    return [*both(), queue("reports", "prices", MULTICAST)]


def members(rig: Rig, count: int = 2) -> list[Host]:
    """Started nodes that know each other; the second one is to have a backup."""
    for index in range(count):
        rig.node(queues=with_reports() if index == 1 else None)
    rig.form()
    return rig.hosts[:]


def backup_of(rig: Rig, active: Host, discovery: bool = False) -> Host:
    """The backup of a running node, which waits; the node announces the pair."""
    index = rig.hosts.index(active)
    peers = [number for number in range(len(rig.hosts)) if number != index]
    backup = rig.node(peers=peers, discovery=discovery, backup_of=index, queues=with_reports())
    announce(rig, active, backup)
    return backup


def connector(host: Host) -> TransportConfiguration:
    """The connector at which a machine of the rig serves."""
    return TransportConfiguration.tcp(host.name, host.address, PORT)


def announce(rig: Rig, active: Host, backup: Host) -> None:
    """The running node of a pair announces its backup."""
    node_of(active).on_backups(rig.world.now, {"test": connector(backup)})
    active.flush_later()


def fail_over(backup: Host, active: Host) -> None:
    """The active node dies, and its backup starts at once with its data."""
    active.crash()
    backup.take_over(active)
