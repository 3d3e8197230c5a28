"""The id under which core bridges know a message that has moved: `_AMQ_ROUTE_TO_ORIGIN`.

A core bridge may have sent a message without an answer before the message leaves the bridge's queue, for another node
or under a new id. The header then holds the message's first id: node (16 bytes) and message (8). The bridge of a queue
of that name, on any node, sends the message under the same duplicate id (cluster/core_bridges/message_copies.py), and
the target drops the repeat. Artemis' bridges have no such header.

Only cluster members send the header to each other. A client's header is removed (kernel/publish/scale_down_target.py),
and no client is shown it. A real Artemis removes the header with all names that begin with `_AMQ_ROUTE_TO`
(Message.clearInternalProperties).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.internal_headers import ORIGIN

if TYPE_CHECKING:
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.message.message import Message

ORIGIN_BYTES: Final = 24
KEY: Final = "origins"  # name in the journal's values


class Origins:
    """State of the header on this node.

    `bridged`: names of queues that have a core bridge, or had one in this life of the node. `seen`: messages of this
    node may have the header; kept over restarts. While `seen` is False, no message is searched for the header.
    """

    def __init__(self, values: NamedValues) -> None:
        self.values = values
        self.node_bytes: bytes = b""
        self.bridged: dict[str, bool] = {}
        self.seen: bool = False

    def restore(self) -> None:
        self.seen = self.values.has(KEY)

    def bridge(self, queue_name: str, node_bytes: bytes) -> None:
        self.node_bytes = node_bytes
        self.bridged[queue_name] = True

    def attach(self, copy: Message, message_id: int, queue_name: str) -> bool:
        """Adds the header to a copy of the queue's message; a header from another node stays as it is."""
        if queue_name not in self.bridged or (origin_of(copy) is not None):
            return False
        copy.properties.put(ORIGIN, self.node_bytes + message_id.to_bytes(8, "big", signed=True))
        copy.properties_changed()
        return True

    def note(self) -> None:
        """Records that a message with the header is about to be stored here."""
        if not self.seen:
            self.seen = True
            self.values.set(KEY, b"")


def origin_of(message: Message) -> bytes | None:
    if not message.special:
        return None
    value = message.property_value(ORIGIN)
    return value if isinstance(value, bytes) and len(value) == ORIGIN_BYTES else None


def shown(message: Message) -> Message:
    """Returns the message as a client gets it: without the header."""
    if not message.special or not message.has_property(ORIGIN):
        return message
    twin = message.copy(message.id)
    twin.remove_property(ORIGIN)
    return twin
