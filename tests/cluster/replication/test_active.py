"""An active node and followers that a test scripts: who must have a record before a client is told."""

from __future__ import annotations

from atalanta.wire.core.packets.message import SendMessage
from tests.cluster.replication.group_rig import Group, Member, Scripted
from tests.wire.core.server.server_rig import queue_request, text_message


def publish(active: Member, conn: int, text: str, correlation: int, queue: str = "orders") -> None:
    message = text_message(queue, text)
    active.send(conn, SendMessage(message, requires_response=True, correlation=correlation, sender_id=0))


def client(group: Group, queue: str = "orders") -> int:
    """A client of the active node, whose queue exists."""
    conn = group.active.login()
    group.active.send(conn, queue_request(queue))
    group.run(100)
    group.active.received(conn)
    return conn


def joined(group: Group, name: str = "b") -> Scripted:
    """A follower that is in sync."""
    follower = Scripted(group.active, name)
    group.until(lambda: name in group.in_sync())
    group.run(10)
    return follower


def test_a_node_alone_confirms_by_itself() -> None:
    group = Group()
    conn = client(group)
    publish(group.active, conn, "a", -7)
    group.run(50)
    assert group.active.confirmed(conn) == [-7]


def test_a_confirmation_waits_for_the_follower_that_is_in_sync() -> None:
    group = Group()
    conn = client(group)
    follower = joined(group)
    publish(group.active, conn, "a", -7)
    group.run(50)
    assert group.active.confirmed(conn) == [-7]
    follower.answers = False
    publish(group.active, conn, "b", -8)
    group.run(500)
    assert group.active.confirmed(conn) == []
    follower.durable = follower.last
    follower.answer()
    assert group.active.confirmed(conn) == [-8]
