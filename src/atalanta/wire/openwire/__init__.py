"""OpenWire, the protocol of ActiveMQ Classic: its wire format, without input and output."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.wire.openwire.bodies import text_content
    from atalanta.wire.openwire.commands.brokers import BrokerInfo
    from atalanta.wire.openwire.commands.connections import (
        ConnectionControl,
        ConnectionInfo,
        KeepAliveInfo,
    )
    from atalanta.wire.openwire.commands.consumers import ConsumerInfo
    from atalanta.wire.openwire.commands.deliveries import MessageAck, MessageDispatch
    from atalanta.wire.openwire.commands.destinations import (
        ActiveMQDestination,
        ActiveMQQueue,
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
    from atalanta.wire.openwire.commands.producers import ProducerInfo, SessionInfo
    from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
    from atalanta.wire.openwire.commands.transactions import LocalTransactionId, TransactionInfo
    from atalanta.wire.openwire.conversion.message_id import id_text
    from atalanta.wire.openwire.encoding.primitives import encode_map
    from atalanta.wire.openwire.encoding.structure import Command
    from atalanta.wire.openwire.frame_decoder import FrameDecoder
    from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of
    from atalanta.wire.openwire.server.bridge.demand_bridge import DemandBridge
    from atalanta.wire.openwire.server.protocol import OpenWireProtocol
    from atalanta.wire.openwire.wire_format import WireFormat
else:
    __getattr__ = face(__name__)

__all__ = [
    "HANDSHAKE", "ActiveMQDestination", "ActiveMQQueue", "ActiveMQTextMessage", "ActiveMQTopic",
    "BrokerInfo", "Command", "ConnectionControl", "ConnectionId", "ConnectionInfo", "ConsumerId",
    "ConsumerInfo", "DemandBridge", "ExceptionResponse", "FrameDecoder", "KeepAliveInfo",
    "LocalTransactionId", "MessageAck", "MessageDispatch", "MessageId", "OpenWireProtocol",
    "ProducerId", "ProducerInfo", "Response", "SessionId", "SessionInfo", "TransactionInfo",
    "WireFormat", "WireFormatOptions", "encode_map", "id_text", "info_of", "text_content",
]
