"""The header `transformation`, by which ActiveMQ Classic makes maps and objects of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.wire.stomp.frame import Frame

TRANSFORMATION: Final = "transformation"
# Those that Classic has. It takes an unknown one, and a SEND with content-length, as if there were none.
KNOWN: Final = (
    "jms-json", "jms-xml", "jms-map-json", "jms-map-xml", "jms-object-json", "jms-object-xml", "jms-advisory-json",
    "jms-advisory-xml",
)  # fmt: skip


def check_transformation(frame: Frame) -> None:
    """Raises ProtocolError if the client asks for a transformation: its receivers rely on the type of the message."""
    wanted = frame.get(TRANSFORMATION)
    if wanted is None or wanted.lower() not in KNOWN:
        return
    if frame.command == "SUBSCRIBE":
        raise ProtocolError(
            f"SUBSCRIBE: transformation:{wanted} is not supported: without this header, maps and streams come as JSON"
        )
    if not frame.sized:
        raise ProtocolError(
            f"SEND: transformation:{wanted} is not supported: send a text, or a map from a client of JMS or CORE"
        )
