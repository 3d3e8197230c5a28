"""Message properties reserved for brokers; they are removed from a client's message."""

from __future__ import annotations

from typing import Final

from atalanta.message.message import ROUTE_TO, Message

ORIGIN: Final = "_AMQ_ROUTE_TO_ORIGIN"
# The brokers of a network of ActiveMQ Classic that a message has passed (wire/openwire/broker_path.py).
BROKER_PATH: Final = "__HDR_BROKER_PATH"

SCALEDOWN_TO: Final = "_AMQ_SCALEDOWN_TO"
ACK_ROUTE_TO: Final = "_AMQ_ACK_ROUTE_TO"
# Atalanta's own: the node whose queue ids _AMQ_SCALEDOWN_TO lists. Several nodes may use the same ids.
SCALEDOWN_NODE: Final = "_AMQ_SCALEDOWN_NODE"
# Atalanta's own: the duplicate id that the target may have recorded when a bridge of the scaled-down node sent it.
FORWARD_DUPLICATE: Final = "_AMQ_SCALEDOWN_DUP"
# Properties that only cluster nodes may set.
MEMBERS_ONLY: Final = (
    ROUTE_TO,
    ACK_ROUTE_TO,
    SCALEDOWN_TO,
    SCALEDOWN_NODE,
    FORWARD_DUPLICATE,
    ORIGIN,
)


def disclaim(message: Message) -> None:
    """Removes the reserved properties from a client's message, so that a forwarded copy cannot claim a node's route."""
    for name in MEMBERS_ONLY:
        message.remove_property(name)
