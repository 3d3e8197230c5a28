"""A session that an operator closed (closeSessionWithID): its client gets errors, so that it does not wait in vain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.wire.core import packet_types
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.connection import NullResponse

if TYPE_CHECKING:
    from atalanta.wire.core.server.frame_connection import FrameConnection

NO_CORRELATION: Final = -1


# Packets without an answer.
ONE_WAY: Final = (
    packet_types.SESS_START,
    packet_types.SESS_FLOWTOKEN,
    packet_types.SESS_EXPIRED,
    packet_types.SESS_SEND_LARGE,
    packet_types.SESS_PRODUCER_REQUEST_CREDITS,
    packet_types.SESS_FORCE_CONSUMER_DELIVERY,
    packet_types.CREATE_PRODUCER,
    packet_types.REMOVE_PRODUCER,
)
GRANTED: Final = (packet_types.SESS_CLOSE, packet_types.SESS_STOP, packet_types.SESS_CONSUMER_CLOSE)


def answer_closed(
    connection: FrameConnection, packet_type: int, channel: int, data: bytes, start: i64, end: i64
) -> None:
    """Answers a frame on the session's channel.

    SESS_CLOSE, SESS_STOP and SESS_CONSUMER_CLOSE succeed. Other requests that want an answer are refused, and all
    other frames are dropped.
    """
    if packet_type in ONE_WAY:
        return
    version = connection.version
    packet = codec.decode_range(packet_type, data, start, end, version)
    if not getattr(packet, "requires_response", True):
        return
    correlation = getattr(packet, "correlation", NO_CORRELATION)
    if packet_type in GRANTED:
        connection.send(NullResponse(correlation), channel)
    else:
        why = "the node is stopping" if connection.reconnecting else "the session was closed by management"
        error = BrokerError(ILLEGAL_STATE, why)
        connection.send_exception(channel, error, correlation, version)
