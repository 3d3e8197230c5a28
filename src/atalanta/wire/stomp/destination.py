"""Names of destinations: prefixes that choose a routing type, temporary queues, and JMS' form of a reply destination.

The prefixes are anycastPrefix and multicastPrefix of the acceptor. If it has neither, they are `/queue/` and `/topic/`,
as in ActiveMQ, unless an address of the whole name exists. `/temp-queue/NAME` is a queue that ends with the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.fqqn import join_fqqn, split_fqqn
from atalanta.wire.address_prefixes import AddressPrefixes
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.virtual_topics import VirtualTopics

USUAL_PREFIXES: Final = AddressPrefixes("/queue/", "/topic/")
TEMPORARY_PREFIX: Final = "/temp-queue/"
TEMPORARY_TOPIC_PREFIX: Final = "/temp-topic/"  # as in Classic
EMPTY_IN_CLASSIC: Final = "Invalid empty or 'null' Destination header"  # in Classic's words
PARTS_MAX: Final = 100  # of a composite destination
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

    `routing_type` -1: not chosen. `temporary`: it ends with this connection. `virtual`: the queue of a consumer of a
    virtual topic of Classic, whose text is the queue's part of the FQQN; `selector_aware`: it takes only what its
    consumers select.
    """

    def __init__(
        self,
        text: str,
        name: str,
        routing_type: int,
        temporary: bool,
        virtual: bool = False,
        selector_aware: bool = False,
    ) -> None:
        self.text = text
        self.name = name
        self.routing_type = routing_type
        self.temporary = temporary
        self.virtual = virtual
        self.selector_aware = selector_aware

    def shown(self, address: str) -> str:
        """Returns the name of an address as the subscriber of this destination writes it."""
        if self.temporary or self.virtual:
            return self.text
        return self.text[: len(self.text) - len(self.name)] + address

    def matched(self, queue: str) -> Destination:
        """Returns the destination of a queue that the wildcards of this one mean."""
        return Destination(self.shown(queue), queue, ANYCAST, False)


class Destinations:
    """The names that one connection uses. `temporary`: what is behind its `/temp-queue/` names, and its routing type.

    `topics`: of Classic, None without it. With them a name without prefix is a queue, each comma separates
    destinations, and there is `/temp-topic/`.
    """

    def __init__(
        self, prefixes: AddressPrefixes | None, addresses: dict[str, Address], topics: VirtualTopics | None = None
    ) -> None:
        self.usual = prefixes is None
        self.topics = topics
        self.classic: bool = topics is not None
        self.prefixes: AddressPrefixes = USUAL_PREFIXES if prefixes is None else prefixes
        self.addresses = addresses
        self.temporary: dict[str, tuple[str, int]] = {}

    def parts_of(self, text: str) -> list[str]:
        """Returns the names of a composite destination, or the name itself. ProtocolError.

        Without `classic` commas may be in names: each part needs a prefix then. An address of the whole name comes
        first. A part that is named twice counts once, as in Classic.
        """
        if "," not in text or text in self.addresses or self.prefixes.plain(text) in self.addresses:
            return [text]
        parts = list(dict.fromkeys(part.strip() for part in text.split(",")))
        if not self.classic and not all([self._has_prefix(part) for part in parts]):
            return [text]
        if "" in parts:
            raise ProtocolError(f"the destination {text[:100]!r} has an empty part")
        if len(parts) > PARTS_MAX:
            raise ProtocolError(f"a composite destination has at most {PARTS_MAX} parts")
        return parts

    def _has_prefix(self, text: str) -> bool:
        return text.startswith(TEMPORARY_PREFIX) or self.prefixes.split(text)[1] >= 0

    def find(self, text: str, kind: str | None) -> Destination:
        """Returns the destination. `kind`: the header destination-type or subscription-type. ProtocolError."""
        if not text:
            raise ProtocolError(EMPTY_IN_CLASSIC if self.classic else "the header destination is empty")
        if text in self.temporary:
            name, routing_type = self.temporary[text]
            return Destination(text, name, routing_type, True)
        name, routing_type = self.prefixes.split(text)
        if name.endswith("::"):
            raise ProtocolError(f"the destination {text[:100]!r} has no queue: a full name is ADDRESS::QUEUE")
        if self.usual and routing_type >= 0 and text in self.addresses:
            name, routing_type = text, -1
        if kind is not None and routing_type < 0:
            if kind not in ROUTING_TYPES:
                raise ProtocolError(f"the type of a destination is ANYCAST or MULTICAST, not {kind[:40]!r}")
            routing_type = ROUTING_TYPES[kind]
        if self.classic and routing_type < 0 and text not in self.addresses:
            routing_type = ANYCAST
        if self.topics is not None and routing_type == ANYCAST:
            topic = self.topics.topic_of(name)
            if topic is not None:
                return Destination(text, join_fqqn(topic.name, name), MULTICAST, False, True, topic.selector_aware)
        return Destination(text, name, routing_type, False)

    def wanted_temporary(self, text: str) -> int:
        """Returns the routing type of a `/temp-queue/` or `/temp-topic/` name that has nothing behind it yet, else -1.
        """
        if text in self.temporary or text in self.addresses:
            return -1
        if text.startswith(TEMPORARY_PREFIX):
            return ANYCAST
        return MULTICAST if self.classic and text.startswith(TEMPORARY_TOPIC_PREFIX) else -1

    def add_temporary(self, text: str, name: str, routing_type: int) -> None:
        """Records what is behind a temporary name. BrokerError if there are too many."""
        if len(self.temporary) >= TEMPORARY_QUEUES_MAX:
            raise BrokerError(ILLEGAL_STATE, f"a connection has at most {TEMPORARY_QUEUES_MAX} temporary queues")
        self.temporary[text] = (name, routing_type)

    def jms_name(self, text: str) -> str:
        """Returns a reply destination as JMS clients read it; without a known routing type the plain name."""
        if self.classic and text not in self.temporary and not self._has_prefix(text):
            return text  # in Classic it is no destination, but a text for who reads it
        found = self.find(text, None)
        if found.temporary:
            return f"temp-{'queue' if found.routing_type == ANYCAST else 'topic'}://{found.name}"
        if found.virtual:
            return f"queue://{split_fqqn(found.name)[1]}"
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
                return self.name_as(text[len(start) :], routing_type)
        return text

    def name_as(self, address: str, routing_type: int) -> str:
        """Returns the name of an address of that routing type, as this client writes it."""
        for prefix, of_prefix in self.prefixes.entries:
            if of_prefix == routing_type:
                return prefix + address
        return address
