"""Headers that only brokers send to each other; those of a client are removed."""

from __future__ import annotations

from typing import Final

from atalanta.message.message import ROUTE_TO, Message

ORIGIN: Final = "_AMQ_ROUTE_TO_ORIGIN"


SCALEDOWN_TO: Final = "_AMQ_SCALEDOWN_TO"
ACK_ROUTE_TO: Final = "_AMQ_ACK_ROUTE_TO"
# Ours: whose ids those of _AMQ_SCALEDOWN_TO are. Several nodes may use the same numbers.
SCALEDOWN_NODE: Final = "_AMQ_SCALEDOWN_NODE"
# Ours: the id under which that node may have it already, from a bridge of the node that left.
FORWARD_DUPLICATE: Final = "_AMQ_SCALEDOWN_DUP"
# What only nodes may say to each other.
MEMBERS_ONLY: Final = (
    ROUTE_TO,
    ACK_ROUTE_TO,
    SCALEDOWN_TO,
    SCALEDOWN_NODE,
    FORWARD_DUPLICATE,
    ORIGIN,
)


def disclaim(message: Message) -> None:
    """A client's message: it leaves its routes to us, and what we forward of it must not speak for us."""
    for name in MEMBERS_ONLY:
        message.remove_property(name)
