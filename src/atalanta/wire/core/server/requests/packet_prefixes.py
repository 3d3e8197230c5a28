"""anycastPrefix and multicastPrefix in CORE packets: names of addresses and queues lose their prefix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.memory.memory import WAITING_ADDRESSES_MAX
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import CreateConsumer
from atalanta.wire.core.packets.producer import CreateProducer, RequestProducerCredits
from atalanta.wire.core.packets.query import QueueQuery
from atalanta.wire.core.packets.queue import (
    CreateAddress,
    CreateQueue,
    CreateQueueV2,
    CreateSharedQueue,
    CreateSharedQueueV2,
    DeleteQueue,
)

if TYPE_CHECKING:
    from atalanta.wire.address_prefixes import AddressPrefixes


class PacketPrefixes:
    """The prefixes of one session. `asked`: address -> the names under which the client waits for credits."""

    def __init__(self, names: AddressPrefixes) -> None:
        self.names = names
        self.asked: dict[str, list[str]] = {}

    def request(self, packet: Packet) -> Packet:
        """Returns the request with names without prefixes; a binding query keeps its own (see queries.py)."""
        if isinstance(packet, CreateQueue | CreateSharedQueue | CreateSharedQueueV2):
            return self._create(packet)
        if isinstance(packet, CreateAddress):
            packet.address, routing_type = self.names.split(packet.address)
            if routing_type >= 0:
                packet.routing_types = [routing_type]
        elif isinstance(packet, CreateConsumer | QueueQuery | DeleteQueue):
            packet.queue = self.names.plain(packet.queue)
        elif isinstance(packet, CreateProducer):
            if packet.address is not None:
                packet.address = self.names.plain(packet.address)
        elif isinstance(packet, RequestProducerCredits):
            name = self.names.plain(packet.address)
            self._ask(name, packet.address)
            packet.address = name
        return packet

    def _create(
        self, packet: CreateQueue | CreateSharedQueue | CreateSharedQueueV2
    ) -> CreateQueue | CreateSharedQueue | CreateSharedQueueV2:
        packet.address, routing_type = self.names.split(packet.address)
        packet.queue = self.names.plain(packet.queue)
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
        elif asked not in names and len(names) <= len(self.names.entries):
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
