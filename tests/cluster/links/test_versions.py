"""Links to peers of older versions: what is sent arrives, and a peer without a common version is left in peace."""

from __future__ import annotations

import itertools

import pytest

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.wire.core.packets.session import CreateSession, CreateSessionV2
from tests.cluster.cluster_rig import Rig, count
from tests.cluster.core_bridges.bridge_rig import BridgeRig, bridge
from tests.cluster.links.old_peer import OldPeer

NO_VERSION = 128


@pytest.mark.parametrize("client_id", [None, "north"])
@pytest.mark.parametrize("version", [129, 130, 131, 133, 134, 135])
def test_a_core_bridge_speaks_the_version_of_its_target(version: int, client_id: str | None) -> None:
    rig = BridgeRig()
    peer = OldPeer(rig, "n1", version)
    peer.listen()
    host = rig.single(bridge(client_id=client_id))
    client = rig.client(host)
    for number in range(5):
        client.publish("orders", b"x" * (300_000 if number == 2 else 10), ANYCAST)
    rig.until(lambda: len(peer.taken) == 5)
    rig.until(lambda: count(host, "orders") == 0)
    assert [packet.version for packet in peer.got(CreateSession)][-1] == version  # type: ignore[attr-defined]
    assert bool(peer.got(CreateSessionV2)) == (client_id is not None and version >= 131)


def test_a_member_without_a_common_version_is_not_announced_and_asked_ever_more_seldom() -> None:
    rig = Rig()
    peer = OldPeer(rig, "n7", NO_VERSION)
    peer.listen()
    rig.node(peers=[7]).start()
    rig.until(lambda: len(peer.asked_at) >= 6, 120)
    pauses = [after - before for before, after in itertools.pairwise(peer.asked_at)]
    assert all(after > before for before, after in itertools.pairwise(pauses[:5]))
    assert len(rig.events("member_gone")) <= 1
    assert len(rig.events("n0 bridge_lost")) == 1
