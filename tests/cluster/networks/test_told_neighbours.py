"""Failover clients are told of the neighbours of a network: by a bridge from here, or a duplex bridge to here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from atalanta.node.config import NodeConfig
from atalanta.sim.host import Host
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from tests.cluster.balancing.constant_clients import Accounts
from tests.cluster.balancing.failover_clients import failover
from tests.cluster.cluster_rig import OPENWIRE_PORT
from tests.cluster.networks.network_rig import NetworkRig, bridges_of, connector


def telling(name: str, *permissions: str) -> Callable[[NodeConfig], None]:
    """Changes a configuration: an acceptor at all addresses, published as `public-…`, tells its clients."""

    def change(config: NodeConfig) -> None:
        acceptor = AcceptorConfig("openwire", "0.0.0.0", OPENWIRE_PORT, protocols=("OPENWIRE",))
        acceptor.options(OpenWireAcceptor).published_host = f"public-{name}"
        acceptor.options(OpenWireAcceptor).update_cluster_clients = True
        acceptor.options(OpenWireAcceptor).update_cluster_clients_on_remove = True
        config.acceptors.append(acceptor)
        if permissions:
            config.security.add_rule("#", {each: ("all",) for each in permissions})

    return change


def pair(rig: NetworkRig, *permissions: str, **options: Any) -> tuple[Host, Host]:
    """Two nodes, with a bridge from the first to the second."""
    first = rig.single([connector(1, port=OPENWIRE_PORT, **options)], telling("n0", *permissions))
    second = rig.single([], telling("n1", *permissions))
    for host in (first, second):
        host.listeners[OPENWIRE_PORT] = "openwire"
        host.start()
    rig.until(lambda: all(bridge.connected() for bridge in bridges_of(first)))
    return first, second


@pytest.mark.parametrize("duplex", [False, True])
def test_both_ends_of_a_duplex_bridge_are_told_else_the_end_that_dials(rig: NetworkRig, duplex: bool) -> None:
    """A neighbour is told by the published address of its acceptor, not by that of the bridge's socket.

    When it has gone, the other broker is alone. That is no news for its clients.
    """
    first, second = pair(rig, duplex=duplex)
    near, far = (failover(rig, 1, [host], Accounts(), period_ns=0)[0] for host in (first, second))
    one, other = (f"tcp://public-{name}:{OPENWIRE_PORT}" for name in ("n0", "n1"))
    assert other in near.updated
    assert (one in far.updated) == duplex
    first.crash()
    rig.run(2)
    assert far.ready and (one in far.updated) == duplex


def test_of_a_neighbour_whose_user_does_not_manage_nobody_is_told(rig: NetworkRig) -> None:
    """It could name any address, and would get the passwords of the clients that go there."""
    _, second = pair(rig, "send", "consume", "browse", "createAddress", "createDurableQueue", duplex=True)
    (client,) = failover(rig, 1, [second], Accounts(), period_ns=0)
    assert not any("public-n0" in uri for uri in client.updated)
