"""Settings and access to the balancer of a simulated cluster's node."""

from __future__ import annotations

from collections.abc import Sequence

from atalanta.cluster.balancing.balancers import Balancers
from atalanta.cluster.balancing.rebalance import Rebalance
from atalanta.cluster.native_config import OwnSettings
from atalanta.sim.host import Host
from tests.cluster.balancing.constant_clients import Roamer
from tests.cluster.cluster_rig import node_of


def balancer(host: Host) -> Rebalance:
    part = node_of(host).parts["rebalance"]
    assert isinstance(part, Balancers)
    return part.by_number[0]


def at_node(roamers: Sequence[Roamer], hosts: list[Host]) -> list[int]:
    """Returns how many clients each node has."""
    return [sum(1 for one in roamers if one.ready and one.target == host.name) for host in hosts]


def settings(**changes: object) -> OwnSettings:
    made = OwnSettings()
    for name, value in changes.items():
        assert hasattr(made, name)
        setattr(made, name, value)
    return made


def known(one: Roamer) -> None:
    """Marks a client as one that has reconnected before, at some other node."""
    one.was_at = "elsewhere"
