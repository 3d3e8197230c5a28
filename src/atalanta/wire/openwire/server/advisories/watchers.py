"""The consumers of advisories. Advisories are sent to them at once and stored nowhere (AdvisoryBroker of Classic)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import ConsumerId, MessageId, ProducerId
from atalanta.wire.openwire.commands.messages import ActiveMQMessage
from atalanta.wire.openwire.encoding.primitives import encode_map
from atalanta.wire.openwire.server.advisories.described_consumer import OPENWIRE
from atalanta.wire.openwire.server.advisories.topic_index import TopicIndex

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.delivery.message_store import MessageStore
    from atalanta.wire.openwire.encoding.structure import DataStructure
    from atalanta.wire.openwire.server.advisories.watcher import Watcher
    from atalanta.wire.openwire.server.sessions.output import OpenWireOutput

# Topics that the consumers of one user have: a JMS connection has two, for temporary destinations.
WATCHED_TOPICS_MAX: Final = 20_000
# Advisories behind which other inputs have their turn.
ADVISORIES_A_TURN: Final = 1_000
ADVISORIES_TIMER: Final = "wire.openwire.advisories"


@mypyc_attr(allow_interpreted_subclasses=True)
class AdvisorySource:
    """The subject of advisories."""

    def replay(self, watcher: Watcher) -> None:
        """Tells a new watcher what is there already."""
        raise NotImplementedError

    def tell_more(self) -> None:
        """Tells what was too much for the last turn."""
        return None


class Watchers:
    """The watchers of a node. Clients choose their ids, so the key of one has the number of the connection as well.

    `topics`: how many the watchers of each user have. `sent`: advisories since the last turn of `on_timer`, for which
    the connections in `waiting` wait.
    """

    def __init__(self, node_id: str, broker_name: str, timers: Timers, store: MessageStore) -> None:
        self.node_id = node_id
        self.broker_name = broker_name
        self.timers = timers
        self.store = store
        self.by_id: dict[tuple[int, ConsumerId], Watcher] = {}
        self.index = TopicIndex()
        self.topics: dict[str, int] = {}
        self.sources: list[AdvisorySource] = []  # what new watchers are told of
        self.last: int = 0  # number of a watcher
        self.number: int = 0
        self.sent: int = 0
        self.waiting: list[OpenWireOutput] = []

    def add(self, watcher: Watcher) -> None:
        """Adds a watcher, and sends it what is there already. BrokerError: its user has too many."""
        user = watcher.user
        topics = self.topics.get(user, 0) + watcher.size()
        if topics > WATCHED_TOPICS_MAX and not watcher.kernel.identity.cluster:
            raise BrokerError(
                ILLEGAL_STATE,
                f"the consumers of advisories of user {user} would have {topics} topics, at most {WATCHED_TOPICS_MAX}"
                " are allowed: close others, or name fewer topics",
            )
        self.last += 1
        watcher.number = self.last
        key = (watcher.connection.conn, watcher.consumer_id)
        self.topics[user] = topics
        self.by_id[key] = watcher  # with its topics counted: `remove` takes back whatever follows
        self.index.add(watcher)
        for source in self.sources:
            try:
                source.replay(watcher)
            except Exception as error:  # of somebody else's: the watcher is told of the rest
                self.leave_out(f"advisories by {source.__class__.__name__}", error)

    def remove(self, conn: int, consumer_id: ConsumerId) -> None:
        watcher = self.by_id.pop((conn, consumer_id), None)
        if watcher is None:
            return
        self.index.remove(watcher)
        left = self.topics.get(watcher.user, 0) - watcher.size()
        if left > 0:
            self.topics[watcher.user] = left
        else:
            self.topics.pop(watcher.user, None)

    def has_watcher(self, topic: str) -> bool:
        """Returns True if anybody watches the topic."""
        return len(self.index.find(topic)) > 0

    def leave_out(self, command: str, error: Exception) -> None:
        """Reports what the watchers cannot be told, also those to come."""
        self.store.failures.left_out(self.store.now, OPENWIRE, command, error)

    def publish(
        self,
        conn: int,
        topic: str,
        data: DataStructure,
        properties: dict[str, object],
        for_all: DataStructure | None = None,
    ) -> None:
        """Tells the watchers of a topic what the connection has done.

        `for_all`: what those are told who may not read the topic; None: nothing.
        """
        try:
            self._publish(conn, topic, data, properties, for_all)
        except Exception as error:  # the kernel was changed before, by what is told
            self.leave_out(_shown(data), error)

    def _publish(
        self,
        conn: int,
        topic: str,
        data: DataStructure,
        properties: dict[str, object],
        for_all: DataStructure | None,
    ) -> None:
        found = self.index.find(topic)
        if not found:
            return
        messages: dict[tuple[str, bool], ActiveMQMessage] = {}
        for watcher in found:
            if watcher.no_local and watcher.connection.conn == conn:
                continue
            reads = watcher.may_read(topic)
            told = data if reads else for_all
            if told is None:
                continue
            key = (watcher.connection.client.local, reads)
            message = messages.get(key)
            if message is None:
                message = self._message(watcher, topic, told, properties, None)
                if message is None:
                    continue
                messages[key] = message
            self._send(watcher, message)

    def replay(
        self,
        watcher: Watcher,
        conn: int,
        topic: str,
        data: DataStructure,
        properties: dict[str, object],
        for_all: DataStructure | None = None,
    ) -> None:
        """Tells one watcher what is no news for others."""
        if watcher.watches(topic) and not (watcher.no_local and watcher.connection.conn == conn):
            told = data if watcher.may_read(topic) else for_all
            if told is not None:
                message = self._message(watcher, topic, told, properties, watcher.consumer_id)
                if message is not None:
                    self._send(watcher, message)

    def _message(
        self,
        watcher: Watcher,
        topic: str,
        data: DataStructure,
        properties: dict[str, object],
        target: ConsumerId | None,
    ) -> ActiveMQMessage | None:
        """Returns the message of an advisory in the words of the watcher's connection; None if it cannot be made."""
        try:
            return self._advisory(watcher.connection.client.local, topic, data, properties, target)
        except Exception as error:  # nothing was changed, whatever it is
            watcher.connection.leave_out(_shown(data), error)
            return None

    def _advisory(
        self, local: str, topic: str, data: DataStructure, properties: dict[str, object], target: ConsumerId | None
    ) -> ActiveMQMessage:
        """Returns the message of an advisory; `local`: the address of the node that its receiver uses."""
        self.number += 1
        producer_id = ProducerId(f"ID:{self.node_id}", 0, -1)
        shown = {
            "originBrokerId": self.node_id,
            "originBrokerName": self.broker_name,
            "originBrokerURL": f"tcp://{local}",
            **properties,
        }
        return ActiveMQMessage(
            producer_id=producer_id,
            message_id=MessageId(None, producer_id, self.number, 0),
            destination=ActiveMQTopic(topic),
            jms_type="Advisory",
            data_structure=data,
            target_consumer_id=target,
            marshalled_properties=encode_map("properties", shown),
        )

    def _send(self, watcher: Watcher, message: ActiveMQMessage) -> None:
        self.sent += 1
        dispatch = MessageDispatch(watcher.consumer_id, message.destination, message, 0)
        watcher.connection.send_advisory(dispatch, _shown(message.data_structure))

    # -- turns ----------------------------------------------------------------------------------
    def enough(self) -> bool:
        """Returns True if the advisories of this turn are enough; then `on_timer` begins another."""
        if self.sent < ADVISORIES_A_TURN:
            return False
        self.timers.set(ADVISORIES_TIMER, 0)
        return True

    def pace(self, connection: OpenWireOutput, before: int) -> None:
        """Holds the input of a connection whose command was told to watchers, if that is enough for one turn.

        `before`: what `sent` was before the command.
        """
        if self.sent > before and self.enough():
            connection.hold_input()
            self.waiting.append(connection)

    def on_timer(self) -> None:
        """Begins a turn: what was too much for the last one goes on."""
        self.sent = 0
        for source in self.sources:
            source.tell_more()
        waiting = self.waiting
        self.waiting = []
        for connection in waiting:
            if not connection.gone:
                connection.release_input()


def _shown(data: DataStructure | None) -> str:
    """Returns the name of an advisory for the log."""
    return f"advisory with {data.__class__.__name__}"
