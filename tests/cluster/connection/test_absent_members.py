"""A member that is away takes no messages by load balancing while another queue can take them, STRICT included."""

from __future__ import annotations

import pytest

from atalanta.cluster.config import ClusterConnectionConfig
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.message import SendMessage
from tests.cluster.cluster_rig import Rig, count, node_of, waiting
from tests.cluster.connection.chain_rig import chain

SETTINGS: dict[str, str | int] = {
    "expiry_address": "late",
    "dead_letter_address": "dead",
    "max_delivery_attempts": 1,
}


def full_chain(mode: str) -> tuple[Rig, list[Host]]:
    """n0 -> n1 -> n2 (and back), each with the queues `orders` and `late`."""

    def direct(config: ClusterConnectionConfig) -> None:
        config.max_hops = 2
        config.allow_direct_connections_only = True

    rig = Rig()
    queues = [queue("orders", "orders", ANYCAST), queue("late", "late", ANYCAST)]
    for peers in ([1], [0, 2], [1]):
        rig.node(peers=peers, change=direct, queues=queues, mode=mode)
    for host in rig.hosts:
        host.start()
    rig.run(5)
    return rig, rig.hosts


def send(rig: Rig, host: Host, number: int, expires_ms: int = 0) -> None:
    client = rig.client(host)
    for correlation in range(1, number + 1):
        now_ms = rig.world.now // 1_000_000
        message = Message.create("orders", b"x", 4, True, now_ms, 4)
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        message.properties_changed()
        message.expiration = now_ms + expires_ms if expires_ms else 0
        client.send(
            SendMessage(message, requires_response=True, correlation=correlation, sender_id=1)
        )
    rig.until(lambda: len(client.answers) == number)
    rig.run(1)


def expire(rig: Rig, hosts: list[Host]) -> None:
    rig.run(5)
    for host in hosts:
        node_of(host).broker.expiry.scan(rig.world.now)
    rig.run(1)


def test_the_end_of_a_chain_that_is_away_takes_nothing_of_the_other_end() -> None:
    """n0 has no link to n2 and cannot know; n1 has."""
    rig, hosts = full_chain("STRICT")
    for host in hosts:
        node_of(host).broker.settings.add("orders", SETTINGS)
    hosts[2].crash()
    rig.run(10)
    send(rig, hosts[0], 12, expires_ms=2_000)
    assert count(hosts[0], "orders") + count(hosts[1], "orders") == 12
    assert waiting(hosts[1], "node-2") == 0
    expire(rig, hosts[:2])
    assert count(hosts[0], "late") + count(hosts[1], "late") == 12
    assert waiting(hosts[1], "node-2") == 0


def test_what_the_middle_cannot_take_itself_goes_back_to_the_living_end() -> None:
    rig, hosts = chain(2, "STRICT")
    hosts[2].crash()
    rig.run(10)
    send(rig, hosts[0], 6)
    rig.until(lambda: count(hosts[0], "orders") == 6)
    assert waiting(hosts[1], "node-2") == 0


def test_a_subscription_of_the_absent_end_keeps_its_messages() -> None:
    rig, hosts = chain(2, "STRICT")
    for host in (hosts[0], hosts[2]):
        client = rig.client(host)
        client.create(f"own-{host.name}", "news", 0)
    rig.run(2)
    hosts[2].crash()
    rig.run(10)
    rig.stored(hosts[0], "news", [b"1", b"2"], 0)
    rig.until(lambda: waiting(hosts[1], "node-2") == 2)
    assert count(hosts[0], "own-n0") == 2
    hosts[2].start()
    rig.until(lambda: count(hosts[2], "own-n2") == 2)


@pytest.mark.parametrize("nodes", [2, 3])
def test_expired_messages_dead_letters_and_diverted_copies_stay_with_the_living(rig: Rig, nodes: int) -> None:
    names = ("orders", "late", "dead", "copies")
    hosts = rig.cluster(
        nodes, mode="STRICT", queues=[queue(name, name, ANYCAST) for name in names]
    )
    living = [host for host in hosts if host is not hosts[1]]
    for host in living:
        broker = node_of(host).broker
        broker.settings.add("orders", SETTINGS)
        broker.diverts.create(DivertConfig("d", "orders", "copies", ANYCAST), False)
    hosts[1].crash()
    rig.run(1)
    send(rig, hosts[0], 12, expires_ms=2_000)
    assert sum(count(host, "copies") for host in living) == 12
    expire(rig, living)
    assert sum(count(host, "late") for host in living) == 12
    send(rig, hosts[0], 12)
    for host in living:
        broker = node_of(host).broker
        for reference in list(broker.queues["orders"].live()):
            broker.dead_letters.move(rig.world.now, reference)
    rig.run(2)
    assert sum(count(host, "dead") for host in living) == 12
    assert all(waiting(host, "node-1") == 0 for host in living)
