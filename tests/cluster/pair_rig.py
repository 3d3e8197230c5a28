"""A pair with a shared store in the virtual world: two machines with the same node id, one of which runs."""

from __future__ import annotations

from atalanta.sim.host import Host, HostLarge
from atalanta.sim.nodes import PORT
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.cluster_rig import Rig, node_of


def backup_of(rig: Rig, active: Host, announced: bool = True) -> Host:
    """The backup of a running node, which waits; the node announces the pair unless told otherwise."""
    index = rig.hosts.index(active)
    peers = [number for number in range(len(rig.hosts)) if number != index]
    backup = rig.node(peers=peers, backup_of=index)
    if announced:
        announce(rig, active, backup)
    return backup


def connector(host: Host) -> TransportConfiguration:
    """The connector at which a machine of the rig serves."""
    return TransportConfiguration.tcp(host.name, host.address, PORT)


def announce(rig: Rig, active: Host, backup: Host) -> None:
    """The running node of a pair announces its backup."""
    node_of(active).on_backups(rig.world.now, {"test": connector(backup)})
    active.flush_later()


def take_over(backup: Host, former: Host) -> None:
    """The backup starts with the data of the node that has ended."""
    assert not former.up
    backup.disk = former.disk
    backup.large = former.large
    backup.large.attach(HostLarge(backup))
    backup.start()


def fail_over(backup: Host, active: Host) -> None:
    """The active node dies, and its backup starts at once with its data."""
    active.crash()
    take_over(backup, active)
