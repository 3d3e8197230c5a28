"""Advisories: messages of the broker about temporary destinations and consumers (AdvisoryBroker of ActiveMQ Classic).

They are sent to the consumers of `ActiveMQ.Advisory.…` topics at once and stored nowhere. A client refuses to send to a
temporary destination of which it has not heard. So all watchers hear of one before its creator has the answer, and a
new watcher hears of all before the answer to its own request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.properties import Int
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQDestination, ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import (
    ConnectionId,
    ConsumerId,
    MessageId,
    ProducerId,
)
from atalanta.wire.openwire.commands.messages import ActiveMQMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.conversion.destination import (
    ADVISORY_PREFIX,
    is_queue,
    of_kind,
    parts_of,
)
from atalanta.wire.openwire.encoding.primitives import encode_map

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.consumers import ConsumerInfo
    from atalanta.wire.openwire.encoding.structure import DataStructure
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput

ADDED: Final = 0
REMOVED: Final = 1
TEMP_QUEUE_TOPIC: Final = f"{ADVISORY_PREFIX}TempQueue"
TEMP_TOPIC_TOPIC: Final = f"{ADVISORY_PREFIX}TempTopic"
CONSUMER_TOPIC: Final = f"{ADVISORY_PREFIX}Consumer."


class Watcher:
    """A consumer of advisory topics. `topics`: their names, where a last word `>` stands for any further words."""

    def __init__(self, connection: OpenWireOutput, consumer_id: ConsumerId, destination: ActiveMQDestination) -> None:
        self.connection = connection
        self.consumer_id = consumer_id
        self.topics = [part.physical_name or "" for part in parts_of(destination)]

    def watches(self, topic: str) -> bool:
        """Returns True if the consumer gets the advisories of that topic."""
        for name in self.topics:
            if name == topic or (name.endswith(".>") and topic.startswith(name[:-1])):
                return True
        return False


class Advisories:
    """The watchers of a node, and what they hear of. `temporary`: temporary destinations, name to type on the wire.

    `owners`: name of a temporary destination to the id of its connection. `consumers`: those of OpenWire clients.
    Clients choose their ids, so the key of a consumer has the number of the connection as well.
    """

    def __init__(self, node_id: str, broker_name: str) -> None:
        self.node_id = node_id
        self.broker_name = broker_name
        self.watchers: dict[tuple[int, ConsumerId], Watcher] = {}
        self.temporary: dict[str, int] = {}
        self.owners: dict[str, ConnectionId] = {}
        self.consumers: dict[tuple[int, ConsumerId], ConsumerInfo] = {}
        self.counts: dict[str, int] = {}
        self.number: int = 0

    # -- watchers -------------------------------------------------------------------------------
    def watch(self, watcher: Watcher) -> None:
        """Adds a watcher, and sends it what is there already."""
        self.watchers[watcher.connection.conn, watcher.consumer_id] = watcher
        for name, code in self.temporary.items():
            topic = TEMP_QUEUE_TOPIC if code == codes.TEMP_QUEUE else TEMP_TOPIC_TOPIC
            if watcher.watches(topic):
                self._send(watcher, topic, self._destination_info(name, code, ADDED), {}, True)
        for info in self.consumers.values():
            for topic in _consumer_topics(info):
                if watcher.watches(topic):
                    self._send(watcher, topic, info, self._count(topic), True)

    def unwatch(self, conn: int, consumer_id: ConsumerId) -> None:
        """Removes a watcher."""
        self.watchers.pop((conn, consumer_id), None)

    # -- news -----------------------------------------------------------------------------------
    def temporary_added(self, destination: ActiveMQDestination, owner: ConnectionId) -> None:
        """Reports a new temporary destination."""
        name, code = destination.physical_name or "", destination.code()
        self.temporary[name] = code
        self.owners[name] = owner
        self._temporary_changed(name, code, ADDED)

    def temporary_removed(self, name: str) -> None:
        """Reports the end of a temporary destination."""
        code = self.temporary.pop(name, 0)
        if code:
            self._temporary_changed(name, code, REMOVED)
            self.owners.pop(name, None)

    def _temporary_changed(self, name: str, code: int, operation: int) -> None:
        topic = TEMP_QUEUE_TOPIC if code == codes.TEMP_QUEUE else TEMP_TOPIC_TOPIC
        self._publish(topic, self._destination_info(name, code, operation), {})

    def consumer_added(self, conn: int, info: ConsumerInfo) -> None:
        """Reports a new consumer."""
        consumer_id = info.consumer_id
        assert consumer_id is not None
        self.consumers[conn, consumer_id] = info
        for topic in _consumer_topics(info):
            self.counts[topic] = self.counts.get(topic, 0) + 1
            self._publish(topic, info, self._count(topic))

    def consumer_removed(self, conn: int, consumer_id: ConsumerId) -> None:
        """Reports the end of a consumer."""
        info = self.consumers.pop((conn, consumer_id), None)
        if info is None:
            return
        for topic in _consumer_topics(info):
            self.counts[topic] -= 1
            self._publish(topic, RemoveInfo(consumer_id), self._count(topic))
            if self.counts[topic] == 0:
                del self.counts[topic]

    def _count(self, topic: str) -> dict[str, object]:
        return {"consumerCount": Int(self.counts.get(topic, 0))}

    def _destination_info(self, name: str, code: int, operation: int) -> DestinationInfo:
        return DestinationInfo(self.owners.get(name), of_kind(code, name), operation)

    # -- messages -------------------------------------------------------------------------------
    def _publish(self, topic: str, data: DataStructure, properties: dict[str, object]) -> None:
        for watcher in list(self.watchers.values()):
            if watcher.watches(topic):
                self._send(watcher, topic, data, properties, False)

    def _send(
        self, watcher: Watcher, topic: str, data: DataStructure, properties: dict[str, object], targeted: bool
    ) -> None:
        """Sends an advisory to one watcher; `targeted`: it is no news for others."""
        self.number += 1
        producer_id = ProducerId(f"ID:{self.node_id}", 0, -1)
        shown = {
            "originBrokerId": self.node_id,
            "originBrokerName": self.broker_name,
            "originBrokerURL": "",
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
        watcher.connection.send_advisory(MessageDispatch(watcher.consumer_id, message.destination, message, 0))


def _consumer_topics(info: ConsumerInfo) -> list[str]:
    """Returns the topics of the advisories about a consumer; none about browsers and watchers."""
    if info.browser or info.destination is None:
        return []
    found: list[str] = []
    for part in parts_of(info.destination):
        name = part.physical_name or ""
        if not name.startswith(ADVISORY_PREFIX) and part.code() in (codes.QUEUE, codes.TOPIC):
            found.append(f"{CONSUMER_TOPIC}{'Queue' if is_queue(part) else 'Topic'}.{name}")
    return found
