"""The id under which core bridges know a message that has moved: `_AMQ_ROUTE_TO_ORIGIN`.

A message that leaves a queue with a core bridge, for another node or under a new id, may have been sent by that bridge
without an answer. It takes with it where it had its first id, node (16 bytes) and message (8). The bridge of a queue of
that name, wherever it comes to, sends it under the same duplicate id (cluster/core_bridges/forwarding.py), and the
target drops the repeat. Beyond Artemis, whose bridges know no such thing.

Only members say it to each other: what a client says is taken away (kernel/publish/scale_down_target.py), and no client
is shown it. A real
Artemis forgets it as it forgets every name that begins with `_AMQ_ROUTE_TO`
(Message.clearInternalProperties).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.internal_headers import ORIGIN

if TYPE_CHECKING:
    from atalanta.kernel.journal.named_values import NamedValues
    from atalanta.message.message import Message

ORIGIN_BYTES: Final = 24
KEY: Final = "origins"  # in the journal's values


class Origins:
    """`bridged`: names of queues that have, or in this life of the node had, a core bridge.

    `seen`: messages of this node may have the header; kept over restarts. Where it is False nobody looks for it.
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
        """To a copy of the message of that queue; what has come from elsewhere keeps what it has."""
        if queue_name not in self.bridged or (origin_of(copy) is not None):
            return False
        copy.properties.put(ORIGIN, self.node_bytes + message_id.to_bytes(8, "big", signed=True))
        copy.properties_changed()
        return True

    def note(self) -> None:
        """A message with the header is about to be stored here."""
        if not self.seen:
            self.seen = True
            self.values.set(KEY, b"")


def origin_of(message: Message) -> bytes | None:
    if not message.special:
        return None
    value = message.property_value(ORIGIN)
    return value if isinstance(value, bytes) and len(value) == ORIGIN_BYTES else None


def shown(message: Message) -> Message:
    """As a client gets it."""
    if not message.special or not message.has_property(ORIGIN):
        return message
    twin = message.copy(message.id)
    twin.remove_property(ORIGIN)
    return twin
