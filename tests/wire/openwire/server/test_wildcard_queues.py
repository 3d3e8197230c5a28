"""Consumers of queues with wildcards cost the node little, whoever has them: any user may open any number."""

from __future__ import annotations

from atalanta.kernel.queue.spec import ANYCAST, QueueSpec
from atalanta.wire.openwire.commands.connections import KeepAliveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.commands.identifiers import ConsumerId
from atalanta.wire.wildcard_queues import LOOKS_A_TURN, PATTERNS_MAX
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer

CONSUMERS = 30


def create(server: OpenWireServer, *names: str) -> None:
    for name in names:
        server.broker.queue_registry.create(server.now, QueueSpec(name, name, ANYCAST))
    server.settle()


def pattern(client: OpenWireClient, number: int, name: str) -> ConsumerInfo:
    return ConsumerInfo(ConsumerId(client.id, 1, number), destination=ActiveMQQueue(name), prefetch_size=1)


def left_out(server: OpenWireServer) -> list[object]:
    return [fields["queue"] for name, fields in server.trace.events if name == "wildcard_queue_left_out"]


def test_what_a_user_does_not_get_is_told_once_and_is_no_event_of_security(server: OpenWireServer) -> None:
    """Nobody has asked for those very queues; an event for each consumer and queue filled the log."""
    create(server, "q.a", "q.b")
    for rule in ("#", "q.#"):
        server.security.add_rule(rule, {"consume": ["admin"], "browse": ["admin"]})
    refused = server.broker.permissions.refused
    for number in range(2):
        guest = server.openwire_client(f"g{number}", "guest")
        for each in range(3):
            guest.succeeds(pattern(guest, each, "q.>"))
    assert left_out(server) == ["q.a", "q.b"]
    assert server.broker.permissions.refused == refused


def test_many_queues_are_looked_at_in_turns(server: OpenWireServer) -> None:
    """The input of a connection that makes the node look at many waits for the next turn; others have theirs."""
    create(server, *[f"q.{number}" for number in range(LOOKS_A_TURN // 10)])
    client = server.openwire_client()
    for number in range(CONSUMERS):
        client.send(pattern(client, number, "nothing.>"), True)
    client.send(KeepAliveInfo(), True)
    answered = [len(client.output())]
    while answered[-1] and len(answered) < CONSUMERS:
        server.beat()
        answered.append(len(client.output()))
    assert sum(answered) == CONSUMERS + 1 and 2 < len(answered) < 10


def test_a_new_queue_reaches_many_consumers_in_turns(server: OpenWireServer) -> None:
    client = server.openwire_client()
    for number in range(3 * LOOKS_A_TURN):
        client.send(pattern(client, number, "nothing.>"))
    client.succeeds(pattern(client, 3 * LOOKS_A_TURN, "q.>"))
    server.openwire_client("d").publish("1", "q.new")
    turns = 0
    while not (got := client.texts()) and turns < 10:
        turns += 1
        server.beat()
    assert got == ["1"] and turns > 2


def test_a_user_has_a_share_of_wildcards(server: OpenWireServer) -> None:
    client, other = server.openwire_client(), server.openwire_client("d")
    for number in range(PATTERNS_MAX):
        client.send(pattern(client, number, "nothing.>"))
    _, why = other.fails(pattern(other, 1, "q.>"))
    assert f"user admin has {PATTERNS_MAX:,} consumers with wildcards" in why
    guest = server.openwire_client("g", "guest")
    guest.succeeds(pattern(guest, 1, "q.>"))
    server.lost(client.conn)
    other.succeeds(pattern(other, 2, "q.>"))
    wildcards = server.openwire.node_clients.wildcard_queues
    assert wildcards.patterns == {"admin": 1, "guest": 1}
