"""Store-and-forward queues larger than memory go to page files, and come out of them in order, once."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker import invariants
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from tests.cluster.cluster_rig import Rig, node_of, queue_of, waiting

LIMIT = 300_000
MESSAGES = 400  # more than a link holds in memory (1 MiB) and the node may


def body(number: int) -> bytes:
    return b"%03d" % number + bytes(6_000)


def forward_of(host: Host, owner: str) -> str:
    return f"$.artemis.internal.sf.test.{owner}"


@pytest.mark.parametrize("crash", [False, True], ids=["cut", "cut and crash"])
def test_what_waits_for_a_member_pages_and_arrives_once_in_order(rig: Rig, crash: bool) -> None:
    near = rig.node(memory_bytes=LIMIT)
    far = rig.node()
    rig.form(near, far)
    taker = rig.consuming(far, known_at=near)
    sender = rig.client(near)
    rig.network.block("n0", "n1")
    for number in range(MESSAGES):
        sender.publish("orders", body(number), ANYCAST)
        if number % 20 == 19:
            rig.run(0.02)
    rig.until(lambda: waiting(near, "node-1") == MESSAGES, 8)
    queue = queue_of(near, forward_of(near, "node-1"))
    assert queue.paged is not None and queue.message_count == MESSAGES
    assert node_of(near).broker.memory.used_bytes < LIMIT + (2 << 20)
    invariants.validate(node_of(near).broker)
    if crash:
        near.crash()
        near.start()
        assert waiting(near, "node-1") == MESSAGES
    rig.network.heal()
    rig.until(lambda: len(taker.bodies) >= MESSAGES, 60)
    rig.run(2)
    assert taker.bodies == [body(number) for number in range(MESSAGES)]
    rig.until(lambda: waiting(near, "node-1") == 0)
    assert queue_of(near, forward_of(near, "node-1")).paged is None
