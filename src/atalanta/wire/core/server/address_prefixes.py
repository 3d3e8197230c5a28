"""anycastPrefix and multicastPrefix of an acceptor: prefixes of addresses, by which clients choose a routing type.

As in Artemis' ServerSessionImpl, the prefix is removed from every name that a client sends. The prefix's routing type
has priority over the one in the packet. `jms.queue.` and `jms.topic.` were such prefixes in version 1.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.memory.memory import WAITING_ADDRESSES_MAX
from atalanta.kernel.queue.spec import ANYCAST, MULTICAST
from atalanta.message.properties import Byte
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.core.packets.producer import CreateProducer, RequestProducerCredits
from atalanta.wire.core.packets.query import BindingQuery, QueueQuery
from atalanta.wire.core.packets.queue import (
    CreateAddress,
    CreateQueue,
    CreateQueueV2,
    CreateSharedQueue,
    CreateSharedQueueV2,
    DeleteQueue,
)

if TYPE_CHECKING:
    from atalanta.message.message import Message
    from atalanta.wire.core.config import AcceptorConfig

ROUTING_TYPE = "_AMQ_ROUTING_TYPE"


class Prefixes:
    """The prefixes of one session. `entries` are (prefix, routing type), longest first."""

    def __init__(self, anycast: str, multicast: str) -> None:
        entries: list[tuple[str, int]] = []
        for text, routing_type in ((anycast, ANYCAST), (multicast, MULTICAST)):
            entries.extend((part.strip(), routing_type) for part in text.split(",") if part.strip())
        entries.sort(key=_longest_first)
        self.entries = entries
        # Address → the names under which the client asked for credits, and waits for them.
        self.asked: dict[str, list[str]] = {}

    def split(self, name: str) -> tuple[str, int]:
        """Returns the name without its prefix, and the prefix's routing type; -1 without a prefix."""
        for prefix, routing_type in self.entries:
            if name.startswith(prefix):
                return name[len(prefix) :], routing_type
        return name, -1

    def plain(self, name: str) -> str:
        return self.split(name)[0]

    def message(self, message: Message) -> None:
        """Removes the prefix from the address of a message that the client sends."""
        name, routing_type = self.split(message.address)
        if routing_type >= 0:
            message.address = name
            message.put_property(ROUTING_TYPE, Byte(routing_type))

    def request(self, packet: Packet) -> Packet:
        """Returns the request with names without prefixes."""
        if isinstance(packet, CreateQueue | CreateSharedQueue | CreateSharedQueueV2):
            return self._create(packet)
        if isinstance(packet, CreateAddress):
            packet.address, routing_type = self.split(packet.address)
            if routing_type >= 0:
                packet.routing_types = [routing_type]
        elif isinstance(packet, CreateConsumer | QueueQuery | DeleteQueue):
            packet.queue = self.plain(packet.queue)
        elif isinstance(packet, BindingQuery):
            packet.address = self.plain(packet.address)
        elif isinstance(packet, CreateProducer):
            if packet.address is not None:
                packet.address = self.plain(packet.address)
        elif isinstance(packet, RequestProducerCredits):
            name = self.plain(packet.address)
            self._ask(name, packet.address)
            packet.address = name
        return packet

    def _create(
        self, packet: CreateQueue | CreateSharedQueue | CreateSharedQueueV2
    ) -> CreateQueue | CreateSharedQueue | CreateSharedQueueV2:
        packet.address, routing_type = self.split(packet.address)
        packet.queue = self.plain(packet.queue)
        if routing_type < 0:
            return packet
        if isinstance(packet, CreateQueueV2 | CreateSharedQueueV2):
            packet.routing_type = routing_type
            return packet
        if isinstance(packet, CreateSharedQueue):
            return packet  # always a subscription
        return CreateQueueV2(
            address=packet.address,
            queue=packet.queue,
            filter=packet.filter,
            durable=packet.durable,
            temporary=packet.temporary,
            requires_response=packet.requires_response,
            routing_type=routing_type,
        )

    def _ask(self, name: str, asked: str) -> None:
        """Records a name. The kernel joins requests for the same name (kernel/memory/memory.py) and answers them
        once.
        """
        names = self.asked.get(name)
        if names is None:
            if len(self.asked) < WAITING_ADDRESSES_MAX:
                self.asked[name] = [asked]
        elif asked not in names and len(names) <= len(self.entries):
            names.append(asked)

    def credited(self, address: str) -> str:
        """Returns the name under which the client waits for credits for the address, in the order of the requests."""
        names = self.asked.get(address)
        if not names:
            return address
        name = names.pop(0)
        if not names:
            del self.asked[address]
        return name


def _longest_first(entry: tuple[str, int]) -> int:
    return -len(entry[0])


def prefixes_of(acceptor: AcceptorConfig | None) -> Prefixes | None:
    """Returns None if the acceptor has no prefixes."""
    if acceptor is None or not (acceptor.anycast_prefix or acceptor.multicast_prefix):
        return None
    made = Prefixes(acceptor.anycast_prefix, acceptor.multicast_prefix)
    return made if made.entries else None
