"""A client with a temporary queue that goes to another broker of a network, where a bridge has told of the queue."""

from __future__ import annotations

import pytest

from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
from tests.cluster.cluster_rig import node_of
from tests.cluster.networks.network_rig import NetworkRig, connector


def chain(rig: NetworkRig, duplex: bool) -> None:
    """Three brokers, a - b - c."""
    if duplex:
        rig.start([connector(1, network_ttl=3, duplex=True)], [connector(2, network_ttl=3, duplex=True)], [])
        return
    forth = [connector(1, network_ttl=3)], [connector(2, network_ttl=3), connector(0, network_ttl=3, name="back")]
    rig.start(*forth, [connector(1, network_ttl=3)])


def known_at(rig: NetworkRig, own: ActiveMQDestination) -> list[bool]:
    return [own.physical_name in node_of(each).broker.queues for each in rig.hosts]


@pytest.mark.parametrize("duplex", [False, True])
@pytest.mark.parametrize("to", [1, 2])
@pytest.mark.parametrize("late", [True, False])
def test_replies_reach_a_client_that_has_gone_to_another_broker(
    rig: NetworkRig, duplex: bool, to: int, late: bool
) -> None:
    """Its former broker sees its end before or after that; repliers are at each broker."""
    chain(rig, duplex)
    former = rig.user(rig.hosts[0], "asking")
    own = former.temporary_queue()
    former.consume(own)
    rig.until(lambda: all(known_at(rig, own)))
    if not late:
        former.kill()
    client = rig.user(rig.hosts[to], "asking")
    assert client.temporary_queue() == own
    client.consume(own)
    rig.run(1)
    assert client.errors == []
    if late:
        former.kill()
    rig.run(10)
    assert all(known_at(rig, own))
    for number, host in enumerate(rig.hosts):
        replier = rig.user(host)
        replier.send(f"reply {number}", own)
        rig.until(lambda replier=replier: replier.all_confirmed())  # type: ignore[misc]
        assert replier.errors == []
    rig.run(2)
    assert sorted(str(each) for each in client.texts) == ["reply 0", "reply 1", "reply 2"]
    client.kill()
    rig.run(10)
    assert not any(known_at(rig, own))
