"""A node leaves under readers of the log: they finish what they were shown, and what they were not moves."""

from __future__ import annotations

from typing import Final

from atalanta.cluster.scale_down.phase import DONE, READING
from atalanta.cluster.scale_down.scale_down import ScaleDown
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.logview import (
    LogAckThrough,
    LogAckThroughResponse,
    LogLease,
    LogLeaseResponse,
    LogPlan,
    LogPlanResponse,
    LogPosition,
    LogPositionResponse,
    LogRetain,
)
from tests.cluster.cluster_rig import Client, Rig, count, node_of
from tests.cluster.scale_down.scale_down_rig import begin, held

GROUP: Final = "spark"
QUEUE: Final = "orders"


class Stream(Client):
    """As a Spark stream: a position, and at the next trigger the acknowledgement of it."""

    epoch = 0
    position = 0
    planned = -1
    acknowledged = 0

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, LogLeaseResponse):
            self.epoch = packet.epoch
        elif isinstance(packet, LogPositionResponse):
            self.position = packet.position.last
        elif isinstance(packet, LogPlanResponse):
            self.planned = packet.end
        elif isinstance(packet, LogAckThroughResponse):
            self.acknowledged += 1
        else:
            super().on_packet(packet)

    def acknowledge(self, end: int) -> None:
        self.send(
            LogAckThrough(
                correlation=4, queue=QUEUE, incarnation="", group=GROUP, epoch=self.epoch, end=end
            )
        )


def stream_at(rig: Rig, host: Host, queue: str = QUEUE) -> Stream:
    rig.clients += 1
    stream = rig.connected(host, Stream, f"stream{rig.clients}")
    stream.send(LogLease(correlation=1, queue=queue, group=GROUP, owner="driver", ttl_ms=3_600_000))
    rig.until(lambda: stream.epoch)
    return stream


def publish(rig: Rig, host: Host, first: int, last: int) -> None:
    client = rig.client(host)
    before = count(host, QUEUE)
    for number in range(first, last):
        client.publish(QUEUE, b"%d" % number, ANYCAST)
    rig.until(lambda: count(host, QUEUE) == before + last - first)


def shown_four(rig: Rig, host: Host) -> Stream:
    """A stream that was shown four messages, and has acknowledged none."""
    stream = stream_at(rig, host)
    publish(rig, host, 0, 4)
    stream.send(LogPosition(2, QUEUE))
    rig.until(lambda: stream.position == 4)
    return stream


def reading(rig: Rig, host: Host) -> ScaleDown:
    """The departure of a node, when it waits for its streams."""
    part = begin(rig, host)
    rig.until(lambda: part.phase == READING)
    return part


def test_a_leaving_node_waits_for_a_stream_and_moves_what_it_was_not_shown(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    stream = shown_four(rig, first)
    part = reading(rig, first)
    publish(rig, first, 4, 7)
    stream.send(LogPosition(2, QUEUE))
    stream.send(LogPlan(correlation=3, queue=QUEUE, incarnation="", start=0, max_messages=1_000))
    rig.until(lambda: stream.planned >= 0)
    assert (stream.position, stream.planned) == (4, 4), "it is shown nothing new"
    rig.run(20)
    assert part.phase == READING, "a trigger of 20 s is waited for"
    stream.acknowledge(4)
    rig.until(part.over)
    assert (part.phase, part.moved, part.left()) == (DONE, 3, 0)
    first.stop()
    assert held(second, QUEUE) == [b"4", b"5", b"6"]


def test_a_stream_that_begins_meanwhile_is_shown_nothing(rig: Rig) -> None:
    """The reader could not acknowledge in time: the messages would have to stay."""
    first, second = rig.cluster(2, mode="OFF")
    stream = shown_four(rig, first)
    client = rig.client(first)
    client.create("more", "more", ANYCAST)
    rig.run(0.5)
    client.publish("more", b"1", ANYCAST)
    rig.until(lambda: count(first, "more") == 1)
    part = reading(rig, first)
    late = stream_at(rig, first, "more")
    late.send(LogPosition(2, "more"))
    rig.run(1)
    stream.acknowledge(4)
    rig.until(part.over)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(second, "more") == [b"1"]


def test_a_position_that_never_was_keeps_nothing_back(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    stream = stream_at(rig, first)
    publish(rig, first, 0, 4)
    stream.send(
        LogPlan(correlation=3, queue=QUEUE, incarnation="", start=1 << 40, max_messages=1_000)
    )
    rig.until(lambda: stream.planned == 1 << 40)
    part = begin(rig, first)
    rig.until(part.over)
    assert (part.phase, part.left()) == (DONE, 0)
    assert len(held(second, QUEUE)) == 4


def test_a_plan_with_limits_ends_where_nothing_more_is_shown(rig: Rig) -> None:
    """Else the stream could never acknowledge up to there: here the last sequence shown has gone."""
    (host,) = rig.cluster(1)
    publish(rig, host, 0, 6)
    broker = node_of(host).broker
    queue = broker.queues[QUEUE]
    broker.store.drop_from_queue(queue.references[3])
    queue.log.show_until = 4
    assert broker.log_views.plan(QUEUE, "", 0, 100, -1)[:2] == (4, 3)
    assert broker.log_views.plan(QUEUE, "", 0, 2, -1)[:2] == (2, 2)
    assert broker.log_views.plan(QUEUE, "", 4, 100, -1)[:2] == (4, 0)


def test_a_target_that_goes_away_meanwhile_is_replaced_by_another_one(rig: Rig) -> None:
    hosts = rig.cluster(3, mode="OFF")
    stream = shown_four(rig, hosts[0])
    part = reading(rig, hosts[0])
    assert part.target is not None
    gone = next(host for host in hosts[1:] if node_of(host).broker.node_id == part.target.node_id)
    other = next(host for host in hosts[1:] if host is not gone)
    gone.crash()
    rig.until(
        lambda: (
            part.phase == READING
            and part.link is not None
            and part.target is not None
            and part.target.node_id == node_of(other).broker.node_id
        ),
        60,
    )
    publish(rig, hosts[0], 4, 6)
    stream.acknowledge(4)
    rig.until(part.over)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(other, QUEUE) == [b"4", b"5"]


def test_a_node_that_stays_after_all_shows_everything_again(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    stream = shown_four(rig, first)
    part = reading(rig, first)
    publish(rig, first, 4, 6)
    second.crash()
    rig.until(part.over, 60)
    assert part.phase == "failed"
    stream.send(LogPosition(2, QUEUE))
    rig.until(lambda: stream.position == 6)


def test_a_leaving_node_says_once_which_retained_messages_it_does_not_move() -> None:
    rig = Rig()
    first, second = rig.cluster(2, mode="OFF")
    stream = shown_four(rig, first)
    stream.send(LogRetain(5, QUEUE, "", GROUP, stream.epoch, age_ms=3_600_000))
    stream.acknowledge(4)
    rig.until(lambda: stream.acknowledged)
    publish(rig, first, 4, 6)
    part = begin(rig, first)
    rig.until(part.over)
    assert (part.phase, held(second, QUEUE)) == (DONE, [b"4", b"5"])
    assert len(rig.events("scale_down_retained")) == 1
    assert rig.events("scale_down_retained queue=orders groups=spark messages=4")
