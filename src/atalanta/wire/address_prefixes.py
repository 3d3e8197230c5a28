"""anycastPrefix and multicastPrefix of an acceptor: prefixes of addresses, by which clients choose a routing type.

As in Artemis' ServerSessionImpl, the prefix is removed from every name that a client sends. The prefix's routing type
has priority over the one that the client asks for. `jms.queue.` and `jms.topic.` were such prefixes in version 1.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.properties import Byte

if TYPE_CHECKING:
    from atalanta.message.message import Message
    from atalanta.wire.endpoint import AcceptorConfig

ROUTING_TYPE = "_AMQ_ROUTING_TYPE"


class AddressPrefixes:
    """The prefixes of one acceptor. `entries` are (prefix, routing type), longest first."""

    def __init__(self, anycast: str, multicast: str) -> None:
        entries: list[tuple[str, int]] = []
        for text, routing_type in ((anycast, ANYCAST), (multicast, MULTICAST)):
            entries.extend((part.strip(), routing_type) for part in text.split(",") if part.strip())
        entries.sort(key=_longest_first)
        self.entries = entries

    def split(self, name: str) -> tuple[str, int]:
        """Returns the name without its prefix, and the prefix's routing type; -1 without a prefix."""
        for prefix, routing_type in self.entries:
            if name.startswith(prefix):
                return name[len(prefix) :], routing_type
        return name, -1

    def plain(self, name: str) -> str:
        return self.split(name)[0]

    def apply(self, message: Message) -> None:
        """Removes the prefix from the address of a message that the client sends."""
        name, routing_type = self.split(message.address)
        if routing_type >= 0:
            message.address = name
            message.put_property(ROUTING_TYPE, Byte(routing_type))


def _longest_first(entry: tuple[str, int]) -> int:
    return -len(entry[0])


def prefixes_of(acceptor: AcceptorConfig | None) -> AddressPrefixes | None:
    """Returns None if the acceptor has no prefixes."""
    if acceptor is None or not (acceptor.anycast_prefix or acceptor.multicast_prefix):
        return None
    made = AddressPrefixes(acceptor.anycast_prefix, acceptor.multicast_prefix)
    return made if made.entries else None
