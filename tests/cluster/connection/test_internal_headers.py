"""Headers that brokers tell each other say nothing in the mouth of an ordinary client."""

from __future__ import annotations

from atalanta.cluster.links.forward_frame import forward_id, link_bytes
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.settings.broker_config import QueueConfig
from atalanta.sim.nodes import queue
from tests.cluster.cluster_rig import Client, Rig, both, count, node_of, queue_of
from tests.cluster.scale_down.scale_down_rig import held


def queues() -> list[QueueConfig]:
    return [*both(), queue("secret", "secret", ANYCAST)]


def away(mode: str = "STRICT") -> tuple[Rig, Client]:
    """A client at n0; every other message for `orders` goes to n1."""
    rig = Rig()
    hosts = rig.cluster(2, mode=mode, queues=queues())
    return rig, rig.client(hosts[0])


def sent(rig: Rig, client: Client, count_of: int, **headers: object) -> None:
    for number in range(count_of):
        client.publish("orders", b"%d" % number, ANYCAST, **headers)
    rig.until(lambda: len(client.answers) == client.number)
    rig.run(1)


def test_no_client_chooses_the_queue_at_another_node() -> None:
    rig, client = away()
    first, second = rig.hosts
    # n1 takes them for ids of queues that n0 has.
    secret = queue_of(first, "secret").id.to_bytes(8, "big")
    node = node_of(first).broker.node_id
    sent(rig, client, 4, _AMQ_SCALEDOWN_TO=secret, _AMQ_SCALEDOWN_NODE=node)
    assert count(first, "secret") == 0
    assert held(first, "orders") + held(second, "orders") == [b"0", b"2", b"1", b"3"]


def test_no_client_sends_messages_for_nobody() -> None:
    rig, client = away()
    first, second = rig.hosts
    orders = queue_of(second, "orders").id.to_bytes(8, "big")
    sent(rig, client, 4, _AMQ_ACK_ROUTE_TO=orders)
    assert count(first, "orders") + count(second, "orders") == 4


def test_no_client_says_under_which_id_another_node_knows_a_message() -> None:
    """Such as one that sends on what it got, with all headers."""
    rig, client = away()
    first, second = rig.hosts
    known = forward_id(link_bytes("node-0", "node-1"), 7)
    sent(rig, client, 6, _AMQ_SCALEDOWN_DUP=known)
    assert count(first, "orders") + count(second, "orders") == 6
