"""A client that works in branches of global transactions, and what tests of branches in doubt share."""

from __future__ import annotations

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.sim.host import Host
from atalanta.sim.nodes import PASSWORD, USER
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets.message import ReceiveMessage, SendMessage
from atalanta.wire.core.packets.session import CreateSession, SessionStart
from atalanta.wire.core.packets.transaction import XaEnd, XaPrepare, XaResponse, XaStart, Xid
from tests.cluster.cluster_rig import Client, Rig, node_of

XA_CHANNEL = 20
XID = Xid(1, b"branch", b"global")


class XaClient(Client):
    """Works in one branch at a time, on a session of its own."""

    codes: list[int]
    taken: list[ReceiveMessage]
    branches = 0

    def on_ready(self) -> None:
        self.codes = []
        self.taken = []
        self.send(SessionStart())
        self.send(
            CreateSession(
                name="xa",
                session_channel=XA_CHANNEL,
                version=136,
                user=USER,
                password=PASSWORD,
                xa=True,
            ),
            1,
        )

    def on_packet(self, packet: Packet) -> None:
        if isinstance(packet, XaResponse):
            self.codes.append(packet.code)
        elif isinstance(packet, ReceiveMessage):
            self.taken.append(packet)
            self.say(IndividualAcknowledge(packet.consumer_id, packet.message.id, False))
        else:
            super().on_packet(packet)

    def say(self, packet: Packet) -> None:
        self.send(packet, XA_CHANNEL)

    def begin(self, xid: Xid) -> None:
        self.branches += 1
        self.say(XaStart(xid))

    def prepare(self, rig: Rig, xid: Xid) -> None:
        """The branch ends and is prepared; all of it, and of those before it, has worked."""
        self.say(XaEnd(xid, False))
        self.say(XaPrepare(xid))
        rig.until(lambda: self.codes == [0, 0, 0] * self.branches)

    def send_in_branch(self, address: str, body: bytes) -> None:
        message = Message.create(address, body, 4, True, 1, 4)
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        self.say(SendMessage(message, sender_id=1))

    def consume_in_branch(self, queue: str) -> None:
        self.say(SessionStart())
        self.say(CreateConsumer(consumer_id=7, queue=queue, requires_response=False))
        self.say(FlowToken(7, 1))


def xa_client(rig: Rig, host: Host, name: str = "xa") -> XaClient:
    return rig.connected(host, XaClient, name)


def end_branch(rig: Rig, host: Host, packet: Packet) -> None:
    """Another client says what becomes of a branch there."""
    client = xa_client(rig, host, "manager")
    client.say(packet)
    rig.until(lambda: client.codes == [0])


def in_doubt_at(host: Host) -> int:
    return len(node_of(host).broker.branches.list_prepared())
