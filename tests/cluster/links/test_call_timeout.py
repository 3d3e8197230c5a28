"""A peer that answers pings but not the login: the link is given up after call-timeout, and tried anew."""

from __future__ import annotations

from atalanta.wire.core.packets.cluster import ClusterConnect
from atalanta.wire.core.packets.connection import Ping
from tests.cluster.cluster_rig import RawPeer, Rig


def test_a_link_that_does_not_open_is_tried_anew() -> None:
    rig = Rig()
    peer = RawPeer(rig, "n9")
    peer.listen()
    rig.node(peers=[9]).start()

    def ping() -> None:
        if peer.conns:
            peer.send(Ping(6_000), 0)
        rig.world.at(1_000_000_000, ping)

    ping()
    rig.until(lambda: peer.got(ClusterConnect))
    rig.run(25)
    assert not peer.closed
    rig.until(lambda: len(peer.got(ClusterConnect)) > 1, 20)
    assert peer.closed
