"""Redistribution by delay, selector and kind of message: in order, there and back, and not longer than it is wanted."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.codec import text_body
from atalanta.message.message import TEXT, Message
from atalanta.message.properties import Byte
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.transaction import XaRollback
from tests.cluster.cluster_rig import Client, Rig, count, node_of, remote_consumers, waiting
from tests.cluster.links.large_client import client as large_client
from tests.cluster.scale_down.xa_rig import XID, end_branch, xa_client
from tests.cluster.shapes import numbers


def stocked(rig: Rig, number: int, delay_ms: int, nodes: int = 2, body: bytes = b"") -> list[Host]:
    hosts = rig.cluster(nodes, delay_ms=delay_ms)
    rig.stored(hosts[0], "orders", [body or b"%d" % each for each in range(number)], ANYCAST)
    assert count(hosts[0], "orders") == number
    return hosts


def comes(rig: Rig, host: Host, selector: str | None = None) -> Client:
    return rig.consuming(host, "orders", selector)


@pytest.mark.parametrize(("delay_ms", "soon", "late"), [(-1, 0, 0), (0, 5, 5), (2_000, 0, 5)])
def test_the_delay(rig: Rig, delay_ms: int, soon: int, late: int) -> None:
    hosts = stocked(rig, 5, delay_ms)
    consumer = comes(rig, hosts[1])
    rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 1)
    rig.run(1)
    assert len(consumer.bodies) == soon
    rig.run(2)
    assert len(consumer.bodies) == late
    assert count(hosts[0], "orders") == 5 - late


def test_the_delay_counts_from_when_the_last_local_consumer_leaves(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=2_000, mode="OFF_WITH_REDISTRIBUTION")
    here, there = comes(rig, hosts[0]), comes(rig, hosts[1])
    rig.run(1)
    here.close()
    rig.run(0.2)
    producer = rig.client(hosts[0])
    producer.publish("orders", b"x", ANYCAST)
    rig.run(1.5)
    assert there.bodies == []
    rig.run(1)
    assert there.bodies == [b"x"]


def test_a_local_consumer_that_comes_back_within_the_delay_goes_on_alone(rig: Rig) -> None:
    """A client that reconnects at once: nothing is moved behind its back."""
    hosts = rig.cluster(2, delay_ms=3_000, mode="OFF_WITH_REDISTRIBUTION")
    here, there = comes(rig, hosts[0]), comes(rig, hosts[1])
    rig.run(1)
    for turn in range(3):
        here.close()
        rig.run(1)
        producer = rig.client(hosts[0])
        producer.publish("orders", b"%d" % turn, ANYCAST)
        rig.run(1)
        here.consume("orders")
        rig.run(2)
    assert here.bodies == numbers(range(3)) and there.bodies == []


def test_a_local_consumer_of_other_messages_does_not_cancel_it(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=1_000)
    producer = rig.client(hosts[0])
    for number in range(6):
        colour = "red" if number % 2 else "blue"
        producer.publish("orders", b"%d" % number, ANYCAST, colour=colour)
    rig.until(lambda: len(producer.answers) == 6)
    there = comes(rig, hosts[1], "colour = 'red'")
    rig.run(0.5)
    here = comes(rig, hosts[0], "colour = 'blue'")
    rig.until(lambda: len(there.bodies) == 3)
    assert there.bodies == [b"1", b"3", b"5"]
    assert here.bodies == [b"0", b"2", b"4"]


def test_by_selector_each_goes_to_the_node_that_wants_it(rig: Rig) -> None:
    hosts = rig.cluster(3, delay_ms=0)
    producer = rig.client(hosts[0])
    for number in range(9):
        producer.publish("orders", b"%d" % number, ANYCAST, third=number % 3)
    rig.until(lambda: len(producer.answers) == 9)
    first, second = comes(rig, hosts[1], "third = 0"), comes(rig, hosts[2], "third = 1")
    rig.until(lambda: len(first.bodies) == 3 and len(second.bodies) == 3)
    assert (first.bodies, second.bodies) == ([b"0", b"3", b"6"], [b"1", b"4", b"7"])
    rig.run(2)
    assert count(hosts[0], "orders") == 3, "nobody asks for these"


def send_text(producer: Client, body: bytes) -> None:
    message = Message.create("orders", body, TEXT)
    message.put_property("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
    producer.number += 1
    producer.send(
        SendMessage(message, requires_response=True, correlation=producer.number, sender_id=1)
    )


def test_by_xpath_each_document_goes_to_the_node_that_wants_it(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=0)
    producer = rig.client(hosts[0])
    bodies = [text_body(f"<car><doors>{number % 3}</doors></car>") for number in range(9)]
    for body in bodies:
        send_text(producer, body)
    rig.until(lambda: len(producer.answers) == 9)
    there = comes(rig, hosts[1], "XPATH '//doors = 2'")
    here = comes(rig, hosts[0], "XPATH '//doors = 1'")
    rig.until(lambda: len(there.bodies) == 3 and len(here.bodies) == 3)
    assert (there.bodies, here.bodies) == (bodies[2::3], bodies[1::3])
    send_text(producer, bodies[2])
    rig.until(lambda: len(there.bodies) == 4)
    assert count(hosts[0], "orders") == 3, "nobody asks for these"


def test_large_messages_go_too_and_leave_no_file(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=0)
    producer = large_client(rig, hosts[0])
    bodies = [bytes([each]) * 300_000 for each in range(3)]
    for body in bodies:
        producer.publish_large("orders", body)
    rig.until(lambda: count(hosts[0], "orders") == 3)
    consumer = large_client(rig, hosts[1], "orders")
    rig.until(lambda: len(consumer.bodies) == 3)
    assert consumer.bodies == bodies
    rig.until(lambda: not hosts[0].large.contents and not hosts[1].large.contents)


def test_order_is_kept_over_many_messages(rig: Rig) -> None:
    hosts = stocked(rig, 1_500, 0)
    consumer = comes(rig, hosts[1])
    rig.until(lambda: len(consumer.bodies) == 1_500)
    assert consumer.bodies == numbers(range(1_500))


def test_there_and_back_again_in_order_and_none_twice(rig: Rig) -> None:
    hosts = stocked(rig, 20, 0)
    for turn in range(1, 5):
        client = rig.client(hosts[turn % 2])
        client.send(CreateConsumer(consumer_id=0, queue="orders"))  # it has no credit
        rig.until(
            lambda turn=turn: (
                count(hosts[turn % 2], "orders") == 20  # type: ignore[misc]
                and waiting(hosts[(turn + 1) % 2], f"node-{turn % 2}") == 0
            )
        )
        client.kill()
        rig.run(1)
    consumer = comes(rig, hosts[1])
    rig.until(lambda: len(consumer.bodies) == 20)
    rig.run(1)
    assert consumer.bodies == numbers(range(20))


def test_it_stops_when_the_last_remote_consumer_leaves(rig: Rig) -> None:
    """Before the delay is over; and in the middle, when there is more than one turn moves."""
    hosts = stocked(rig, 5, 2_000)
    consumer = comes(rig, hosts[1])
    rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 1)
    consumer.close()
    rig.run(5)
    assert consumer.bodies == [] and count(hosts[0], "orders") == 5


def test_what_comes_after_the_last_remote_consumer_left_stays(rig: Rig) -> None:
    hosts = stocked(rig, 5, 0)
    consumer = comes(rig, hosts[1])
    rig.until(lambda: len(consumer.bodies) == 5)
    consumer.close()
    rig.until(lambda: remote_consumers(hosts[0], hosts[1], "orders") == 0)
    producer = rig.client(hosts[0])
    producer.publish("orders", b"later", ANYCAST)
    rig.run(3)
    assert count(hosts[0], "orders") == 1 and waiting(hosts[0], "node-1") == 0


def test_a_crash_of_the_taker_loses_nothing(rig: Rig) -> None:
    hosts = stocked(rig, 600, 0, body=b"x" * 500)
    consumer = comes(rig, hosts[1])
    rig.until(lambda: len(consumer.bodies) > 50)
    hosts[1].crash()
    consumer.kill()
    rig.run(2)
    hosts[1].start()
    rig.formed()
    again = comes(rig, hosts[1])
    rig.until(lambda: count(hosts[0], "orders") + waiting(hosts[0], "node-1") == 0, 60)
    rig.until(lambda: count(hosts[1], "orders") == 0, 60)
    assert len(again.bodies) + len(consumer.bodies) >= 600


def test_topics_and_internal_queues_are_left_alone(rig: Rig) -> None:
    """A subscription's messages are its own; one of another name elsewhere gets none of them."""
    first = rig.node(queues=[queue("mine", "prices", MULTICAST)], delay_ms=0)
    second = rig.node(queues=[queue("yours", "prices", MULTICAST)], delay_ms=0)
    rig.form(first, second)
    rig.sender(first, "prices", [b"%d" % number for number in range(3)], MULTICAST)
    consumer = rig.consuming(second, "yours")
    rig.until(lambda: len(consumer.bodies) == 3)
    rig.run(2)
    assert consumer.bodies == numbers(range(3)) and count(first, "mine") == 3
    assert node_of(first).broker.queues["mine"].message_count == 3


def test_a_temporary_queue_is_nobody_elses(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=0)
    owner = rig.client(hosts[0])
    owner.create("reply", durable=False, temporary=True)
    other = rig.client(hosts[1])
    other.create("reply", durable=False, temporary=True)
    rig.run(0.5)
    owner.publish("reply", b"x", ANYCAST)
    rig.run(0.5)
    other.consume("reply")
    rig.run(2)
    assert count(hosts[0], "reply") == 1 and other.bodies == []


def test_groups_stay_together_and_in_place(rig: Rig) -> None:
    hosts = rig.cluster(2, delay_ms=0)
    producer = rig.client(hosts[0])
    for number in range(8):
        group = {"_AMQ_GROUP_ID": "g"} if number % 2 else {}
        producer.publish("orders", b"%d" % number, ANYCAST, **group)
    rig.until(lambda: len(producer.answers) == 8)
    there = comes(rig, hosts[1])
    rig.until(lambda: there.bodies == [b"0", b"2", b"4", b"6"])
    here = comes(rig, hosts[0])
    rig.until(lambda: here.bodies == [b"1", b"3", b"5", b"7"])


def test_what_a_rolled_back_branch_gives_back_long_after_its_consumer_left_goes_elsewhere(rig: Rig) -> None:
    hosts = stocked(rig, 1, 0)
    worker = xa_client(rig, hosts[0])
    worker.begin(XID)
    worker.consume_in_branch("orders")
    rig.until(lambda: len(worker.taken) == 1)
    worker.prepare(rig, XID)
    worker.kill()
    elsewhere = comes(rig, hosts[1])
    rig.run(1)
    assert elsewhere.bodies == []
    end_branch(rig, hosts[0], XaRollback(XID))
    rig.until(lambda: elsewhere.bodies == [b"0"])
