"""Messages for a member that is away expire here if they were surely not sent, else only at the member: once in all."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.sim.host import Host
from atalanta.wire.core.packets.message import SendMessage
from tests.cluster.cluster_rig import Rig, cluster_of, node_of, waiting
from tests.cluster.store_and_forward.parked_rig import Parked, numbers

TTL_MS = 5_000


class Expiring(Parked):
    """All messages but the warming one live five seconds; then they go to the queue `late`, which each node has."""

    def __init__(self, **options: int) -> None:
        super().__init__(**options)
        for host in self.hosts:
            late(host)

    def publish(self, body: bytes, **properties: object) -> None:
        now_ms = self.rig.world.now // 1_000_000
        self.producer.number += 1
        message = Message.create("orders", body, 4, True, now_ms, 4)
        message.expiration = 0 if body == b"warm" else now_ms + TTL_MS
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        message.properties_changed()
        sent = SendMessage(message, requires_response=True, correlation=self.producer.number, sender_id=1)
        self.producer.send(sent)

    def let_expire(self) -> None:
        self.rig.run(TTL_MS / 1_000 + 1)
        search(self.rig, self.hosts)


def late(host: Host) -> None:
    node = node_of(host)
    node.broker.settings.add("orders", {"expiry_address": "late"})
    if "late" not in node.broker.queues:
        node.broker.queue_registry.create(node.broker.now, QueueSpec("late", "late", ANYCAST))
    host.flush_later()


def search(rig: Rig, hosts: list[Host]) -> None:
    """Every node that is up searches for what has expired."""
    for host in hosts:
        if host.up:
            expiry = node_of(host).broker.expiry
            while expiry.scan(rig.world.now):
                pass
            host.flush_later()
    rig.run(0.5)


def expired(hosts: list[Host]) -> list[bytes]:
    """The bodies in `late`, at all nodes that are up."""
    found: list[bytes] = []
    for host in hosts:
        if host.up:
            found += [bytes(each.message.body) for each in node_of(host).broker.queues["late"].live()]
    return sorted(found)


def test_what_was_surely_not_sent_expires_while_the_member_is_away() -> None:
    play = Expiring()
    play.crash_far()
    play.let_expire()
    assert expired(play.hosts) == numbers(0, 5)
    assert waiting(play.hosts[0], "node-1") == 0
    play.hosts[1].start()
    late(play.hosts[1])
    play.rig.run(5)
    search(play.rig, play.hosts)
    assert expired(play.hosts) == numbers(0, 5)


@pytest.mark.parametrize("restart", [False, True])
def test_what_the_member_may_have_does_not(restart: bool) -> None:
    """It had it, and a consumer took it, before its answer was lost: expired here, it would be there twice."""
    play = Expiring(sent=3, unsent=2)
    play.crash_far()
    if restart:
        play.rig.run(1)
        play.hosts[0].crash()
        play.hosts[0].start()
        late(play.hosts[0])
    play.let_expire()
    assert expired(play.hosts) == numbers(3, 5)
    assert waiting(play.hosts[0], "node-1") == 3
    play.hosts[1].start()
    late(play.hosts[1])
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 0)
    play.rig.run(1)
    search(play.rig, play.hosts)
    assert expired(play.hosts) == numbers(3, 5)
    assert sorted(play.far.bodies[1:]) == numbers(0, 3)


def test_what_never_reached_the_member_expires_there() -> None:
    """It was sent, but not received: it is sent once more, although its time is over."""
    play = Expiring(unsent=0)
    rig, hosts = play.rig, play.hosts
    rig.network.heal()
    play.publish(b"warm")
    rig.until(lambda: play.far.bodies and waiting(hosts[0], "node-1") == 0)
    rig.network.block("n0", "n1")
    for body in numbers(0, 3):
        play.publish(body)
    rig.until(lambda: waiting(hosts[0], "node-1") == 3)
    play.crash_far()
    play.let_expire()
    assert expired(hosts) == [] and waiting(hosts[0], "node-1") == 3
    hosts[1].start()
    late(hosts[1])
    rig.until(lambda: waiting(hosts[0], "node-1") == 0)
    rig.consuming(hosts[1])
    search(rig, hosts)
    assert expired(hosts) == numbers(0, 3)
    assert play.far.bodies == [b"warm"]


def test_a_member_that_is_given_up_holds_up_no_expiry() -> None:
    play = Expiring(sent=3, unsent=2)
    play.crash_far()
    play.let_expire()
    assert expired(play.hosts) == numbers(3, 5)
    cluster_of(play.hosts[0]).parked.give_up(play.rig.world.now, "node-1")
    search(play.rig, play.hosts)
    assert expired(play.hosts) == numbers(0, 5)
    assert waiting(play.hosts[0], "node-1") == 0
