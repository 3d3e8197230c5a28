"""Clients of every protocol at a node: consumers, producers, open transactions and messages in transit."""

from __future__ import annotations

from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.openwire.bodies import text_content
from atalanta.wire.openwire.commands.connections import ConnectionInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import (
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
    SessionId,
)
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.transactions import (
    LocalTransactionId,
    TransactionInfo,
    XATransactionId,
)
from atalanta.wire.openwire.encoding.structure import Command
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from atalanta.wire.web_socket import TEXT
from tests.fuzz.node_rig import NodeRig
from tests.wire.core.server.server_rig import text_message
from tests.wire.stomp.stomp_rig import frame
from tests.wire.web_socket_bytes import REQUEST, sent

PLAIN = WireFormatOptions(tight=False, cache=False)
BEGIN = 0
STOMP_FRAMES = (
    frame("CONNECT", {"login": "admin", "passcode": "admin", "accept-version": "1.2", "heart-beat": "0,500"}),
    frame("SUBSCRIBE", {"id": "1", "destination": "work", "ack": "client-individual", "selector": "n > 1"}),
    frame("SUBSCRIBE", {"id": "2", "destination": "/topic/t", "ack": "auto"}),
    frame("BEGIN", {"transaction": "t"}),
    frame("SEND", {"destination": "work", "transaction": "t"}, b"text"),
    frame("SEND", {"destination": "work"}, b"text"),
)


def connect_all(rig: NodeRig) -> list[int]:
    """Connects a client of CORE, OpenWire, STOMP and STOMP in a WebSocket; returns their connections."""
    core = rig.login("admin", "admin")
    rig.consuming(core)
    rig.send(core, SendMessage(text_message("work", "text"), requires_response=False, correlation=-1, sender_id=0))
    rig.settle()
    found = [core, openwire(rig)]
    for before in (b"", REQUEST):
        conn = rig.accept()
        found.append(conn)
        rig.node.on_data(rig.now, conn, before)
        for each in STOMP_FRAMES:
            rig.node.on_data(rig.now, conn, sent(each, TEXT) if before else each)
            rig.settle()
    assert all(conn in rig.node.connections for conn in found), rig.wire.closed
    return found


def openwire(rig: NodeRig) -> int:
    """Connects a client of OpenWire."""
    conn = rig.accept()
    form = WireFormat(PLAIN)
    rig.node.on_data(rig.now, conn, WireFormat(HANDSHAKE).encode(info_of(PLAIN)))
    for number, command in enumerate(openwire_commands(), 1):
        command.command_id = number
        command.response_required = True
        rig.node.on_data(rig.now, conn, form.encode(command))
        rig.settle()
    return conn


def openwire_commands() -> list[Command]:
    connection, producer = ConnectionId("ID:y"), ProducerId("ID:y", 1, 1)
    local, xid = LocalTransactionId(1, connection), XATransactionId(7, b"g", b"b")
    work: ActiveMQDestination = ActiveMQQueue("work")
    found: list[Command] = [
        ConnectionInfo(connection, "y", "admin", "admin"),
        SessionInfo(SessionId("ID:y", 1)),
        ProducerInfo(producer, work),
        ConsumerInfo(ConsumerId("ID:y", 1, 1), False, work, 2),
        ConsumerInfo(ConsumerId("ID:y", 1, 2), False, ActiveMQTopic("t.>"), 10, selector="n > 1"),
        ConsumerInfo(ConsumerId("ID:y", 1, 3), False, ActiveMQTopic("d"), 10, subscription_name="sub"),
        ConsumerInfo(ConsumerId("ID:y", -1, 1), False, ActiveMQTopic("ActiveMQ.Advisory.>"), 1000),
        DestinationInfo(connection, ActiveMQTempQueue("ID:y:1"), 0),
        TransactionInfo(connection, local, BEGIN),
        TransactionInfo(connection, xid, BEGIN),
    ]
    for number, transaction in enumerate((None, local, xid), 1):
        found.append(
            ActiveMQTextMessage(
                producer, work, transaction, message_id=MessageId(None, producer, number), persistent=True,
                content=text_content("text"),
            )  # fmt: skip
        )
    return found
