"""Programs in a network of brokers: senders, consumers, movers with local transactions, durable subscribers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atalanta.sim.loads.networks.account import BOOK, ORDERS, NetworksAccount
from atalanta.sim.loads.networks.client import FailoverClient
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.openwire import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTextMessage,
    ActiveMQTopic,
    ConnectionId,
    ConsumerId,
    ConsumerInfo,
    LocalTransactionId,
    MessageAck,
    MessageDispatch,
    MessageId,
    ProducerId,
    ProducerInfo,
    TransactionInfo,
    encode_map,
    id_text,
    text_content,
)

NEWS: Final = "news"
STANDARD: Final = 2
INDIVIDUAL: Final = 4
BEGIN: Final = 0
COMMIT: Final = 2
ROLLBACK: Final = 4
MEAN_SHARE: Final = 0.7  # of the load's time, in which a sender is ready
BATCH_MAX: Final = 3
THINK_NS_MAX: Final = 100_000_000
PREFETCHES: Final = (1, 10, 1000)
BODY_CHARACTERS: Final = (10, 10, 300, 3_000)
TOPIC_SHARE: Final = 0.4
LAST_MESSAGES: Final = 8  # of a sender, after the end of the faults


def key_of(message_id: MessageId | None) -> str:
    return "" if message_id is None else id_text(message_id)


class Worker(FailoverClient):
    """The base class: what it sends has the ids of one producer."""

    def __init__(self, world: World, network: Network, name: str, hosts: list[str], account: NetworksAccount) -> None:
        super().__init__(world, network, name, hosts)
        self.account = account
        self.numbers = 0

    def made(
        self, destination: ActiveMQDestination, persistent: bool = True, transaction: LocalTransactionId | None = None
    ) -> ActiveMQTextMessage:
        """Returns the next message; its key is its id."""
        self.numbers += 1
        producer_id = ProducerId(self.id(), 1, 1)
        message_id = MessageId(None, producer_id, self.numbers)
        return ActiveMQTextMessage(
            producer_id, destination, transaction, None, message_id, persistent=persistent, priority=4,
            content=text_content("x" * self.random.choice(BODY_CHARACTERS)),
            marshalled_properties=encode_map("properties", {"key": key_of(message_id)}),
        )  # fmt: skip

    def subscribe(self, destination: ActiveMQDestination, prefetch: int, name: str | None = None) -> None:
        client_id = self.name if name else None
        consumer_id = ConsumerId(self.id(), 1, 1)
        self.tell(
            ConsumerInfo(
                consumer_id, destination=destination, prefetch_size=prefetch, client_id=client_id,
                subscription_name=name,
            )  # fmt: skip
        )


class NetworkSender(Worker):
    """Sends `total` messages to `orders` or the topic `news`, each once the one before is confirmed.

    After a failover it sends the message without an answer again, with its id. `due` tells where a message of the
    topic must arrive that is sent at a node.
    """

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        hosts: list[str],
        account: NetworksAccount,
        total: int,
        seconds: float,
        due: Callable[[str], list[str]],
    ) -> None:
        super().__init__(world, network, name, hosts, account)
        self.left = total
        self.gap_ns = int(seconds * MEAN_SHARE * SECOND / total)
        self.due = due
        self.under_way: ActiveMQTextMessage | None = None
        self.topics = self.random.random() < 0.5

    def on_ready(self) -> None:
        self.tell(ProducerInfo(ProducerId(self.id(), 1, 1)))
        if self.under_way is not None:
            self._send(self.under_way)
        else:
            self._next()

    def _next(self) -> None:
        if self.left > 0:
            self.later(self.random.randint(1, 2 * self.gap_ns), self._send_one)

    def _send_one(self) -> None:
        self.left -= 1
        topic = self.topics and self.random.random() < TOPIC_SHARE
        made = self.made(ActiveMQTopic(NEWS) if topic else ActiveMQQueue(ORDERS), self.random.random() < 0.9)
        self.under_way = made
        self._send(made)

    def _send(self, message: ActiveMQTextMessage) -> None:
        key = key_of(message.message_id)
        due = self.due(self.at) if isinstance(message.destination, ActiveMQTopic) else [ORDERS]
        self.account.sending(key, self.at, message.persistent, due)
        self.call(message, lambda: self._confirmed(key))

    def _confirmed(self, key: str) -> None:
        self.under_way = None
        self.account.confirm(key)
        self._next()

    def forget(self) -> None:
        self.under_way = None

    def finish(self) -> None:
        """Ends soon: few messages are left."""
        self.left = min(self.left, LAST_MESSAGES)

    def done(self) -> bool:
        return self.left <= 0 and self.under_way is None


class NetworkConsumer(Worker):
    """Consumes a queue and waits for the answers to its acknowledgements, which are individual or automatic."""

    def __init__(
        self, world: World, network: Network, name: str, hosts: list[str], account: NetworksAccount, queue: str
    ) -> None:
        super().__init__(world, network, name, hosts, account)
        self.queue = queue
        self.individual = self.random.random() < 0.5
        self.prefetch = self.random.choice(PREFETCHES)
        self.think_ns = self.random.choice((1, THINK_NS_MAX))

    def on_ready(self) -> None:
        self.subscribe(ActiveMQQueue(self.queue), self.prefetch)

    def on_message(self, dispatch: MessageDispatch) -> None:
        assert dispatch.message is not None
        key = key_of(dispatch.message.message_id)
        self.account.deliver(self.queue, key, f"{self.name} at {self.at}", self.network.left_at(self.conn))
        if self.individual:
            self.later(self.random.randint(1, self.think_ns), lambda: self._acknowledge(dispatch, key))
        else:
            self._acknowledge(dispatch, key)

    def _acknowledge(self, dispatch: MessageDispatch, key: str) -> None:
        self.account.take(self.queue, key)
        assert dispatch.message is not None
        last = dispatch.message.message_id
        kind = INDIVIDUAL if self.individual else STANDARD
        ack = MessageAck(dispatch.destination, None, dispatch.consumer_id, kind, last, last, 1)
        self.call(ack, lambda: self.account.settle(self.queue, key))


class NetworkSubscriber(NetworkConsumer):
    """A durable subscriber of the topic. It has one node: elsewhere it would be another subscriber."""

    def __init__(self, world: World, network: Network, name: str, host: str, account: NetworksAccount) -> None:
        super().__init__(world, network, name, [host], account, f"{name}.s")
        self.home = host

    def client_id(self) -> str:
        return self.name

    def on_ready(self) -> None:
        self.subscribe(ActiveMQTopic(NEWS), self.prefetch, "s")


class NetworkMover(Worker):
    """Takes orders and sends messages to `book` in local transactions, some of which it rolls back.

    A transaction that is open when the connection ends is given up; one whose commit was not answered may be either.
    """

    def __init__(self, world: World, network: Network, name: str, hosts: list[str], account: NetworksAccount) -> None:
        super().__init__(world, network, name, hosts, account)
        self.transactions = 0
        self.batch: list[MessageDispatch] = []  # of the open transaction
        self.waiting: list[MessageDispatch] = []

    def on_ready(self) -> None:
        self.tell(ProducerInfo(ProducerId(self.id(), 1, 1)))
        self.subscribe(ActiveMQQueue(ORDERS), self.random.choice(PREFETCHES))

    def on_lost(self) -> None:
        self.batch = []
        self.waiting = []

    def on_message(self, dispatch: MessageDispatch) -> None:
        assert dispatch.message is not None
        key = key_of(dispatch.message.message_id)
        self.account.deliver(ORDERS, key, f"{self.name} at {self.at}", self.network.left_at(self.conn))
        self.waiting.append(dispatch)
        self._begin()

    def _begin(self) -> None:
        if self.batch or not self.waiting:
            return
        count = self.random.randint(1, BATCH_MAX)
        self.batch = self.waiting[:count]
        self.waiting = self.waiting[count:]
        self.transactions += 1
        self._step(BEGIN, self.work)

    def transaction_id(self) -> LocalTransactionId:
        return LocalTransactionId(self.transactions, ConnectionId(self.id()))

    def _step(self, kind: int, then: Callable[[], None]) -> None:
        self.call(TransactionInfo(ConnectionId(self.id()), self.transaction_id(), kind), then)

    def work(self) -> None:
        """Acknowledges and sends in the open transaction, and ends it after a moment."""
        made: list[str] = []
        transaction_id = self.transaction_id()
        for dispatch in self.batch:
            message = self.made(ActiveMQQueue(BOOK), True, transaction_id)
            assert dispatch.message is not None
            last = dispatch.message.message_id
            key, order = key_of(message.message_id), key_of(last)
            self.account.moving(key, order, self.at)
            self.tell(
                MessageAck(dispatch.destination, transaction_id, dispatch.consumer_id, STANDARD, last, last, 1)
            )
            self.tell(message)
            made.append(key)
        ends = self.random.randint(1, THINK_NS_MAX)
        if self.random.random() < 0.15:
            self.later(ends, lambda: self._step(ROLLBACK, self._rolled_back))
        else:
            self.later(ends, lambda: self._step(COMMIT, lambda: self._committed(made)))

    def _rolled_back(self) -> None:
        """Delivers the messages again by itself, as the client does after a rollback."""
        self.waiting = self.batch + self.waiting
        self.batch = []
        self._begin()

    def _committed(self, made: list[str]) -> None:
        for key in made:
            self.account.move(key)
        self.batch = []
        self._begin()

