"""The parameters of an acceptor that concern STOMP clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from atalanta.kernel.option import option
from atalanta.wire.endpoint import ProtocolOptions

_WEB_SOCKET: Final = "frames of a WebSocket are taken at any length, and sent as binary without compression"
_IN_MEMORY: Final = "bodies from STOMP clients stay in memory"
_MESSAGE_ID: Final = "the header message-id has the number of the message"


@dataclass(eq=False, repr=False)
class StompAcceptor(ProtocolOptions):
    """The parameters of STOMP."""

    UNUSED: ClassVar[dict[str, str]] = {
        "stompMaxFramePayloadLength": _WEB_SOCKET,
        "stompConsumerCredits": "old form of stompConsumerWindowSize",
        "stompMinLargeMessageSize": _IN_MEMORY,
        "stomp-min-large-message-size": _IN_MEMORY,
        "stompEnableMessageId": _MESSAGE_ID,
        "stomp-enable-message-id": _MESSAGE_ID,
        "webSocketMaxFramePayloadLength": _WEB_SOCKET,
        "webSocketEncoderType": _WEB_SOCKET,
        "webSocketCompressionSupported": _WEB_SOCKET,
    }

    window_bytes: int = option(
        10_240,
        "stompConsumerWindowSize",
        "bytes that a STOMP subscription may hold without acknowledgements, -1 any, 0 one message",
        unit="bytes",
        minimum=-1,
    )
    ttl_modifier: float = option(
        2.0,
        "heartBeatToConnectionTtlModifier",
        "a STOMP client may be silent for this many of its heart-beats",
        minimum=1,
        maximum=1_000_000,
    )
    server_header_off: bool = option(
        False, "disableStompServerHeader", "CONNECTED has no header `server`"
    )
