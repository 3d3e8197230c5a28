"""The client without asyncio: the same names and arguments, no `await`.

    from atalanta.client import Message
    from atalanta.client.blocking import connect

    with connect("tcp://localhost:61616", user="u", password="p") as connection:
        connection.producer("orders", routing="anycast").send(Message(text="one coffee"))
        for message in connection.consumer("orders"):
            message.acknowledge()

A call returns when its work is complete. While it waits it also reconnects, if the options allow that. Between
calls the client only sends pings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from atalanta.client import connection as asynchronous
from atalanta.client.consumer import CUMULATIVE, INDIVIDUAL
from atalanta.client.discovery.factory import TOPOLOGY_POLL_S, TOPOLOGY_WAIT_S, UrlOptions
from atalanta.client.log.blocking_log_view import LogView
from atalanta.client.message import MULTICAST, Message, ReceivedMessage
from atalanta.client.options import ClientOptions, Server
from atalanta.client.shells.awaitables import READY
from atalanta.client.shells.blocking_shell import BlockingShell

if TYPE_CHECKING:
    from ssl import SSLContext

    from atalanta.client.blocking_cluster_consumer import ClusterConsumer
    from atalanta.client.consumer import Consumer as AsyncConsumer
    from atalanta.client.discovery.load_balancing import Balancing
    from atalanta.client.management import Management as AsyncManagement
    from atalanta.client.producer import Producer as AsyncProducer
    from atalanta.client.queue_kind import QueueKind
    from atalanta.client.transactions.branch import Branch as AsyncBranch
    from atalanta.client.transactions.branch import XaResource as AsyncXaResource
    from atalanta.client.transactions.transaction import Blocked
    from atalanta.client.transactions.transaction import Transaction as AsyncTransaction
    from atalanta.wire.core.client.topology import Member
    from atalanta.wire.core.packets.query import BindingQueryResponseV5, QueueQueryResponseV3
    from atalanta.wire.core.packets.transaction import Xid

__all__ = [
    "Branch", "Connection", "ConnectionFactory", "Consumer", "Management", "Producer",
    "Transaction", "XaResource", "connect",
]


class Producer:
    """See atalanta.client.Producer. `send_soon` blocks while the window is full."""

    def __init__(self, shell: BlockingShell, producer: AsyncProducer) -> None:
        self._shell = shell
        self._producer = producer
        self.address = producer.address

    @property
    def unconfirmed(self) -> int:
        return self._producer.unconfirmed

    @property
    def blocked(self) -> bool:
        """Returns True if messages wait for credits that the broker does not grant."""
        return self._producer.blocked

    @property
    def confirmed(self) -> int:
        return self._producer.confirmed

    @property
    def resent(self) -> int:
        return self._producer.resent

    @property
    def repeats(self) -> int:
        return self._producer.repeats

    def send(
        self,
        message: Message | ReceivedMessage,
        *,
        ttl_s: float | None = None,
        delay_s: float | None = None,
        priority: int | None = None,
    ) -> None:
        self._shell.call(self._producer.send(message, ttl_s=ttl_s, delay_s=delay_s, priority=priority))

    def send_soon(
        self,
        message: Message | ReceivedMessage,
        *,
        ttl_s: float | None = None,
        delay_s: float | None = None,
        priority: int | None = None,
    ) -> None:
        with self._shell.lock:
            wait = self._producer.send_soon(message, ttl_s=ttl_s, delay_s=delay_s, priority=priority)
        if wait is not READY:
            self._shell.call(_awaited(wait))

    def drain(self) -> None:
        self._shell.call(self._producer.drain())

    def close(self) -> None:
        self._shell.call(self._producer.close())

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._shell.call(self._producer.__aexit__(kind, error, trace))


class Consumer:
    """See atalanta.client.Consumer."""

    def __init__(self, shell: BlockingShell, consumer: AsyncConsumer) -> None:
        self._shell = shell
        self._consumer = consumer
        self.queue = consumer.queue

    @property
    def received(self) -> int:
        return self._consumer.received

    @property
    def buffered(self) -> int:
        return self._consumer.buffered

    def __iter__(self) -> Iterator[ReceivedMessage]:
        return self

    def __next__(self) -> ReceivedMessage:
        try:
            return self._shell.call(self._consumer.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def receive(self, timeout_s: float | None = None) -> ReceivedMessage | None:
        return self._shell.call(self._consumer.receive(timeout_s))

    def close(self) -> None:
        self._shell.call(self._consumer.close())

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._shell.call(self._consumer.__aexit__(kind, error, trace))


class Transaction:
    """See atalanta.client.Transaction."""

    def __init__(self, shell: BlockingShell, transaction: AsyncTransaction) -> None:
        self._shell = shell
        self._transaction = transaction

    def open(self) -> Transaction:
        self._shell.call(self._transaction.open())
        return self

    def send(
        self,
        address: str,
        message: Message | ReceivedMessage,
        routing: str | None = None,
        *,
        ttl_s: float | None = None,
        delay_s: float | None = None,
        priority: int | None = None,
    ) -> None:
        made = self._transaction.send(
            address, message, routing, ttl_s=ttl_s, delay_s=delay_s, priority=priority
        )
        self._shell.call(made)

    def consumer(
        self, queue: str, selector: str | None = None, ack: str = CUMULATIVE, *, members: str | None = None
    ) -> Consumer:
        made = self._transaction.consumer(queue, selector, ack, members=members)
        return Consumer(self._shell, self._shell.call(made))

    def commit(self) -> None:
        self._shell.call(self._transaction.commit())

    def rollback(self) -> None:
        self._shell.call(self._transaction.rollback())

    def close(self) -> None:
        self._shell.call(self._transaction.close())

    def __enter__(self) -> Transaction:
        return self.open()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._shell.call(self._transaction.__aexit__(kind, error, trace))


class Branch(Transaction):
    """See atalanta.client.Branch."""

    def __init__(self, shell: BlockingShell, branch: AsyncBranch) -> None:
        super().__init__(shell, branch)
        self._branch = branch

    def __enter__(self) -> Branch:
        self.open()
        return self

    def prepare(self) -> None:
        self._shell.call(self._branch.prepare())


class XaResource:
    """See atalanta.client.XaResource."""

    def __init__(self, shell: BlockingShell, resource: AsyncXaResource) -> None:
        self._shell = shell
        self._resource = resource

    def branch(self, xid: Xid, on_blocked: Blocked | None = None) -> Branch:
        return Branch(self._shell, self._resource.branch(xid, on_blocked))

    def recover(self) -> list[Xid]:
        return self._shell.call(self._resource.recover())

    def commit(self, xid: Xid) -> None:
        self._shell.call(self._resource.commit(xid))

    def rollback(self, xid: Xid) -> None:
        self._shell.call(self._resource.rollback(xid))

    def forget(self, xid: Xid) -> None:
        self._shell.call(self._resource.forget(xid))


class Management:
    """See atalanta.client.Management."""

    def __init__(self, shell: BlockingShell, management: AsyncManagement) -> None:
        self._shell = shell
        self._management = management

    def call(self, resource: str, operation: str, *parameters: object) -> object:
        return self._shell.call(self._management.call(resource, operation, *parameters))

    def get(self, resource: str, attribute: str) -> object:
        return self._shell.call(self._management.get(resource, attribute))

    def rows(
        self, operation: str, field: str = "", comparison: str = "", value: str = ""
    ) -> list[dict[str, object]]:
        return self._shell.call(self._management.rows(operation, field, comparison, value))

    def close(self) -> None:
        self._shell.call(self._management.close())


class Connection:
    """See atalanta.client.Connection."""

    def __init__(self, shell: BlockingShell, connection: asynchronous.Connection) -> None:
        self.shell = self._shell = shell
        self._connection = connection
        self.options = connection.options
        self._cluster_consumers: list[ClusterConsumer] = []

    @property
    def connected(self) -> bool:
        return self._connection.connected

    @property
    def server(self) -> Server | None:
        return self._connection.server

    @property
    def topology(self) -> tuple[Member, ...]:
        """Returns the members known after the last call; `refresh` reads later packets."""
        return self._connection.topology

    @property
    def lost_count(self) -> int:
        return self._connection.lost_count

    def refresh(self) -> None:
        """Processes the packets that arrived since the last call, without waiting."""
        self._shell.after_call()

    def on_topology(self, listener: Callable[[], None]) -> None:
        self._connection.on_topology(listener)

    def on_lost(self, listener: Callable[[], None]) -> None:
        self._connection.on_lost(listener)

    def on_reconnected(self, listener: Callable[[], None]) -> None:
        self._connection.on_reconnected(listener)

    def producer(
        self, address: str, routing: str | None = None, window: int | None = None
    ) -> Producer:
        return Producer(self._shell, self._shell.call(self._connection.producer(address, routing, window)))

    def consumer(
        self,
        queue: str,
        selector: str | None = None,
        browse: bool = False,
        ack: str = INDIVIDUAL,
        *,
        routing: str | None = None,
        priority: int = 0,
        window: int | None = None,
        members: str | None = None,
    ) -> Consumer:
        if members == asynchronous.ALL_MEMBERS:
            # A program without such a consumer starts faster, and has no second thread.
            from atalanta.client.blocking_cluster_consumer import ClusterConsumer

            arguments = {"selector": selector, "browse": browse, "ack": ack, "priority": priority, "window": window}
            self._connection.session.check_usable()
            consumer = ClusterConsumer(self.options, self.server, queue, arguments)
            self._cluster_consumers = [each for each in self._cluster_consumers if not each.closed]
            self._cluster_consumers.append(consumer)
            return consumer
        made = self._connection.consumer(
            queue, selector, browse, ack, routing=routing, priority=priority, window=window, members=members
        )
        return Consumer(self._shell, self._shell.call(made))

    def request(
        self,
        address: str,
        message: Message | ReceivedMessage,
        timeout_s: float | None = None,
        routing: str | None = None,
    ) -> ReceivedMessage:
        return self._shell.call(self._connection.request(address, message, timeout_s, routing))

    def subscription(
        self,
        address: str,
        name: str,
        selector: str | None = None,
        ack: str = INDIVIDUAL,
        *,
        shared: bool = False,
        window: int | None = None,
    ) -> Consumer:
        made = self._connection.subscription(
            address, name, selector, ack, shared=shared, window=window
        )
        return Consumer(self._shell, self._shell.call(made))

    def create_subscription(self, address: str, name: str, selector: str | None = None) -> str:
        return self._shell.call(self._connection.create_subscription(address, name, selector))

    def unsubscribe(self, name: str) -> None:
        self._shell.call(self._connection.unsubscribe(name))

    def transaction(self) -> Transaction:
        return Transaction(self._shell, self._connection.transaction())

    @property
    def xa_resource(self) -> XaResource:
        return XaResource(self._shell, self._connection.xa_resource)

    def logview(self, queue: str, incarnation: str = "") -> LogView:
        return LogView(self._shell, self._connection.logview(queue, incarnation))

    def management(self) -> Management:
        return Management(self._shell, self._connection.management())

    def create_queue(
        self,
        name: str,
        address: str | None = None,
        routing: str | None = None,
        durable: bool = True,
        filter: str | None = None,
        temporary: bool = False,
        max_consumers: int = -1,
        purge_on_no_consumers: bool = False,
        auto_created: bool = False,
        ignore_existing: bool = False,
        kind: QueueKind | None = None,
    ) -> None:
        made = self._connection.create_queue(
            name,
            address,
            routing,
            durable,
            filter,
            temporary,
            max_consumers,
            purge_on_no_consumers,
            auto_created,
            ignore_existing,
            kind,
        )
        self._shell.call(made)

    def create_shared_queue(
        self,
        name: str,
        address: str,
        routing: str | None = MULTICAST,
        durable: bool = True,
        filter: str | None = None,
        kind: QueueKind | None = None,
    ) -> None:
        self._shell.call(
            self._connection.create_shared_queue(name, address, routing, durable, filter, kind)
        )

    def create_address(self, address: str, *routing: str, auto_created: bool = False) -> None:
        self._shell.call(self._connection.create_address(address, *routing, auto_created=auto_created))

    def delete_queue(self, name: str) -> None:
        self._shell.call(self._connection.delete_queue(name))

    def query_queue(self, name: str) -> QueueQueryResponseV3:
        return self._shell.call(self._connection.query_queue(name))

    def query_address(self, address: str) -> BindingQueryResponseV5:
        return self._shell.call(self._connection.query_address(address))

    def close(self) -> None:
        try:
            for consumer in self._cluster_consumers:
                consumer.close()
        finally:
            self._shell.call(self._connection.close())

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.close()


async def _awaited(waiting: Any) -> None:
    await waiting


class ConnectionFactory:
    """See atalanta.client.ConnectionFactory."""

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        ssl: SSLContext | None = None,
        balancing: Balancing | Callable[[int], int] | None = None,
    ) -> None:
        self._url = UrlOptions(url, user, password, ssl, balancing)

    def connect(self) -> Connection:
        """Returns a new connection, already established."""
        url = self._url
        until_s = time.monotonic() + TOPOLOGY_WAIT_S
        while not url.may_open(until_s):
            for shell in url.shells():
                if isinstance(shell, BlockingShell):
                    shell.glance()
            time.sleep(TOPOLOGY_POLL_S)
        connection: Connection | None = None
        try:
            connection = _login(url.options())
        finally:
            url.opened(None if connection is None else connection.shell)
        return connection


def connect(
    url: str,
    *,
    user: str | None = None,
    password: str | None = None,
    ssl: SSLContext | None = None,
    balancing: Balancing | Callable[[int], int] | None = None,
) -> Connection:
    """Connects like atalanta.client.connect and returns the established connection."""
    factory = ConnectionFactory(url, user=user, password=password, ssl=ssl, balancing=balancing)
    return factory.connect()


def _login(options: ClientOptions) -> Connection:
    shell = BlockingShell(options)
    connection = asynchronous.Connection(shell)
    try:
        shell.call(connection.login())
    except BaseException:
        shell.engine.close()
        shell.call(shell.shut())
        raise
    return Connection(shell, connection)
