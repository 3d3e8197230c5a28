"""Large messages over cluster links: piece by piece, once, and with no file left on either side, whatever breaks."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.sim.world.world import SECOND
from atalanta.wire.core.packets.message import (
    SendContinuation,
)
from tests.cluster.cluster_rig import Rig, remote_consumers
from tests.cluster.links.large_client import BODY, PIECE, LargeClient, client


def linked_pair() -> tuple[Rig, list[Host], LargeClient, LargeClient]:
    """Two nodes, a consumer of `orders` at the second, a producer at the first."""
    rig = Rig()
    hosts = rig.cluster(2)
    consumer = client(rig, hosts[1], "orders")
    rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 1)
    return rig, hosts, client(rig, hosts[0]), consumer


def files(hosts: list[Host]) -> list[int]:
    return [len(host.large.contents) for host in hosts]


def test_a_large_message_crosses_and_leaves_no_file() -> None:
    rig, hosts, producer, consumer = linked_pair()
    producer.publish_large("orders", BODY)
    producer.publish("orders", b"behind", ANYCAST)
    rig.until(lambda: len(consumer.bodies) == 2)
    assert consumer.bodies == [BODY, b"behind"]
    rig.until(lambda: files(hosts) == [0, 0])
    sent = [packet for channel, packet in rig.packets(*hosts) if channel == 10]
    pieces = [packet for packet in sent if isinstance(packet, SendContinuation)]
    assert b"".join(piece.body for piece in pieces) == BODY
    assert [piece.requires_response for piece in pieces].count(True) == 1


def test_the_size_before_a_compression_crosses() -> None:
    rig, _, producer, consumer = linked_pair()
    producer.publish_large("orders", BODY, named_size=5 * len(BODY))
    producer.publish_large("orders", BODY)
    rig.until(lambda: len(consumer.bodies) == 2)
    assert consumer.named_sizes == [5 * len(BODY), len(BODY)]


def test_what_is_longer_than_min_large_message_size_crosses_in_segments() -> None:
    """Sent here as an ordinary message, it is a large one there, as with Artemis."""
    rig, hosts, producer, consumer = linked_pair()
    body = BODY[:1_000_000]
    producer.publish("orders", body, ANYCAST)
    producer.publish("orders", b"behind", ANYCAST)
    rig.until(lambda: len(consumer.bodies) == 2)
    assert consumer.bodies == [body, b"behind"]
    pieces = [packet for _, packet in rig.packets(*hosts) if isinstance(packet, SendContinuation)]
    assert [len(piece.body) for piece in pieces] == [PIECE] * 9 + [1_000_000 - 9 * PIECE]


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("after_ms", [3, 9, 15, 30, 60])
def test_a_crash_in_the_middle_costs_nothing(victim: int, after_ms: int) -> None:
    rig, hosts, producer, consumer = linked_pair()
    producer.publish_large("orders", BODY)
    rig.until(lambda: 1 in producer.answers)
    rig.world.run_until(rig.world.now + after_ms * SECOND // 1_000)
    hosts[victim].crash()
    rig.run(1)
    hosts[victim].start()
    rig.until(lambda: BODY in consumer.bodies, 60)
    rig.until(lambda: files(hosts) == [0, 0], 60)
    assert all(body == BODY for body in consumer.bodies)
    assert not rig.events("large_message_damaged")


def test_a_link_cut_in_the_middle_sends_it_again() -> None:
    rig, hosts, producer, consumer = linked_pair()
    rig.network.block("n0", "n1")
    producer.publish_large("orders", BODY)
    rig.until(lambda: 1 in producer.answers)
    rig.run(15)  # longer than the link's time to live
    rig.network.heal()
    rig.until(lambda: len(consumer.bodies) == 1, 60)
    rig.until(lambda: files(hosts) == [0, 0], 60)
    rig.run(5)
    assert consumer.bodies == [BODY]
