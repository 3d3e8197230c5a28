"""A whole node on a virtual disk, spoken to in frames."""

from __future__ import annotations

import pytest

from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets.connection import Ping
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.producer import ProducerCredits, RequestProducerCredits
from atalanta.wire.core.packets.session import SessionStart
from atalanta.wire.core.packets.topology import SubscribeTopologyV2
from atalanta.wire.open_connections import TTL_TIMER
from atalanta.wire.server import WITHOUT_LOGIN_MAX
from tests.kernel.broker_rig import SECOND
from tests.node.machine_rig import Machine
from tests.wire.core.server.server_rig import queue_request, text_message


def test_what_was_confirmed_is_there_after_a_crash() -> None:
    machine = Machine()
    machine.login(1)
    machine.send(1, queue_request("orders"))
    machine.send(
        1,
        SendMessage(
            text_message("orders", "a"), requires_response=True, correlation=-7, sender_id=0
        ),
    )
    assert machine.confirmed(1) == []
    machine.work()
    assert machine.confirmed(1) == [-7]
    machine.send(
        1,
        SendMessage(
            text_message("orders", "b"), requires_response=True, correlation=-8, sender_id=0
        ),
    )
    machine.disk.crash()
    machine.calls.clear()
    machine.start()
    texts = [reference.message.text() for reference in machine.node.broker.queues["orders"].live()]
    assert texts == ["a"]
    machine.node.validate()


def test_answers_can_leave_before_anything_is_delivered() -> None:
    """A sender that waits sends its next message while this one is handed out."""
    machine = Machine()
    machine.login(1)
    machine.login(2)
    machine.send(1, queue_request("orders"))
    machine.work()
    machine.send(2, CreateConsumer(consumer_id=1, queue="orders"))
    machine.send(2, SessionStart())
    machine.send(2, FlowToken(1, 1 << 20))
    machine.received(1)
    machine.received(2)
    machine.send(
        1,
        SendMessage(
            text_message("orders", "a"), requires_response=True, correlation=-7, sender_id=0
        ),
    )
    machine.node.flush(machine.now)
    machine.node.flush_answers(machine.now)
    assert machine.wire.written == {}, "it is not on disk yet"
    machine.calls.pop(0)()
    machine.node.flush_answers(machine.now)
    assert list(machine.wire.written) == [1]
    assert machine.confirmed(1) == [-7]
    assert len(machine.received(2)) == 1


def test_a_node_whose_disk_failed_confirms_nothing_more_and_takes_nothing_in() -> None:
    machine = Machine()
    machine.login(1)
    machine.send(1, queue_request("orders"))
    machine.work()
    machine.received(1)
    machine.disk.fail_next_sync()
    machine.send(
        1,
        SendMessage(
            text_message("orders", "a"), requires_response=True, correlation=-7, sender_id=0
        ),
    )
    machine.work()
    assert machine.node.failed is not None
    # Until the shell has ended the node, more may come in the same turn.
    machine.send(
        1,
        SendMessage(
            text_message("orders", "b"), requires_response=True, correlation=-8, sender_id=0
        ),
    )
    machine.login(2)
    machine.node.on_timer(machine.now, TTL_TIMER)
    machine.node.on_timer(machine.now, "kernel.expiry")
    machine.node.on_closed(machine.now, 1, "reset by peer")
    machine.node.flush(machine.now)
    assert machine.confirmed(1) == []
    assert machine.received(2) == []


def test_a_client_with_the_usual_producer_window_gets_a_larger_one() -> None:
    machine = Machine()
    machine.login(1)
    for asked in (32_768, 32_768 + 491_520, 32_768 + 491_520):
        machine.send(1, RequestProducerCredits(asked, "orders"))
    machine.send(1, RequestProducerCredits(32_000, "elsewhere"))
    answers = [packet for packet in machine.received(1) if isinstance(packet, ProducerCredits)]
    assert [packet.credits for packet in answers] == [524_288, 524_288, 524_288, 32_000]


def test_the_acceptor_a_client_came_by_decides_how_long_it_may_take_to_log_in() -> None:
    machine = Machine()
    machine.node.on_accept(machine.now, 1, "door", "somewhere")
    machine.now += 6 * SECOND
    machine.node.on_timer(machine.now, TTL_TIMER)
    assert 1 in machine.wire.closed


def test_connections_that_stay_without_login_are_few_for_each_host() -> None:
    machine = Machine()
    hosts = ["10.0.0.1"] * 150 + ["10.0.0.2"] * 3
    for conn, host in enumerate(hosts, 1):
        machine.node.on_accept(machine.now, conn, "door", f"{host}:{conn}")
        machine.node.on_data(machine.now, conn, HANDSHAKE)
        machine.send(conn, SubscribeTopologyV2(False, 136), 0)
        machine.send(conn, Ping(-1), 0)
    machine.login(1_000)
    machine.node.on_timer(machine.now, TTL_TIMER)
    assert machine.wire.closed == {}, "each has its time for a login"
    machine.now += 6 * SECOND
    machine.node.on_timer(machine.now, TTL_TIMER)
    assert sorted(machine.wire.closed) == list(range(WITHOUT_LOGIN_MAX + 1, 151))


@pytest.mark.parametrize(
    ("usage", "free", "found", "left"),
    [(90, -1, (0.91, 10), (0.89, 10)), (90, 1_000, (0.1, 999), (0.99, 1_000))],
)
def test_a_full_disk_withholds_credits_until_there_is_room(
    usage: int, free: int, found: tuple[float, int], left: tuple[float, int]
) -> None:
    machine = Machine()
    machine.node.config.broker.max_disk_usage = usage
    machine.node.config.broker.min_disk_free_bytes = free
    machine.login(1)
    machine.node.on_disk_usage(machine.now, *found)
    machine.send(1, RequestProducerCredits(500, "orders"))
    assert machine.received(1) == []
    machine.node.on_disk_usage(machine.now, *left)
    answers = machine.received(1)
    assert [packet.credits for packet in answers if isinstance(packet, ProducerCredits)] == [500]
    told = [name for name, _ in machine.trace.events if name.startswith("disk_")]
    assert told == ["disk_full", "disk_has_room"]


def test_stomp_and_core_share_a_port_and_a_disk() -> None:
    machine = Machine()
    machine.login(1)
    machine.send(1, queue_request("orders"))
    machine.work()
    node, now = machine.node, machine.now
    node.on_accept(now, 2, "door", "somewhere")
    node.on_data(now, 2, b"CONNECT\naccept-version:1.2\nlogin:u\npasscode:p\nheart-beat:0,500\n\n\0")
    node.on_data(now, 2, b"SEND\ndestination:orders\npersistent:true\nreceipt:1\n\n\x61\0")
    node.flush(now)
    assert b"RECEIPT" not in b"".join(machine.wire.written.pop(2))
    machine.work()
    assert machine.wire.written.pop(2) == [b"RECEIPT\nreceipt-id:1\n\n\0\n"]
    assert node.broker.queues["orders"].message_count == 1
    machine.now += SECOND
    node.on_timer(machine.now, "wire.stomp")
    assert machine.wire.written.pop(2) == [b"\n"]
    node.stop(machine.now)
    assert machine.wire.written.pop(2)[0].startswith(b"ERROR\nmessage:the node stops\n")
    assert machine.wire.closed[2] == "the node stops"
