"""The parameters of an acceptor that concern STOMP clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from atalanta.kernel.option import option
from atalanta.kernel.unseen_options import FixedValue
from atalanta.wire.endpoint import ProtocolOptions
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.decoder import BODY_BYTES_MAX
from atalanta.wire.stomp.periods import periods
from atalanta.wire.uri import UriError

_ANY_LENGTH: Final = "a frame of a WebSocket is taken at any length: see stompMaxDataLength"
_IN_MEMORY: Final = "bodies from STOMP clients stay in memory"


@dataclass(eq=False, repr=False)
class StompAcceptor(ProtocolOptions):
    """The parameters of STOMP.

    `classic`: what Classic and Artemis do differently is done as in Classic (docs/guide/stomp.md has the list).
    """

    UNUSED: ClassVar[dict[str, str]] = {
        "stompMinLargeMessageSize": _IN_MEMORY,
        "stomp-min-large-message-size": _IN_MEMORY,
        "webSocketCompressionSupported": "frames of a WebSocket are not compressed, which every client understands",
    }
    FIXED: ClassVar[dict[str, FixedValue]] = {
        "webSocketEncoderType": FixedValue("binary", "clients get binary frames of a WebSocket: a browser, no text"),
    }
    LOST: ClassVar[dict[str, str]] = {
        "stompMaxFramePayloadLength": _ANY_LENGTH,
        "webSocketMaxFramePayloadLength": _ANY_LENGTH,
    }

    window_bytes: int = option(
        10_240,
        "stompConsumerWindowSize",
        "bytes that a STOMP subscription may hold without acknowledgements, -1 any, 0 one message",
        unit="bytes",
        minimum=-1,
        also=("stompConsumerCredits",),
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
    message_ids: bool = option(
        False,
        "stompEnableMessageId",
        "a message of a STOMP client has the property `amqMessageId`, which no other message has",
        also=("stomp-enable-message-id",),
    )
    classic: bool = option(
        False,
        "stompClassic",
        "STOMP clients are served as ActiveMQ Classic does; a converted activemq.xml has it",
    )
    default_heart_beat: str = option(
        "0,0", "stompDefaultHeartBeat", "`heart-beat` of a STOMP client that has not this header, ms each"
    )
    body_bytes_max: int = option(
        BODY_BYTES_MAX,
        "stompMaxDataLength",
        "largest body of a STOMP client",
        unit="bytes",
        minimum=1,
        maximum=BODY_BYTES_MAX,
    )

    def check(self) -> None:
        """Implements ProtocolOptions.check."""
        try:
            periods(self.default_heart_beat)
        except ProtocolError as error:
            raise UriError(f"stompDefaultHeartBeat: {error}") from None
