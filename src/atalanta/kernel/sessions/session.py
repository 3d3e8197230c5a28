"""The session of a logged-in user, whatever the protocol.

The protocol's own session translates frames into these calls and is the `SessionEndpoint` that gets the answers.
Errors are BrokerError, raised before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

from atalanta.kernel.errors import (
    DUPLICATE_ID,
    FENCED,
    ILLEGAL_STATE,
    MAX_CONSUMERS,
    SECURITY,
    BrokerError,
)
from atalanta.kernel.publish.grouping import Undecided
from atalanta.kernel.queue.consumers import add_consumer
from atalanta.kernel.queue.reference import DELIVERING, Reference
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.registry import queues
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.sessions import full_address, outcomes
from atalanta.kernel.sessions.auto_create import prepare_address
from atalanta.kernel.sessions.group_wait import GroupWait
from atalanta.kernel.sessions.ingress_headers import stamp
from atalanta.kernel.sessions.outcomes import ACCEPT
from atalanta.kernel.sessions.session_consumer import SessionConsumer
from atalanta.kernel.trace import tell
from atalanta.kernel.transactions import xa_session
from atalanta.kernel.transactions.commit import commit_transaction, refuse_duplicate
from atalanta.kernel.transactions.transaction import TRANSACTION_BYTES_MAX, Transaction
from atalanta.message.fqqn import split_fqqn
from atalanta.message.internal_headers import SCALEDOWN_TO, disclaim

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.memory.large_body import LargeBody, LargeStream
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.session_endpoint import SessionEndpoint
    from atalanta.kernel.transactions.xa import Branch
    from atalanta.message.message import Message

PRODUCERS_MAX: Final = 10_000
TRANSACTIONS_MAX: Final = 1_000  # that one session may declare
DRAINS_MAX: Final = 10_000  # that may wait at one queue


class Session:
    """A session. With `auto_commit_sends` / `auto_commit_acks` False, sends / acknowledgements join the transaction."""

    def __init__(
        self,
        broker: Broker,
        client: Client,
        name: str,
        endpoint: SessionEndpoint,
        identity: Identity,
        auto_commit_sends: bool,
        auto_commit_acks: bool,
        pre_acknowledge: bool,
    ) -> None:
        self.broker = broker
        self.client = client
        self.name = name
        self.endpoint = endpoint
        self.identity = identity
        self.auto_commit_sends = auto_commit_sends
        self.auto_commit_acks = auto_commit_acks
        self.pre_acknowledge = pre_acknowledge
        self.consumers: dict[int, Consumer] = {}
        self._acknowledging: Consumer | None = None
        self.transaction = Transaction()
        self.declared: list[Transaction] = []  # open transactions that the protocol names itself
        # The addresses by that name, None for an unknown one; valid for this version of the rules:
        self.may_send: dict[str, Address | None] = {}
        self.rules_version: int = broker.security.version
        self.metadata: dict[str, str] = {}
        self.xa: bool = False
        self.branch: Branch | None = None  # the branch in progress; `transaction` is then the branch's
        self.ended_branch: Branch | None = None  # the branch ended last, until it is committed or rolled back
        self.xa_timeout_s: int = -1
        self.started: bool = False
        self.blocked: bool = False
        self.closed: bool = False
        self.group_wait: GroupWait | None = None
        self.created_at: int = broker.now
        # The client's producers: its number -> (address, time of creation).
        self.producers: dict[int, tuple[str | None, int]] = {}
        broker.clients.opened(self)

    def check(self, permission: str, address: str) -> None:
        """Raises BrokerError SECURITY unless the user has the permission."""
        if not self.broker.security.allowed(self.identity, permission, address):
            self.broker.clients.permissions_refused += 1
            for observer in self.broker.observers:
                observer.on_permission_refused(self.broker.now, self.identity, permission, address)
            raise BrokerError(
                SECURITY,
                f"user {self.identity.user} does not have permission {permission} on address {address}",
            )
        self.broker.clients.permissions_granted += 1

    # -- sending --------------------------------------------------------------------------------
    def send(self, now: int, message: Message, token: int) -> None:
        """Sends a message; `endpoint.done(token)` follows when it is durable (or added to the transaction).

        A message to a service, as management, is answered by that. Headers that only members of the cluster may set are
        removed from the messages of others.
        """
        if message.special:
            if not self.identity.cluster:
                disclaim(message)
            elif message.has_property(SCALEDOWN_TO):
                self.broker.scale_down_target.redirect(now, message)
        address = self.may_send.get(message.address)
        routing_type = message.routing_type
        if (
            address is None
            or address.gone
            or self.rules_version != self.broker.security.version
            or (routing_type == ANYCAST and address.anycast_count == 0)
            or (routing_type >= 0 and not address.supports(routing_type))
        ):
            service = self.broker.services.get(message.address)
            if service is not None:
                service(now, message, self)
                self.endpoint.done(token)
                return
            try:
                prepare_address(self, now, message)
            except BrokerError as error:
                if not self.auto_commit_sends:
                    self.transaction.rollback_only = error
                raise
            address = self.may_send.get(message.address)
        if self.broker.memory.refusing and full_address.refused(self, message, token):
            return
        if self.broker.stamping:
            stamp(self, now, message)
        if self.auto_commit_sends:
            try:
                self.broker.publisher.publish(now, message, self.endpoint, token, address)
            except Undecided as undecided:
                self._send_later(now, undecided, message, token)
        else:
            if not full_address.refused_in_transaction(self, address, message):
                self._send_in_transaction(now, message)
            self.endpoint.done(token)

    def _send_later(self, now: int, undecided: Undecided, message: Message, token: int) -> None:
        """Sends the message again when the queues of its groups are chosen."""

        def retry(then: int) -> None:
            try:
                self.send(then, message, token)
            except BrokerError as error:
                self.endpoint.failed(token, error)

        self.wait_for_groups(now, undecided, message.large, retry)

    def wait_for_groups(
        self, now: int, undecided: Undecided, body: LargeBody | None, retry: Callable[[int], None]
    ) -> None:
        """Holds the client's input until `retry` has processed its request; `body`: of the request's large message."""
        wait = self.group_wait
        if wait is None or wait.ended:
            handler = self.broker.router.grouping
            assert handler is not None
            wait = GroupWait(handler, self.endpoint, self.broker.large, body, retry)
            self.group_wait = wait
            wait.begin()
        wait.ask(now, undecided.ids)

    def waits_for_groups(self) -> bool:
        """Returns True while a request waits for the queues of its message groups."""
        return self.group_wait is not None and not self.group_wait.ended

    def _send_in_transaction(self, now: int, message: Message) -> None:
        transaction = self.transaction
        duplicate_id = message.duplicate_id
        if duplicate_id is not None and not message.has_property(BRIDGE_DUPLICATE):
            name = split_fqqn(message.address)[0]
            cache = self.broker.caches.cache_of(name)
            key = (name, duplicate_id)
            if cache.lsn_of(duplicate_id) >= 0 or key in transaction.duplicate_ids:
                transaction.rollback_only = BrokerError(
                    DUPLICATE_ID,
                    f"duplicate message detected on {name}: message will not be routed",
                )
            transaction.duplicate_ids[key] = True
        transaction.add_send(message)
        self.broker.memory.uncommitted_bytes += message.size
        if self.broker.memory.uncommitted_bytes > TRANSACTION_BYTES_MAX:
            full_address.limit_uncommitted(self, transaction)

    def request_credits(self, address: str, amount: int) -> None:
        full_address.request_credits(self, address, amount)

    # -- consuming ------------------------------------------------------------------------------
    def create_consumer(
        self,
        now: int,
        consumer_id: int,
        queue_name: str,
        filter_text: str | None,
        browse_only: bool,
        priority: int,
    ) -> Queue:
        broker = self.broker
        queue = broker.queue_registry.find(queue_name)
        self.check("browse" if browse_only else "consume", queue.spec.address)
        if consumer_id in self.consumers:
            raise BrokerError(
                ILLEGAL_STATE, f"consumer {consumer_id} already exists in session {self.name}"
            )
        selector = queues.parse_filter(filter_text)
        lease = queue.active_lease()
        if lease is not None and not browse_only:
            raise BrokerError(
                FENCED,
                f"queue {queue.name} is leased to the log-view group {lease.group} of {lease.owner}",
            )
        limit = queue.spec.max_consumers
        if not browse_only and 0 <= limit <= queue.consumer_count():
            raise BrokerError(MAX_CONSUMERS, f"queue {queue.name} already has {limit} consumers")
        consumer = SessionConsumer(self, consumer_id, queue, selector, browse_only, priority)
        consumer.open(now, self.pre_acknowledge)
        consumer.show_started(self.started, self.blocked)
        self.consumers[consumer_id] = consumer
        add_consumer(queue, consumer)
        # No dispatch is needed without credits of the new consumer, unless its arrival has rebalanced the groups.
        if queue.groups is not None:
            broker.dispatches.mark_dirty(queue)
        if not browse_only:
            for observer in broker.observers:
                observer.on_consumer_added(now, consumer)
        return queue

    def consumer(self, consumer_id: int) -> Consumer:
        found = self.consumers.get(consumer_id)
        if found is None:
            raise BrokerError(ILLEGAL_STATE, f"session {self.name} has no consumer {consumer_id}")
        return found

    def add_credits(self, consumer_id: int, amount: int) -> None:
        consumer = self.consumer(consumer_id)
        consumer.add_credits(amount)
        if consumer.stream is not None:
            consumer.stream.pump()
        elif consumer.ready():
            self.broker.dispatches.mark_dirty(consumer.queue)

    def drain(self, now: int, consumer_id: int, token: int) -> None:
        """Delivers all deliverable messages, then calls `endpoint.drained`, at once or in a later batch of inputs."""
        consumer = self.consumer(consumer_id)
        queue = consumer.queue
        if len(queue.drains) >= DRAINS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"queue {queue.name}: too many forced deliveries wait")
        queue.drain(consumer, token)
        self.broker.dispatch(now, queue)

    def start(self) -> None:
        self._set_started(True)

    def stop(self) -> None:
        self._set_started(False)

    def _set_started(self, started: bool) -> None:
        self.started = started
        self._show_started()

    def set_blocked(self, blocked: bool) -> None:
        """Sets whether the client's connection is full; while it is, messages for its consumers stay in the queues."""
        self.blocked = blocked
        self._show_started()

    def _show_started(self) -> None:
        started = self.started and not self.blocked
        for consumer in self.consumers.values():
            stream = consumer.stream
            if stream is not None:
                if not self.blocked:
                    stream.pump()
                continue
            consumer.show_started(self.started, self.blocked)
            if started:
                self.broker.dispatches.mark_dirty(consumer.queue)

    def begin_stream(self, consumer: Consumer, stream: LargeStream) -> None:
        """Begins a large message; until `end_stream` the consumer gets no other message."""
        consumer.begin_stream(stream)

    def end_stream(self, consumer: Consumer) -> None:
        consumer.end_stream(self.started, self.blocked)
        if consumer.started and not consumer.closed:
            self.broker.dispatches.mark_dirty(consumer.queue)

    def close_consumer(self, now: int, consumer_id: int) -> None:
        """Closes a consumer; its unacknowledged messages return to the queue, as if not delivered."""
        consumer = self.consumer(consumer_id)
        del self.consumers[consumer_id]
        self._detach(now, consumer, False)

    def disconnect_consumer(self, now: int, consumer_id: int, why: str) -> None:
        """Closes a consumer for an operator: the client is notified, messages return as after a lost connection."""
        consumer = self.consumer(consumer_id)
        consumer.endpoint.consumer_gone(consumer, why)
        self.consumers.pop(consumer_id, None)
        self._detach(now, consumer, True)

    def add_producer(self, now: int, producer_id: int, address: str | None) -> None:
        """Records a producer for the lists of management, up to PRODUCERS_MAX per session."""
        if len(self.producers) < PRODUCERS_MAX:
            self.producers[producer_id] = (address, now)

    def _detach(self, now: int, consumer: Consumer, failed: bool) -> None:
        queue = consumer.queue
        consumer.close()
        if consumer.stream is not None:
            consumer.stream.abort()
        held = consumer.unacknowledged.values()
        consumer.unacknowledged.clear()
        if queue.deleted:
            return
        self.broker.queue_registry.remove_consumer(now, queue, consumer)
        back: list[Reference] = []
        for reference in held:
            if reference.state != DELIVERING:
                continue
            if not failed:
                reference.uncount_delivery()
            back.append(reference)
            if self.broker.trace.on:
                tell(self.broker.trace, "story_given_back", reference.message, queue.name)
        self.broker.redelivery.redeliver(now, back, False)
        self.broker.dispatches.mark_dirty(queue)
        if queue.consumer_count() > 0:
            return
        if queue.spec.transient:
            self.broker.queue_registry.delete(now, queue.name, "last consumer left")
        elif queue.spec.purge_on_no_consumers:
            self.broker.mover.purge(queue, "purged without consumers")

    def expire(self, now: int, consumer_id: int, message_id: int) -> None:
        """Expires a message that the client found expired."""
        consumer = self.consumer(consumer_id)
        reference = consumer.unacknowledged.pop(message_id)
        if reference is None:
            return
        # A message of a non-destructive queue may be in a page file, or wait for one: it expires when it is read.
        if reference.state == DELIVERING or consumer.queue.has(reference):
            self.broker.expiry.expire(now, [reference])

    # -- acknowledging --------------------------------------------------------------------------
    def acknowledge(
        self, now: int, consumer_id: int, message_id: int, individual: bool, token: int
    ) -> None:
        """Acknowledges all deliveries to the consumer up to the message, or with `individual` only that one."""
        consumer = self._acknowledging  # usually the same as before
        if consumer is None or consumer.id != consumer_id or consumer.closed:
            consumer = self.consumers.get(consumer_id)
            if consumer is None:
                self._refuse_acknowledge(f"session {self.name} has no consumer {consumer_id}")
            self._acknowledging = consumer
        held = consumer.unacknowledged
        first = held.pop_first(message_id)
        if first is not None:
            if self.auto_commit_acks:
                self.broker.store.acknowledge_one(first, self.endpoint, token)
            else:
                self.transaction.add_acknowledged(first)
                self.endpoint.done(token)
            return
        taken: list[Reference] = []
        if individual:
            reference = held.pop(message_id)
            if reference is not None:
                taken.append(reference)
        else:
            taken = held.pop_through(message_id)
        if not taken:
            if consumer.pre_acknowledge or consumer.browse_only:
                self.endpoint.done(token)
                return
            self._refuse_acknowledge(
                f"message {message_id} is not delivered to consumer {consumer_id}: cannot acknowledge"
            )
        if self.auto_commit_acks:
            self.broker.store.acknowledge(taken, self.endpoint, token)
        else:
            for reference in taken:
                self.transaction.add_acknowledged(reference)
            self.endpoint.done(token)

    def _refuse_acknowledge(self, text: str) -> NoReturn:
        """Fails the transaction, which must not commit without an acknowledgement (ServerConsumerImpl.acknowledge)."""
        error = BrokerError(ILLEGAL_STATE, text)
        if not self.auto_commit_acks:
            self.transaction.rollback_only = error
        raise error

    def settle(
        self, now: int, consumer_id: int, message_id: int, outcome: int, token: int
    ) -> None:
        """Accepts, releases or rejects one delivery (kernel/sessions/outcomes.py)."""
        if outcome == ACCEPT:
            self.acknowledge(now, consumer_id, message_id, True, token)
        else:
            outcomes.give_up(self, now, consumer_id, message_id, outcome, token)

    # -- transactions ---------------------------------------------------------------------------
    def declare(self) -> Transaction:
        """Opens another transaction, for protocols with several in a session; `use` makes it the current one."""
        if len(self.declared) >= TRANSACTIONS_MAX:
            raise BrokerError(
                ILLEGAL_STATE, f"session {self.name} has {TRANSACTIONS_MAX} transactions already"
            )
        transaction = Transaction()
        self.declared.append(transaction)
        return transaction

    def use(self, transaction: Transaction | None) -> None:
        """Makes later sends and acknowledgements part of a declared transaction; None: of none."""
        if self.xa or (transaction is not None and transaction not in self.declared):
            raise BrokerError(ILLEGAL_STATE, f"session {self.name}: no such transaction")
        self.transaction = Transaction() if transaction is None else transaction
        self.auto_commit_sends = transaction is None
        self.auto_commit_acks = transaction is None

    def discharge(self, now: int, transaction: Transaction, committed: bool, token: int) -> None:
        """Commits or rolls back a declared transaction; `endpoint.done(token)` follows, for a commit when it is
        durable.

        A refused commit raises BrokerError and rolls back. Messages that are not acknowledged stay delivered.
        """
        if transaction not in self.declared:
            raise BrokerError(ILLEGAL_STATE, f"session {self.name}: no such transaction")
        if committed:
            commit_transaction(self, now, transaction, self.endpoint, token, "", 0, 0)
        else:
            self.roll_back(now, transaction, False)
            self.endpoint.done(token)

    def open_transactions(self) -> list[Transaction]:
        """Returns the current transaction and all declared ones."""
        if not self.declared:
            return [self.transaction]
        others = [each for each in self.declared if each is not self.transaction]
        return [self.transaction, *others]

    def commit(self, now: int, token: int) -> None:
        """Commits the transaction in one record; `endpoint.done(token)` when durable. DUPLICATE_ID rolls back."""
        self._refuse_in_branch()
        commit_transaction(self, now, self.transaction, self.endpoint, token, "", 0, 0)

    def _refuse_in_branch(self) -> None:
        if self.branch is not None:
            raise BrokerError(ILLEGAL_STATE, "a distributed transaction is committed by its xid")

    def commit_sink(self, now: int, token: int, query: str, batch: int, partition: int) -> None:
        """Commits under a sink id: DUPLICATE_ID if the batch is not newer than the last of that query and partition.

        The newest batch per query and partition is kept (kernel/transactions/sinks.py), in the record of the messages.
        """
        self._refuse_in_branch()
        sinks = self.broker.sinks
        if batch <= sinks.newest(query, partition):
            refuse_duplicate(
                self,
                now,
                self.transaction,
                self.endpoint,
                token,
                sinks.lsn_of(query, partition),
                f"batch {batch} of query {query} partition {partition} was committed before",
            )
            return
        commit_transaction(self, now, self.transaction, self.endpoint, token, query, batch, partition)

    def rollback(self, now: int, last_as_delivered: bool, token: int) -> None:
        if self.branch is not None:
            xa_session.local_rollback(self, now)
        self.roll_back(now, self.transaction, last_as_delivered)
        self.endpoint.done(token)

    def roll_back(self, now: int, transaction: Transaction, last_as_delivered: bool) -> None:
        """Drops the sends; acknowledged messages return as redelivered, prefetched ones as new.

        Follows ServerSessionImpl.rollback: with `last_as_delivered` the first prefetched message counts as delivered.
        """
        declared = transaction in self.declared
        self.begin_after(transaction)
        if declared:
            self.broker.redelivery.redeliver(now, transaction.acknowledged, True)
        else:
            self.give_back_prefetched(now, transaction.acknowledged, last_as_delivered)

    def begin_after(self, transaction: Transaction) -> None:
        """Ends a transaction. A new one follows the session's own; after a declared one no transaction is current."""
        declared = transaction in self.declared
        if declared:
            self.declared.remove(transaction)
        if transaction is self.transaction:
            self.transaction = Transaction()
            if declared:
                self.use(None)

    def give_back_prefetched(
        self, now: int, acknowledged: list[Reference], last_as_delivered: bool
    ) -> None:
        """Returns acknowledged messages to their queues as redelivered, and prefetched ones as new."""
        back: list[Reference] = list(acknowledged)
        for consumer in self.consumers.values():
            first = last_as_delivered
            if consumer.stream is not None:
                consumer.stream.abort()  # the large message is delivered again from its beginning
            if consumer.queue.keeps_messages:
                self._show_again(consumer)
            for reference in consumer.unacknowledged.values():
                if not first:
                    reference.uncount_delivery()
                first = False
                back.append(reference)
            consumer.unacknowledged.clear()
        self.broker.redelivery.redeliver(now, back, True)

    def _show_again(self, consumer: Consumer) -> None:
        """Delivers prefetched messages of a non-destructive queue to this consumer again."""
        for reference in consumer.unacknowledged.values():
            consumer.look_again(reference.sequence)
        consumer.unacknowledged.clear()
        self.broker.dispatches.mark_dirty(consumer.queue)

    # -- the end --------------------------------------------------------------------------------
    def close(self, now: int, failed: bool) -> None:
        """Rolls back the transaction and removes the consumers; `failed`: the connection was lost, not closed."""
        if self.closed:
            return
        self.closed = True
        if self.group_wait is not None:
            self.group_wait.end()
        for transaction in list(self.declared):
            self.roll_back(now, transaction, False)
        if self.xa:
            xa_session.leave(self, now, failed)
        elif not failed:
            self.roll_back(now, self.transaction, False)  # ServerSessionImpl.doClose
        acknowledged = self.transaction.acknowledged
        self.transaction = Transaction()
        for consumer in list(self.consumers.values()):
            self._detach(now, consumer, failed)
        self.consumers.clear()
        self.broker.redelivery.redeliver(now, acknowledged, True)
        self.broker.memory.forget(self.endpoint)
        self.client.sessions.pop(self.name, None)
        for observer in self.broker.observers:
            observer.on_session_closed(now, self)
