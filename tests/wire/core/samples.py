"""One packet of every type that the codec knows, with a value in every field."""

from __future__ import annotations

from atalanta.message.log_position import Position
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.wire.core.lost_range import LostRange
from atalanta.wire.core.packet_types import NAMES
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import (
    BOOL,
    INT8,
    INT8S,
    INT32,
    INT64,
    LOST_RANGES,
    NULLABLE_BOOL,
    NULLABLE_INT32,
    NULLABLE_INT64,
    NULLABLE_SIMPLE_STRING,
    NULLABLE_STRING,
    NULLABLE_TRANSPORT,
    POSITION,
    REST,
    SIMPLE_STRING,
    SIMPLE_STRINGS,
    STRING,
    XID,
    XIDS,
    Packet,
)
from atalanta.wire.core.packets.log_chunk import (
    ChunkWriter,
    ColumnChunk,
    ColumnChunkWriter,
    LogReadColumnsResponse,
)
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    ReceiveMessage,
    SendContinuation,
    SendLargeMessage,
    SendMessage,
)
from atalanta.wire.core.packets.topology import (
    ClusterTopology,
    ClusterTopologyV2,
    ClusterTopologyV3,
    ClusterTopologyV4,
)
from atalanta.wire.core.packets.transaction import Xid
from atalanta.wire.core.transport import TransportConfiguration


def sample_message(body: bytes = b"a body") -> Message:
    message = Message.create("orders", body, 4, True, 1_700_000_000_000, 7)
    message.id = 4711
    message.user_id = bytes(range(16))
    message.put_property("_AMQ_ROUTING_TYPE", Byte(1))
    message.put_property("carrier", "UA")
    return message


def sample_transport() -> TransportConfiguration:
    transport = TransportConfiguration.tcp("netty-connector", "127.0.0.1", 61616)
    transport.put("tcpNoDelay", True)
    transport.put("batchDelay", 12)
    transport.put("big", 1 << 40)
    return transport


def sample_values() -> dict[int, object]:
    """A value for each encoding."""
    xid = Xid(5, b"branch", b"global")
    return {
        BOOL: True,
        INT8: -3,
        INT32: 70_000,
        INT64: -(1 << 40),
        SIMPLE_STRING: "a queue",
        NULLABLE_SIMPLE_STRING: "a > 3",
        STRING: "some longer text, ä",
        NULLABLE_STRING: "short",
        NULLABLE_BOOL: True,
        NULLABLE_INT32: 17,
        NULLABLE_INT64: 1 << 50,
        NULLABLE_TRANSPORT: sample_transport(),
        XID: xid,
        SIMPLE_STRINGS: ["a", "bb"],
        INT8S: [0, 1],
        XIDS: [xid, Xid(6, b"", b"g")],
        LOST_RANGES: [LostRange(3, 9, "expired")],
        REST: b"rest",
        POSITION: Position("node", "incarnation", 1, 9, 9, 900, 0, 1_700_000_000_000, 1_700_000_000_001),
    }


def table_packets() -> list[Packet]:
    """One of every packet that a layout describes."""
    values = sample_values()
    made: list[Packet] = []
    for code in NAMES:
        layout = codec.layout_of(code)
        if layout is None:
            continue
        arguments = [values[field.encoding] for field in layout.fields]
        made.append(layout.made(*arguments))
    return made


def other_packets() -> list[Packet]:
    """One of every packet that is written by hand."""
    columns = ColumnChunkWriter()
    columns.add(41, 0, sample_message(), True)
    columns.add(42, 2, sample_message(b""), True)
    by_columns = b"".join(columns.parts())
    chunk = ChunkWriter()
    chunk.add(41, 0, sample_message())
    chunk.add(42, 2, sample_message(b""))
    transport = sample_transport()
    return [
        SendMessage(sample_message(), requires_response=True, correlation=-5, sender_id=3),
        SendLargeMessage(sample_message(b"")),
        SendContinuation(
            b"piece", continues=True, requires_response=True, correlation=-6, sender_id=3
        ),
        SendContinuation(
            b"last",
            continues=False,
            body_size=1000,
            requires_response=True,
            correlation=-7,
            sender_id=3,
        ),
        ReceiveMessage(sample_message(), 2, 1),
        ReceiveLargeMessage(
            sample_message(b""), consumer_id=2, delivery_count=1, body_size=250_000
        ),
        ReceiveContinuation(b"piece", True, 2),
        ClusterTopology(exit=False, node_id="node", primary=transport, last=True),
        ClusterTopologyV2(exit=True, node_id="node", event_id=12),
        ClusterTopologyV3(
            exit=False,
            node_id="node",
            event_id=12,
            backup=transport,
            backup_group="group",
            scale_down_group="scale",
        ),
        ClusterTopologyV4(
            exit=False,
            node_id="node",
            event_id=12,
            primary=transport,
            backup=transport,
            last=True,
            backup_group="group",
            server_version=136,
        ),
        chunk.response(9, 42, True),
        LogReadColumnsResponse(9, 42, True, ColumnChunk(by_columns, 0, len(by_columns), columns.count)),
    ]


def all_packets() -> list[Packet]:
    return table_packets() + other_packets()
