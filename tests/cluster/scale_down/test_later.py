"""Messages whose time runs out between a lost link to the target and the next one."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.sim.host import Host
from atalanta.wire.core.packets.message import SendMessage
from tests.cluster.cluster_rig import Rig, count, node_of
from tests.cluster.scale_down.scale_down_rig import begin, departure, held

MESSAGES = [b"%d" % number for number in range(60)]
LATER = 45.0  # seconds: behind the first search for expired messages


def expiring(host: Host) -> None:
    node_of(host).broker.settings.add("orders", {"expiry_address": "expiry"})


@pytest.mark.parametrize("crash", [True, False])
def test_what_expires_before_the_next_link_expires_once(rig: Rig, crash: bool) -> None:
    """A part of it is at both nodes then, and each searches for what has expired."""
    target, leaving = rig.cluster(2, mode="OFF")
    expiring(target)
    expiring(leaving)
    client = rig.client(leaving)
    client.create("expiry")
    far = rig.client(target)
    far.create("expiry")
    expiration = rig.world.now // 1_000_000 + 10_000
    for number, body in enumerate(MESSAGES):
        message = Message.create("orders", body, 4, True, rig.world.now // 1_000_000, 4)
        message.expiration = expiration
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        message.properties_changed()
        client.send(
            SendMessage(message, requires_response=True, correlation=number + 1, sender_id=1)
        )
    rig.until(lambda: count(leaving, "orders") == len(MESSAGES))
    departure(leaving).choice.config.commit_interval = 5
    begin(rig, leaving)
    while count(target, "orders") < 13:
        rig.run(0.0002)
    rig.network.block(leaving.name, target.name)
    if crash:
        leaving.crash()
        leaving.start()
        expiring(leaving)
    rig.run(LATER)
    rig.network.heal()
    part = departure(leaving)
    rig.until(part.over, 120)
    leaving.stop()
    rig.run(LATER)
    assert held(target, "orders") == []
    assert sorted(held(target, "expiry"), key=int) == MESSAGES
