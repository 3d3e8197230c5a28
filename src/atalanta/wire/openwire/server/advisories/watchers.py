"""The consumers of advisories. Advisories are sent to them at once and stored nowhere (AdvisoryBroker of Classic)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.kernel.routing.wildcard_addresses import AddressPattern
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQDestination, ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import ConsumerId, MessageId, ProducerId
from atalanta.wire.openwire.commands.messages import ActiveMQMessage
from atalanta.wire.openwire.conversion.destination import CLASSIC_WILDCARDS, parts_of
from atalanta.wire.openwire.encoding.primitives import encode_map

if TYPE_CHECKING:
    from atalanta.wire.openwire.encoding.structure import DataStructure
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput


class Watcher:
    """A consumer of advisory topics, whose names may have wildcards. `no_local`: not about its own connection."""

    def __init__(
        self,
        connection: OpenWireOutput,
        consumer_id: ConsumerId,
        destination: ActiveMQDestination,
        no_local: bool = False,
    ) -> None:
        self.connection = connection
        self.consumer_id = consumer_id
        self.patterns = [AddressPattern(part.physical_name or "", CLASSIC_WILDCARDS) for part in parts_of(destination)]
        self.no_local = no_local

    def watches(self, topic: str) -> bool:
        """Returns True if the consumer gets the advisories of that topic."""
        for pattern in self.patterns:
            if pattern.matches(topic):
                return True
        return False


@mypyc_attr(allow_interpreted_subclasses=True)
class AdvisorySource:
    """The subject of advisories."""

    def replay(self, watcher: Watcher) -> None:
        """Tells a new watcher what is there already."""
        raise NotImplementedError


class Watchers:
    """The watchers of a node. Clients choose their ids, so the key of one has the number of the connection as well."""

    def __init__(self, node_id: str, broker_name: str) -> None:
        self.node_id = node_id
        self.broker_name = broker_name
        self.by_id: dict[tuple[int, ConsumerId], Watcher] = {}
        self.sources: list[AdvisorySource] = []
        self.number: int = 0

    def use(self, sources: list[AdvisorySource]) -> None:
        """Registers what new watchers are told of."""
        self.sources = sources

    def add(self, watcher: Watcher) -> None:
        """Adds a watcher, and sends it what is there already."""
        self.by_id[watcher.connection.conn, watcher.consumer_id] = watcher
        for source in self.sources:
            source.replay(watcher)

    def remove(self, conn: int, consumer_id: ConsumerId) -> None:
        self.by_id.pop((conn, consumer_id), None)

    def has_watcher(self, topic: str) -> bool:
        """Returns True if anybody watches the topic."""
        return any(watcher.watches(topic) for watcher in self.by_id.values())

    def leave_out(self, command: str, error: Exception) -> None:
        """Reports what none of the watchers can be told."""
        for watcher in self.by_id.values():
            watcher.connection.leave_out(command, error)
            return

    def publish(self, conn: int, topic: str, data: DataStructure, properties: dict[str, object]) -> None:
        """Tells all watchers of a topic what the connection has done."""
        for watcher in list(self.by_id.values()):
            if watcher.watches(topic) and not (watcher.no_local and watcher.connection.conn == conn):
                self._send(watcher, topic, data, properties, False)

    def replay(
        self, watcher: Watcher, conn: int, topic: str, data: DataStructure, properties: dict[str, object]
    ) -> None:
        """Tells one watcher what is no news for others."""
        if watcher.watches(topic) and not (watcher.no_local and watcher.connection.conn == conn):
            self._send(watcher, topic, data, properties, True)

    def _send(
        self, watcher: Watcher, topic: str, data: DataStructure, properties: dict[str, object], targeted: bool
    ) -> None:
        shown = f"advisory with {data.__class__.__name__}"
        try:
            dispatch = self._advisory(watcher, topic, data, properties, targeted)
        except Exception as error:  # nothing was changed, whatever it is
            watcher.connection.leave_out(shown, error)
            return
        watcher.connection.send_advisory(dispatch, shown)

    def _advisory(
        self, watcher: Watcher, topic: str, data: DataStructure, properties: dict[str, object], targeted: bool
    ) -> MessageDispatch:
        self.number += 1
        producer_id = ProducerId(f"ID:{self.node_id}", 0, -1)
        shown = {
            "originBrokerId": self.node_id,
            "originBrokerName": self.broker_name,
            "originBrokerURL": f"tcp://{watcher.connection.client.local}",
            **properties,
        }
        message = ActiveMQMessage(
            producer_id=producer_id,
            message_id=MessageId(None, producer_id, self.number, 0),
            destination=ActiveMQTopic(topic),
            jms_type="Advisory",
            data_structure=data,
            target_consumer_id=watcher.consumer_id if targeted else None,
            marshalled_properties=encode_map("properties", shown),
        )
        return MessageDispatch(watcher.consumer_id, message.destination, message, 0)
