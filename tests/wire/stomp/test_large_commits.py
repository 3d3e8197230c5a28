"""Commits that go in steps, as a STOMP client sees them."""

from __future__ import annotations

from atalanta.wire.core.packets.connection import Ping
from tests.wire.stomp.stomp_rig import StompServer

COUNT = 300  # messages of 90,000 bytes: more than the work of one step


def test_others_are_answered_between_the_steps_of_a_commit(server: StompServer) -> None:
    client = server.stomp_client()
    other = server.login()
    client.receipt("BEGIN", transaction="t")
    for number in range(COUNT):
        client.send("SEND", f"{number}" + "x" * 90_000, destination="/queue/orders", transaction="t", persistent="true")
    client.frames()
    client.send("COMMIT", transaction="t", receipt="c")
    client.send("SEND", "behind", destination="/queue/orders", receipt="s", persistent="true")
    pings = 0
    while server.step():
        pings += 1
        queue = server.broker.queues.get("orders")
        assert queue is None or queue.message_count == 0
        other.send(Ping(60_000), 0)
        assert len(other.packets(Ping)) == 1
        assert not client.output()
    assert pings
    assert [answer["receipt-id"] for answer in client.frames()] == ["c", "s"]
    found = [reference.message.text() or "" for reference in server.broker.queues["orders"].live()]
    assert [text.rstrip("x") for text in found] == [*map(str, range(COUNT)), "behind"]


def test_a_repeat_that_arrives_meanwhile_refuses_all_of_it(server: StompServer) -> None:
    client = server.stomp_client()
    client.receipt("BEGIN", transaction="t")
    for number in range(COUNT):
        more = {"_AMQ_DUPL_ID": "x"} if number == 7 else {}
        client.send("SEND", "x" * 90_000, destination="/queue/orders", transaction="t", **more)
    client.frames()
    other = server.stomp_client()
    client.send("COMMIT", transaction="t", receipt="c")
    other.receipt("SEND", "other", destination="/queue/orders", _AMQ_DUPL_ID="x")
    assert [answer.command for answer in client.frames()] == ["ERROR"]
    assert server.broker.queues["orders"].message_count == 1
