"""A client without a window whose socket takes little: its messages wait in the queue, not in the transport."""

from __future__ import annotations

from atalanta.kernel.broker.broker import FLUSH_TIMER
from atalanta.wire.core.packets.consumer import (
    FlowToken,
    ForceConsumerDelivery,
    IndividualAcknowledge,
)
from atalanta.wire.core.packets.message import ReceiveMessage
from tests.wire.core.server.server_rig import FORCED, Client, Server


def blocked(server: Server, client: Client, is_blocked: bool) -> None:
    server.core(client.conn).on_blocked(server.now, is_blocked)


def filled(server: Server, count: int, size: int) -> Client:
    client = server.login()
    client.create_queue("orders")
    for number in range(count):
        client.publish("orders", f"{number}-" + "x" * size, wait=False)
    server.settle()
    return client


def test_a_blocked_connection_gets_nothing_until_it_takes_more(server: Server) -> None:
    sender = filled(server, 0, 0)
    slow = server.login()
    slow.consume("orders")
    sender.publish("orders", "first")
    server.settle()
    (first,) = slow.deliveries()
    blocked(server, slow, True)
    sender.publish("orders", "second")
    server.settle()
    assert slow.bodies() == []
    # What it sends is taken up all the same: this may be what lets its reader go on.
    slow.send(IndividualAcknowledge(0, first.message.id, False))
    server.settle()
    assert server.broker.queues["orders"].acknowledged == 1
    blocked(server, slow, False)
    assert slow.bodies() == ["second"]


def test_others_get_what_a_blocked_consumer_leaves(server: Server) -> None:
    sender = filled(server, 0, 0)
    slow, quick = server.login(), server.login()
    slow.consume("orders")
    quick.consume("orders")
    blocked(server, slow, True)
    for text in ("a", "b", "c"):
        sender.publish("orders", text)
    server.settle()
    assert quick.bodies() == ["a", "b", "c"]
    assert slow.bodies() == []


def test_consumers_and_sessions_that_come_while_blocked_wait_too(server: Server) -> None:
    filled(server, 1, 0)
    slow = server.login()
    blocked(server, slow, True)
    slow.open_session(11, "admin", "admin")
    slow.consume("orders", channel=11)
    assert slow.bodies(11) == []
    blocked(server, slow, False)
    assert len(slow.bodies(11)) == 1


def test_a_receive_without_wait_is_not_answered_past_what_is_held_back(server: Server) -> None:
    filled(server, 1, 0)
    slow = server.login()
    slow.consume("orders", credits=None)
    blocked(server, slow, True)
    slow.send(FlowToken(0, 1000))
    slow.send(ForceConsumerDelivery(0, 7))
    assert slow.packets(ReceiveMessage) == []
    blocked(server, slow, False)
    got = slow.packets(ReceiveMessage)
    assert len(got) == 2
    assert got[1].message.properties.get(FORCED) == 7


def test_a_turn_delivers_a_bounded_share_and_the_next_goes_on(server: Server) -> None:
    filled(server, 400, 10_000)  # 8 MB on the wire: characters are two bytes
    greedy = server.login()
    greedy.consume("orders", credits=-1)
    total = 0
    turns = 0
    while total < 400:
        assert FLUSH_TIMER in server.timers.due or turns == 0
        server.timers.due.pop(FLUSH_TIMER, None)
        server.broker.flush_timer = False
        server.turn()
        data = server.wire.written.get(greedy.conn, [])
        assert sum(map(len, data)) < 1_200_000
        total += len(greedy.framer.feed(b"".join(data)))
        server.wire.written.pop(greedy.conn, None)
        turns += 1
        assert turns < 20
    assert turns >= 7
