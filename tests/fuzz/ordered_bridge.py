"""Sessions of OpenWire that say they are the bridge of another broker, in a valid order, with hostile values."""

from __future__ import annotations

from atalanta.wire.openwire.commands.brokers import BrokerInfo, BrokerSubscriptionInfo
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo, RemoveSubscriptionInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue, ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import (
    BrokerId,
    ConnectionId,
    MessageId,
    ProducerId,
)
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.encoding.structure import Command, DataStructure
from atalanta.wire.openwire.encoding.throwable import Throwable
from atalanta.wire.openwire.server.bridge.duplex_end import SUBSCRIPTIONS_VERSION_MIN
from tests.fuzz.ordered_openwire import LONG_TEXTS, OpenWireSessions
from tests.fuzz.ordered_victims import FAR, KEPT_TOPIC, NEAR, SHARED, advisory

FLAGS = (
    "conduitSubscriptions", "conduitNetworkQueueSubscriptions", "dynamicOnly", "decreaseNetworkConsumerPriority",
    "suppressDuplicateQueueSubscriptions", "suppressDuplicateTopicSubscriptions", "bridgeTempDestinations",
    "alwaysSyncSend", "staticBridge", "syncDurableSubs", "duplex",
)  # fmt: skip
NUMBERS = (
    "messageTTL", "consumerTTL", "networkTTL", "prefetchSize", "consumerPriorityBase", "advisoryPrefetchSize",
    "advisoryAckPercentage",
)  # fmt: skip
BROKERS = ("ID:b", f"ID:{FAR}", f"ID:{NEAR}", "b", "a,b")
USERS = ("userName", "remoteUserName", "password", "remotePassword")
LISTS = ("staticallyIncludedDestinations", "dynamicallyIncludedDestinations", "excludedDestinations")
BEYOND = ("2147483648", "-2147483649", "9" * 5_000, "1e9", "0x10", "", "-", "٣", "true")
TOPICS = ("Consumer.Queue.x", "Consumer.Topic.x", "TempQueue", "TempTopic", "x", "")
CLASSES = ("javax.jms.JMSException", "java.lang.SecurityException", "java.io.IOException", None)


class BridgeSessions(OpenWireSessions):
    """One connection of a user that introduces a broker before its login, mostly with `duplex`."""

    VERSIONS = (12, 12, 12, 12, 11, 9, 3)

    def _introduce(self) -> None:
        choices = self.choices
        info = BrokerInfo(
            BrokerId(choices.text() if choices.below(16) == 0 else choices.of(BROKERS)), self._url(),
            broker_name=choices.text() if choices.below(16) == 0 else choices.of((NEAR, NEAR, FAR, "b")),
            network_connection=True, duplex_connection=choices.below(10) > 0, connection_id=choices.number(),
        )  # fmt: skip
        info.network_properties = "\n".join(f"{name}={value}" for name, value in self._properties().items())
        self._send(info)

    def _url(self) -> str | None:
        urls = (None, "tcp://stranger:1", "ssl://stranger:1?a=b")
        return "x" * 1_500 if self.choices.below(24) == 0 else self.choices.of(urls)

    def _properties(self) -> dict[str, str]:
        """The options of a network connector: a few of each kind, with numbers at the edges."""
        choices = self.choices
        found = {name: choices.of(("true", "false")) for name in FLAGS if choices.below(4) == 0}
        for name in NUMBERS:
            if choices.below(4) == 0:
                found[name] = choices.of(BEYOND) if choices.below(24) == 0 else str(choices.number(32))
        for name in USERS:
            if choices.below(4) == 0:
                found[name] = choices.of(("admin", "bridge", "cluster", "secret"))
        if choices.below(3) == 0:
            found[choices.of(LISTS)] = f"[{','.join(self._listed() for _ in range(choices.below(4)))}]"
        if choices.below(8) == 0:
            found["name"] = choices.of(("NC", "", choices.text()))
            found["clientIdToken"] = choices.of(("_", "", "."))
            found["destinationFilter"] = choices.of((">", "Queue.>,Topic.>", choices.text()))
        if choices.below(24) == 0:
            found["x"] = choices.of(LONG_TEXTS)
        return found

    def _listed(self) -> str:
        kind = self.choices.of(("queue", "topic", "temp-queue", "temp-topic"))
        return f"{kind}\\://{self._wanted()}"

    def _wanted(self) -> str:
        """The name of a destination that a bridge wants."""
        choices = self.choices
        return choices.of((choices.name(), "secret.a", "secret.in", "secret.t", KEPT_TOPIC))

    # -- commands -------------------------------------------------------------------------------
    def step(self) -> None:
        """Sends one command, as a bridge does or as its client."""
        choices = self.choices
        wanted = choices.below(12)
        if wanted < 4:
            super().step()
        elif wanted < 8:
            topic = ActiveMQTopic(f"ActiveMQ.Advisory.{choices.of(TOPICS)}")
            told = advisory(self._told(), topic, self._producer_id())
            told.broker_path = self._path()
            self._send(told)
        elif wanted < 9 and self.form.options.version >= SUBSCRIPTIONS_VERSION_MIN:
            self._send(BrokerSubscriptionInfo(BrokerId("b"), "b", [self._demand() for _ in range(choices.below(4))]))
        elif wanted < 11:
            self._send(self._answer())
        else:
            self._send(self._brought())

    def _demand(self) -> ConsumerInfo:
        """A consumer at the broker behind the bridge, perhaps with a durable subscription."""
        choices = self.choices
        info = self._consumer()
        info.additional_predicate = None
        if choices.below(3):
            info.destination = choices.of((ActiveMQTopic, ActiveMQQueue))(self._wanted())
        if choices.below(3) == 0:
            info.broker_path = self._long_path()
        if choices.below(3) == 0:
            others = (self._text(), self._text())
            info.client_id, info.subscription_name = choices.of((("reader", "s"), ("", ""), others))
        return info

    def _told(self) -> DataStructure:
        choices = self.choices
        wanted = choices.below(8)
        if wanted < 4:
            return self._demand()
        if wanted < 5:
            return RemoveInfo(self._consumer_id(), choices.number())
        if wanted < 6:
            name, client_id = choices.of((("s", "reader"), (self._text(), self._text())))
            return RemoveSubscriptionInfo(ConnectionId(self.id), name, client_id)
        return DestinationInfo(
            ConnectionId(self._connection()), self._destination(), self._operation(), choices.number(), self._path()
        )

    def _answer(self) -> Command:
        """An answer to a message that came over the bridge: their numbers begin at 1."""
        choices = self.choices
        number = choices.of((choices.below(8), choices.number(32)))
        if choices.below(6):
            return Response(number)
        return ExceptionResponse(Throwable(choices.of(CLASSES), choices.text()), number)

    def _brought(self) -> OpenWireMessage:
        """A message of another client, perhaps one of which the next comes from a victim."""
        choices = self.choices
        made = self._message()
        made.broker_path = choices.of(([BrokerId(f"ID:{FAR}")], self._long_path()))
        origin = ProducerId(choices.of(("ID:origin", "ID:y", self._connection())), choices.number(), choices.number())
        named = choices.below(3)
        if named == 0:
            made.message_id = MessageId(None, origin, choices.number())
        elif named == 1:
            made.message_id = choices.of(self.world.victims.message_ids())
            made.destination, made.transaction_id = ActiveMQQueue(SHARED), None
        return made
