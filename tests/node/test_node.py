"""A whole node on a virtual disk, spoken to in frames."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from atalanta.kernel.ports import Links
from atalanta.kernel.security.security import PERMISSIONS, Security
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.node.config import NodeConfig, Ports
from atalanta.node.node import TTL_TIMER, Node
from atalanta.sim.world.disk import SimDisk
from atalanta.store.config import JournalConfig
from atalanta.wire.core.config import AcceptorConfig
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import HANDSHAKE
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.producer import ProducerCredits, RequestProducerCredits
from atalanta.wire.core.packets.session import CreateSessionV2, SessionStart
from tests.kernel.broker_rig import SECOND, START, CountingIds, RecordingTimers, RecordingTrace
from tests.wire.core.server.server_rig import RecordingWire, queue_request, text_message


class Machine:
    """A node and its disk; the disk works when `work` is called, as long as there is something to do."""

    def __init__(self) -> None:
        self.now = START
        self.calls: list[Callable[[], None]] = []
        self.disk = SimDisk(lambda _, call: self.calls.append(call), random.Random(1))
        self.start()

    def start(self) -> None:
        security = Security()
        security.add_user("u", "p", ["all"])
        security.add_rule("#", {name: ["all"] for name in PERMISSIONS})
        self.wire = RecordingWire()
        self.trace = RecordingTrace()
        ports = Ports(self.wire, self.disk, RecordingTimers(), Links(), CountingIds(), self.trace)
        acceptor = AcceptorConfig("door", "0.0.0.0", 1, handshake_timeout_s=5)
        config = NodeConfig(
            "node-a", BrokerConfig(), AddressSettingsRepository(), security,
            JournalConfig(bytes(16)), [acceptor],
        )  # fmt: skip
        self.node = Node(config, ports)
        node = self.node
        self.disk.attach(
            lambda token: node.on_committed(self.now, token),
            lambda why: node.on_disk_failed(self.now, why),
        )
        self.node.recover(self.now)
        self.node.start(self.now)
        self.work()

    def work(self) -> None:
        for _ in range(1_000):
            self.node.flush(self.now)
            if not self.calls:
                return
            self.calls.pop(0)()
        raise AssertionError("the disk does not come to rest")

    def login(self, conn: int) -> None:
        self.node.on_accept(self.now, conn, "door", "somewhere")
        self.node.on_data(self.now, conn, HANDSHAKE)
        self.send(
            conn,
            CreateSessionV2(name="s", session_channel=10, version=136, user="u", password="p"),
            1,
        )
        self.received(conn)

    def send(self, conn: int, packet: Packet, channel: int = 10) -> None:
        self.node.on_data(self.now, conn, codec.encode(packet, channel, 136))

    def received(self, conn: int) -> list[Packet]:
        self.node.flush(self.now)
        data = b"".join(self.wire.written.pop(conn, []))
        return [codec.decode_frame(frame, 136) for frame in Framer(False).feed(data)]

    def confirmed(self, conn: int) -> list[int]:
        return [
            packet.correlation
            for packet in self.received(conn)
            if isinstance(packet, NullResponse) and packet.correlation != -1
        ]


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
