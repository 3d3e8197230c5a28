"""Names of destinations: prefixes that choose a routing type, temporary queues, and JMS' form of a reply destination.

The prefixes are anycastPrefix and multicastPrefix of the acceptor. If it has neither, they are `/queue/` and `/topic/`,
as in ActiveMQ, unless an address of the whole name exists. `/temp-queue/NAME` is a queue that ends with the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.wire.address_prefixes import AddressPrefixes
from atalanta.wire.connection import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.routing.address import Address

USUAL_PREFIXES: Final = AddressPrefixes("/queue/", "/topic/")
TEMPORARY_PREFIX: Final = "/temp-queue/"
TEMPORARY_QUEUES_MAX: Final = 1_000  # of one connection
ROUTING_TYPES: Final = {"ANYCAST": ANYCAST, "MULTICAST": MULTICAST}
ROUTING_NAMES: Final = {ANYCAST: "ANYCAST", MULTICAST: "MULTICAST"}
# ActiveMQDestination: how JMS clients write a destination as text.
JMS_PREFIXES: Final = (
    ("temp-queue://", ANYCAST),
    ("temp-topic://", MULTICAST),
    ("queue://", ANYCAST),
    ("topic://", MULTICAST),
)


class Destination:
    """A destination: `name` is an address or FQQN, `text` what the client wrote, with a prefix before the name.

    `routing_type` -1: not chosen. `temporary`: a queue of this connection.
    """

    def __init__(self, text: str, name: str, routing_type: int, temporary: bool) -> None:
        self.text = text
        self.name = name
        self.routing_type = routing_type
        self.temporary = temporary

    def shown(self, address: str) -> str:
        """Returns the name of an address as the subscriber of this destination writes it."""
        if self.temporary:
            return self.text
        return self.text[: len(self.text) - len(self.name)] + address


class Destinations:
    """The names that one connection uses. `temporary`: the queues behind its `/temp-queue/` names."""

    def __init__(self, prefixes: AddressPrefixes | None, addresses: dict[str, Address]) -> None:
        self.usual = prefixes is None
        self.prefixes: AddressPrefixes = USUAL_PREFIXES if prefixes is None else prefixes
        self.addresses = addresses
        self.temporary: dict[str, str] = {}

    def find(self, text: str, kind: str | None) -> Destination:
        """Returns the destination. `kind`: the header destination-type or subscription-type. ProtocolError."""
        if not text:
            raise ProtocolError("the header destination is empty")
        if text.startswith(TEMPORARY_PREFIX) and text in self.temporary:
            return Destination(text, self.temporary[text], ANYCAST, True)
        name, routing_type = self.prefixes.split(text)
        if self.usual and routing_type >= 0 and text in self.addresses:
            name, routing_type = text, -1
        if kind is not None and routing_type < 0:
            if kind not in ROUTING_TYPES:
                raise ProtocolError(f"the type of a destination is ANYCAST or MULTICAST, not {kind[:40]!r}")
            routing_type = ROUTING_TYPES[kind]
        return Destination(text, name, routing_type, False)

    def wants_temporary(self, text: str) -> bool:
        """Returns True for a `/temp-queue/` name that has no queue yet."""
        return text.startswith(TEMPORARY_PREFIX) and text not in self.temporary and text not in self.addresses

    def add_temporary(self, text: str, queue_name: str) -> None:
        """Records the queue behind a `/temp-queue/` name. BrokerError if there are too many."""
        if len(self.temporary) >= TEMPORARY_QUEUES_MAX:
            raise BrokerError(ILLEGAL_STATE, f"a connection has at most {TEMPORARY_QUEUES_MAX} temporary queues")
        self.temporary[text] = queue_name

    def jms_name(self, text: str) -> str:
        """Returns a reply destination as JMS clients read it; without a known routing type the plain name."""
        found = self.find(text, None)
        if found.temporary:
            return f"temp-queue://{found.name}"
        routing_type = found.routing_type
        address = self.addresses.get(found.name)
        if routing_type < 0 and address is not None and address.anycast != address.multicast:
            routing_type = ANYCAST if address.anycast else MULTICAST
        if routing_type < 0:
            return found.name
        return f"{'queue' if routing_type == ANYCAST else 'topic'}://{found.name}"

    def own_name(self, text: str) -> str:
        """Returns a reply destination of a JMS client as this client names it."""
        for start, routing_type in JMS_PREFIXES:
            if text.startswith(start):
                for prefix, of_prefix in self.prefixes.entries:
                    if of_prefix == routing_type:
                        return prefix + text[len(start) :]
                return text[len(start) :]
        return text
