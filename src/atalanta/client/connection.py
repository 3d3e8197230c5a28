"""A connection to a broker, or to one node of a cluster at a time."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from atalanta.client.consumer import ACKNOWLEDGE_MODES, AUTO, INDIVIDUAL, Consumer
from atalanta.client.log.log_view import LogView
from atalanta.client.message import ANYCAST, MULTICAST, ROUTING_NAMES
from atalanta.wire.core.client.errors import (
    CallTimedOut,
    ClientError,
    IllegalState,
    LogViewUnsupported,
    QueueDoesNotExist,
    QueueExists,
    TooManyConsumers,
)
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.request import REPEAT
from atalanta.wire.core.client.settings import SessionSettings
from atalanta.wire.core.packet_types import LOG_COLUMNS
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.query import (
    LOG_VIEW_ADDRESS,
    SETTLE_ADDRESS,
    BindingQuery,
    BindingQueryResponseV4,
    BindingQueryResponseV5,
    QueueQuery,
    QueueQueryResponseV3,
)
from atalanta.wire.core.packets.queue import (
    CreateAddress,
    CreateQueueV2,
    CreateSharedQueueV2,
    DeleteQueue,
)
from atalanta.wire.core.packets.session import (
    CLIENT_ID_KEY,
    STAY_ADDRESS,
    ZONES_ADDRESS,
    AddMetadataV2,
    UniqueAddMetadata,
)

if TYPE_CHECKING:
    from atalanta.client.cluster_consumer import ClusterConsumer
    from atalanta.client.management import Management
    from atalanta.client.message import Message, ReceivedMessage
    from atalanta.client.options import ClientOptions, Server
    from atalanta.client.producer import Producer, ReplyQueue
    from atalanta.client.queue_kind import QueueKind
    from atalanta.client.shells.shell import ClientShell
    from atalanta.client.transactions.branch import XaResource
    from atalanta.client.transactions.transaction import Transaction
    from atalanta.wire.core.client.large_message import BodySink
    from atalanta.wire.core.client.session import ClientSession
    from atalanta.wire.core.client.topology import Member

NO_ROUTING: Final = -1
ALL_MEMBERS: Final = "all"
CLOSE_S: Final = 5.0  # maximum wait for the answer to SESS_CLOSE
QUEUE_DOES_NOT_EXIST: Final = 100
QUEUE_EXISTS: Final = 101
ADDRESS_EXISTS: Final = 107
TOO_MANY_CONSUMERS: Final = 214
# Prefixes of the JMS client in a reply address, and the routing type each one means.
PREFIXES: Final = {
    "queue://": ANYCAST,
    "temp-queue://": ANYCAST,
    "topic://": MULTICAST,
    "temp-topic://": MULTICAST,
}
Answer = TypeVar("Answer", bound=Packet)


class Connection:
    """A connection, created by `connect`. Its producers and consumers share one TCP connection.

    Management calls, producers and log views share a session, consumers share another. Every transaction has its own.
    Raises ClientError and its subclasses; a refusal by the broker is a BrokerRefused.
    """

    def __init__(self, shell: ClientShell) -> None:
        self.shell = shell
        self.options = shell.options
        self.session = shell.engine.session(self._settings(transacted=False))
        self._consuming: ClientSession | None = None
        self._log_view: bool | None = None
        self.log_columns = False  # the node has LOG_READ_COLUMNS
        self._replies: ReplyQueue | None = None
        self._closed = False
        self._xa_resource: XaResource | None = None
        self._cluster_consumers: list[ClusterConsumer] = []
        self.on_reconnected(self._ask_again)

    async def login(self) -> None:
        """Waits for the first session; called by `connect`."""
        await self.shell.answer(self.session.opened)
        if self.options.client_id is not None:
            # Reserves the client id like the JMS client: one connection at a time may use it, unless all share it.
            kind = AddMetadataV2 if self.options.shared_client_id else UniqueAddMetadata
            await self.shell.answer(self.session.request(kind(CLIENT_ID_KEY, self.options.client_id, True)))

    # -- state ----------------------------------------------------------------------------------
    @property
    def connected(self) -> bool:
        """Returns True if a TCP connection is established now."""
        return self.shell.engine.connected

    @property
    def server(self) -> Server | None:
        """Returns host and port of the current (or last) TCP connection."""
        return self.shell.server

    @property
    def topology(self) -> tuple[Member, ...]:
        """Returns the members of the cluster as announced by the broker, sorted by node id."""
        members = self.shell.engine.topology
        return tuple(members[node_id] for node_id in sorted(members))

    @property
    def lost_count(self) -> int:
        """Returns the number of lost TCP connections."""
        return self.shell.lost_count

    def on_topology(self, listener: Callable[[], None]) -> None:
        """Calls `listener` whenever `topology` may have changed."""
        self.shell.listeners.setdefault("topology", []).append(listener)

    def on_lost(self, listener: Callable[[], None]) -> None:
        """Calls `listener` whenever the TCP connection was lost."""
        self.shell.listeners.setdefault("lost", []).append(listener)

    def on_reconnected(self, listener: Callable[[], None]) -> None:
        """Calls `listener` whenever the connection and every session were restored."""
        self.shell.listeners.setdefault("reconnected", []).append(listener)

    # -- sending and receiving ------------------------------------------------------------------
    async def producer(
        self, address: str, routing: str | None = None, window: int | None = None
    ) -> Producer:
        """Returns a producer for `address`. A missing address is created if `routing` names its routing type.

        A prefix as in `reply_to` (queue://, topic://, temp-queue://) also sets the routing. `window` is the maximum
        number of unconfirmed messages; its default is the URL's sendWindow.
        """
        from atalanta.client.producer import (  # as below: a program that reads starts faster
            Encoder,
            Producer,
            group_of,
        )

        name, routing = await self.destination(address, routing)
        engine = self.session.producer(name)
        automatic_ids = self.options.reconnects
        encoder = Encoder(name, routing, automatic_ids, group_of(self.options))
        window = self.options.send_window if window is None else window
        if window < 1:
            raise ValueError(f"window={window}: a producer needs a window of at least 1 message")
        self.shell.after_call()
        return Producer(self.shell, engine, encoder, window)

    async def consumer(
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
        """Returns a consumer of `queue` or `address::queue`.

        A missing queue is created if client and broker allow it (anycast, unless `routing` differs). `window` is the
        number of bytes that the broker sends ahead; its default is the URL's consumerWindowSize.
        With members="all" it consumes at each active member of the cluster that has the queue (ClusterConsumer).
        """
        if members is not None:
            return await self._cluster_consumer(queue, selector, browse, ack, priority, window, members)
        if self._consuming is None:
            self._consuming = await self.open_session(transacted=False, consuming=True)
        return await self.open_consumer(
            self._consuming, queue, selector, browse, ack, routing, priority, window
        )

    async def _cluster_consumer(
        self,
        queue: str,
        selector: str | None,
        browse: bool,
        ack: str,
        priority: int,
        window: int | None,
        members: str,
    ) -> Consumer:
        if members != ALL_MEMBERS:
            raise ValueError(f"members={members!r} is not {ALL_MEMBERS!r}")
        if ack not in ACKNOWLEDGE_MODES:
            raise ValueError(f"ack={ack!r} is not one of {', '.join(ACKNOWLEDGE_MODES)}")
        queue, routing = _without_prefix(queue, None)
        if routing == MULTICAST:
            raise IllegalState(f"topic {queue}: each member has its own subscriptions; consume it without members", 104)
        # Only this kind of consumer needs it: a program without it starts faster.
        from atalanta.client.cluster_consumer import open_cluster_consumer

        await self._ask_settles()  # an Atalanta node names itself first, and MemberConnections relies on that
        bytes_ahead = self.options.consumer_window_size if window is None else window
        consumer = await open_cluster_consumer(
            self.shell, self._consuming_settings, self._sinks(), queue, selector, browse, ack, priority, bytes_ahead
        )
        self._cluster_consumers = [each for each in self._cluster_consumers if not each.closed]
        self._cluster_consumers.append(consumer)
        return consumer

    async def open_consumer(
        self,
        session: ClientSession,
        queue: str,
        selector: str | None = None,
        browse: bool = False,
        ack: str = INDIVIDUAL,
        routing: str | None = None,
        priority: int = 0,
        window: int | None = None,
    ) -> Consumer:
        """Returns a consumer like `consumer`, in a session of its own."""
        if ack not in ACKNOWLEDGE_MODES:
            raise ValueError(f"ack={ack!r} is not one of {', '.join(ACKNOWLEDGE_MODES)}")
        queue, routing = _without_prefix(queue, routing)
        found = await self.query_queue(queue)
        if not found.exists:
            if not (found.auto_create_queues and self.options.auto_create_queues) or browse:
                raise QueueDoesNotExist(f"queue {queue} does not exist", QUEUE_DOES_NOT_EXIST)
            await self._auto_create_queue(queue, routing)
        bytes_ahead = self.options.consumer_window_size if window is None else window
        session.start()
        consumer, created = session.consumer(queue, selector, browse, priority, bytes_ahead)
        consumer.sinks = self._sinks()
        try:
            await self.shell.answer(created)
        except CallTimedOut:
            session.close_consumer(consumer)  # otherwise the broker would send to it after a reconnect
            raise
        await self._ask_settles()
        return Consumer(self.shell, consumer, ack)

    def _sinks(self) -> Callable[[], BodySink] | None:
        """Returns what makes the receivers of large bodies; None: they are kept in memory."""
        folder = self.options.large_messages_folder
        if not folder:
            return None
        from atalanta.client.large.body_file import LargeFile

        return partial(LargeFile, folder, self.options.large_message_max_bytes)

    async def _ask_settles(self) -> None:
        """Records whether the broker is an Atalanta node, which understands `settle`."""
        if self.shell.settles is None:
            self.shell.settles = (await self.query_address(SETTLE_ADDRESS)).exists

    async def request(
        self,
        address: str,
        message: Message | ReceivedMessage,
        timeout_s: float | None = None,
        routing: str | None = None,
    ) -> ReceivedMessage:
        """Sends a request and returns the reply, which the service sends to `reply_to` under the `correlation_id`.

        Raises CallTimedOut after `timeout_s` (callTimeout). `routing` is that of `producer`. A reply that is on its way
        when the connection is lost does not arrive.
        """
        if self._replies is None:
            from atalanta.client.producer import ReplyQueue

            name = f"atalanta.replies.{uuid.uuid4()}"
            await self.create_queue(name, routing=ANYCAST, temporary=True)
            replies = ReplyQueue(self.session, name, await self.consumer(name, ack=AUTO))
            if self._replies is None:  # otherwise a concurrent request was faster
                self._replies = replies
        if timeout_s is None:
            timeout_s = self.options.call_timeout_ms / 1_000
        async with await self.producer(address, routing) as producer:
            return await self._replies.request(producer, message, timeout_s)

    async def subscription(
        self,
        address: str,
        name: str,
        selector: str | None = None,
        ack: str = INDIVIDUAL,
        *,
        shared: bool = False,
        window: int | None = None,
    ) -> Consumer:
        """Returns a consumer of the durable subscription `name`, which is created if it is missing.

        It keeps the messages of the address while it has no consumer, until `unsubscribe`. TooManyConsumers: it has a
        consumer, and is not `shared`. QueueExists: it exists with another address or selector.
        """
        queue = await self.create_subscription(address, name, selector)
        if not shared and (await self.query_queue(queue)).consumer_count > 0:
            raise TooManyConsumers(f"subscription {queue} has a consumer", TOO_MANY_CONSUMERS)
        return await self.consumer(f"{address}::{queue}", ack=ack, window=window)

    async def create_subscription(
        self, address: str, name: str, selector: str | None = None
    ) -> str:
        """Creates the durable subscription `name` if it is missing, and returns the name of its queue."""
        queue = subscription_queue(name, self.options.client_id)
        await self.create_queue(queue, address, MULTICAST, filter=selector, ignore_existing=True)
        found = await self.query_queue(queue)
        if (found.filter or None) != selector or found.address != address:
            raise QueueExists(
                f"subscription {queue} exists for {found.address} with filter {found.filter}", QUEUE_EXISTS
            )
        return queue

    async def unsubscribe(self, name: str) -> None:
        """Deletes the durable subscription `name` and its messages. Raises IllegalState while it has consumers."""
        await self.delete_queue(subscription_queue(name, self.options.client_id))

    def transaction(self) -> Transaction:
        """Returns a transaction: `async with connection.transaction() as tx: await tx.send(address, message)`."""
        from atalanta.client.transactions.transaction import Transaction

        return Transaction(self)

    @property
    def xa_resource(self) -> XaResource:
        """Returns the broker as a resource of XA transactions: its new and its prepared branches."""
        if self._xa_resource is None:
            from atalanta.client.transactions.branch import XaResource

            self._xa_resource = XaResource(self)
        return self._xa_resource

    def logview(self, queue: str, incarnation: str = "") -> LogView:
        """Returns a view that reads `queue` by sequence.

        Its first call raises LogViewUnsupported if the node is not an Atalanta node.
        """
        return LogView(self, queue, incarnation)

    # -- administration -------------------------------------------------------------------------
    def management(self) -> Management:
        """Returns the access to operations and attributes of the broker, its addresses and queues."""
        from atalanta.client.management import Management

        return Management(self)

    async def create_queue(
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
        """Creates a queue of `address` (default: an address of the queue's name).

        A temporary queue ends with the connection and is created again after a reconnect. Raises QueueExists if the
        queue exists, unless `ignore_existing`.
        """
        session = self.session
        packet = CreateQueueV2(
            address=name if address is None else address,
            queue=name,
            filter=filter,
            durable=durable and not temporary,
            temporary=temporary,
            auto_created=auto_created,
            routing_type=_routing_number(routing),
            max_consumers=max_consumers,
            purge_on_no_consumers=purge_on_no_consumers,
        )
        if kind is not None:
            kind.put(packet)
        try:
            await self.shell.answer(session.request(packet, REPEAT, QUEUE_EXISTS))
        except QueueExists:
            if not ignore_existing:
                raise
        if temporary:
            session.keep_temporary(name, packet)

    async def create_shared_queue(
        self,
        name: str,
        address: str,
        routing: str | None = MULTICAST,
        durable: bool = True,
        filter: str | None = None,
        kind: QueueKind | None = None,
    ) -> None:
        """Creates a queue, or accepts an existing one with the same definition (shared subscriptions of JMS 2)."""
        packet = CreateSharedQueueV2(
            address=address,
            queue=name,
            filter=filter,
            durable=durable,
            routing_type=_routing_number(routing),
        )
        if kind is not None:
            kind.put(packet)
        await self.shell.answer(self.session.request(packet))

    async def create_address(self, address: str, *routing: str, auto_created: bool = False) -> None:
        """Creates an address with routing types "anycast", "multicast" or both (default multicast)."""
        numbers = [_routing_number(name) for name in routing or (MULTICAST,)]
        packet = CreateAddress(address=address, routing_types=numbers, auto_created=auto_created)
        await self.shell.answer(self.session.request(packet, REPEAT, ADDRESS_EXISTS))

    async def delete_queue(self, name: str) -> None:
        """Deletes the queue and its messages. Raises IllegalState while it has consumers."""
        session = self.session
        session.temporary.pop(name, None)
        await self.shell.answer(session.request(DeleteQueue(name), REPEAT, QUEUE_DOES_NOT_EXIST))

    async def query_queue(self, name: str) -> QueueQueryResponseV3:
        """Returns the broker's data of a queue; check `exists` first."""
        return await self._ask(QueueQuery(name), QueueQueryResponseV3)

    async def query_address(self, address: str) -> BindingQueryResponseV5:
        """Returns the broker's data of an address; check `exists` first.

        In a cluster the list includes the queues of other nodes, as queue name plus node id. A broker before Artemis
        2.29 does not tell the routing types of an address: both count as supported.
        """
        found = await self._ask(BindingQuery(address), BindingQueryResponseV4)
        if isinstance(found, BindingQueryResponseV5):
            return found
        newest = BindingQueryResponseV5(*found.values())  # type: ignore[arg-type]
        newest.supports_multicast = newest.supports_anycast = True
        return newest

    async def close(self) -> None:
        """Closes the connection. Received messages without acknowledgement return to their queues.

        Messages of `send_soon` that wait for credits are sent before, within 5 s.
        """
        if self._closed:
            return
        self._closed = True
        for consumer in self._cluster_consumers:
            await consumer.close()
        if self.connected:
            try:
                for session in list(self.shell.engine.sessions.values()):
                    for queue in [] if session.transacted else list(session.send_queues.values()):
                        await self.shell.wait(queue.empty(), CLOSE_S)
                    await self.shell.wait(session.close(), CLOSE_S)
            except ClientError:
                pass  # the transport was lost meanwhile: the broker cleans up
        self.shell.engine.close()
        await self.shell.shut()

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.close()

    # -- for the other classes of this package --------------------------------------------------
    async def open_session(self, transacted: bool, xa: bool = False, consuming: bool = False) -> ClientSession:
        """Returns a further session of this connection; `consuming`: that of its consumers outside transactions."""
        settings = self._consuming_settings() if consuming else replace(self._settings(transacted), xa=xa)
        session = self.shell.engine.session(settings)
        self.shell.after_call()
        await self.shell.answer(session.opened)
        return session

    def _consuming_settings(self) -> SessionSettings:
        return replace(self._settings(transacted=False), pre_acknowledge=self.options.pre_acknowledge)

    async def destination(self, address: str, routing: str | None) -> tuple[str, str | None]:
        """Returns name and routing type. A missing address is created if that is allowed."""
        address, routing = _without_prefix(address, routing)
        if routing is None:
            return address, None
        number = _routing_number(routing)
        found = await self.query_address(address)
        if found.exists:
            return address, routing
        if number == ROUTING_NAMES.index(ANYCAST) and self.options.auto_create_queues:
            if found.auto_create_queues:
                await self.create_queue(
                    address, routing=routing, auto_created=True, ignore_existing=True
                )
        elif found.auto_create_addresses and self.options.auto_create_addresses:
            await self.create_address(address, routing, auto_created=True)
        return address, routing

    async def require_log_view(self) -> None:
        """Raises LogViewUnsupported, which names the node, unless the broker is an Atalanta node."""
        if self._log_view is None:
            found = await self.query_address(LOG_VIEW_ADDRESS)
            self.log_columns = found.exists and LOG_COLUMNS in found.queue_names
            self._log_view = found.exists
        if not self._log_view:
            node = str(self.server)
            raise LogViewUnsupported(
                f"{node} is not an Atalanta node: it has no log view, which Spark needs", node
            )

    def _ask_again(self) -> None:
        """Asks again if the broker understands our packets: this may be another broker."""
        self._log_view = None
        if self.shell.settles is not None and not self.session.closed:
            asked = self.session.request(BindingQuery(SETTLE_ADDRESS))
            asked.on_done = partial(_note_settles, self.shell)

    async def _auto_create_queue(self, queue: str, routing: str | None) -> None:
        address, separator, name = queue.partition("::")
        if routing is None:
            routing = ANYCAST
            if separator:
                found = await self.query_address(address)
                if found.exists and not found.supports_anycast:
                    routing = MULTICAST
        await self.create_queue(
            name or address, address, routing, auto_created=True, ignore_existing=True
        )

    async def _ask(self, packet: Packet, kind: type[Answer]) -> Answer:
        answer = await self.shell.answer(self.session.request(packet))
        if not isinstance(answer, kind):
            raise ClientError(f"the broker answered with {answer!r}, not with a {kind.__name__}")
        return answer

    def _settings(self, transacted: bool) -> SessionSettings:
        options = self.options
        return SessionSettings(
            name=str(uuid.uuid4()),
            user=options.user,
            password=options.password,
            auto_commit_sends=not transacted,
            auto_commit_acks=not transacted,
            min_large_message_size=options.min_large_message_size,
            large_message_max=options.large_message_max_bytes,
            producer_window=options.producer_window_size,
            client_id=options.client_id,
            default_address=_preference(options),
            notices=True,
        )


def _without_prefix(name: str, routing: str | None) -> tuple[str, str | None]:
    """Returns the name behind its prefix, and the routing type, which that sets unless it is given."""
    for prefix, kind in PREFIXES.items():
        if name.startswith(prefix):
            name, routing = name.removeprefix(prefix), routing or kind
    return name, routing


def _preference(options: ClientOptions) -> str | None:
    """Returns the address that tells a node where the client wants to be; None: where the cluster wants."""
    if options.stay or not options.reconnects:
        return STAY_ADDRESS
    return f"{ZONES_ADDRESS}{options.zone}" if options.zone else None


def _note_settles(shell: ClientShell, reply: Reply) -> None:
    if isinstance(reply.value, BindingQueryResponseV5):
        shell.settles = reply.value.exists


def subscription_queue(name: str, client_id: str | None) -> str:
    """Returns the queue name of a durable subscription, as in the JMS client.

    (ActiveMQDestination.createQueueNameForSubscription)
    """
    names = [name] if client_id is None else [client_id, name]
    return ".".join(each.replace("\\", "\\\\").replace(".", "\\.") for each in names)


def _routing_number(routing: str | None) -> int:
    if routing is None:
        return NO_ROUTING
    if routing not in ROUTING_NAMES:
        raise ValueError(f"routing={routing!r} is neither 'anycast' nor 'multicast'")
    return ROUTING_NAMES.index(routing)

