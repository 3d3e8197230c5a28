"""The CORE protocol of Artemis: codec, sessions and configuration."""

from typing import TYPE_CHECKING

from atalanta.face import face

if TYPE_CHECKING:
    from atalanta.wire.core.frames import Frame, Framer, write_frame_header
    from atalanta.wire.core.packet_types import (
        HANDSHAKE,
        NOT_COUNTED,
        PING_CHANNEL,
        SESSION_CHANNEL,
    )
    from atalanta.wire.core.transport import TransportConfiguration
else:
    __getattr__ = face(__name__)

__all__ = [
    "HANDSHAKE", "NOT_COUNTED", "PING_CHANNEL", "SESSION_CHANNEL", "Frame", "Framer",
    "TransportConfiguration", "write_frame_header",
]
