"""A member forwards messages of its AMQP clients, as a real Artemis does: type 7 of CORE with the routes inside."""

from __future__ import annotations

from atalanta.cluster.links.forward_frame import forward_id, link_bytes
from atalanta.message.message import Message
from atalanta.message.properties import PropertyValue
from atalanta.sim.host import Host
from atalanta.sim.nodes import CLUSTER_PASSWORD, CLUSTER_USER
from atalanta.wire.core.packet_types import SESSION_CHANNEL
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.session import CreateSessionResponse, CreateSessionV2
from tests.cluster.cluster_rig import RawPeer, Rig, both, count, node_of, queue_of
from tests.wire.amqp.samples import VALUE, embedded, section, text

LINK = link_bytes("artemis", "node-0")
CHANNEL = 10


class Artemis(RawPeer):
    """The bridge of a real node; what it forwards has an id of the link."""

    def __init__(self, rig: Rig, host: Host) -> None:
        super().__init__(rig, "artemis")
        self.host = host

    def connect(self) -> None:
        """Logs in with a session of its own."""
        before = len(self.got(CreateSessionResponse))
        self.dial(self.host)
        session = CreateSessionV2(
            f"bridge-{before}", CHANNEL, 136, CLUSTER_USER, CLUSTER_PASSWORD, 102_400, False, True, True, -1, False,
            None, None,
        )  # fmt: skip
        self.send(session, SESSION_CHANNEL)
        self.rig.until(lambda: len(self.got(CreateSessionResponse)) > before)

    def forward(self, number: int, body: str, queue: str = "orders") -> None:
        """A text for a queue of the node."""
        routes: PropertyValue = queue_of(self.host, queue).id.to_bytes(8, "big")
        address = queue_of(self.host, queue).spec.address
        message = embedded(
            section(VALUE, text(body)), address, _AMQ_ROUTE_TO=routes, _AMQ_BRIDGE_DUP=forward_id(LINK, number)
        )  # fmt: skip
        self.pass_on(message)

    def pass_on(self, message: Message) -> None:
        """Sends it, and waits for the answer."""
        before = len(self.got(NullResponse))
        self.send(SendMessage(message, True, 1, 0), CHANNEL)
        self.rig.until(lambda: len(self.got(NullResponse)) > before)


def texts(host: Host, queue: str = "orders") -> list[str | None]:
    """The texts in a queue, in order."""
    return [each.message.text() for each in node_of(host).broker.queues[queue].live()]


def test_a_forwarded_message_is_not_routed_once_more(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="STRICT", queues=both())
    peer = Artemis(rig, first)
    peer.connect()
    for number in range(6):
        peer.forward(number, str(number))
    peer.forward(6, "price", "archive")
    rig.run(2)
    assert texts(first) == [str(number) for number in range(6)] and count(second, "orders") == 0
    assert texts(first, "archive") == ["price"] and count(second, "archive") == 0


def test_what_is_sent_again_after_a_crash_is_there_once(rig: Rig) -> None:
    first, _ = rig.cluster(2, queues=both())
    peer = Artemis(rig, first)
    peer.connect()
    for number in range(3):
        peer.forward(number, str(number))
    first.crash()
    rig.run(1)
    first.start()
    rig.run(1)
    peer.connect()
    for number in range(1, 5):
        peer.forward(number, str(number))
    assert texts(first) == ["0", "1", "2", "3", "4"]


def test_it_goes_on_to_another_member_as_what_a_core_client_reads(rig: Rig) -> None:
    first, second = rig.cluster(2, queues=both(), delay_ms=0)
    peer = Artemis(rig, first)
    peer.connect()
    peer.forward(1, "on the way")
    assert texts(first) == ["on the way"]
    consumer = rig.consuming(second)
    rig.until(lambda: consumer.messages)
    rig.run(2)
    (got,) = [packet.message for packet in consumer.messages]
    assert got.text() == "on the way"
    assert got.properties.get("JMS_AMQP_ORIGINAL_ENCODING") == 5
    assert count(first, "orders") == 0


def test_what_cannot_be_read_does_not_end_the_link(rig: Rig) -> None:
    first, _ = rig.cluster(2, queues=both())
    peer = Artemis(rig, first)
    peer.connect()
    broken = embedded(b"\x99", _AMQ_ROUTE_TO=queue_of(first, "orders").id.to_bytes(8, "big"))
    peer.pass_on(broken)
    peer.forward(1, "next")
    assert count(first, "orders") == 2 and not peer.closed
    assert len(rig.events("embedded_message_unreadable")) == 1
