"""The session of a logged-in user, whatever the protocol.

The protocol's own session translates frames into these calls and is the `SessionEndpoint` that gets the answers.
Errors are BrokerError, raised before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

from atalanta.kernel.endpoint import DROPPED
from atalanta.kernel.errors import (
    ADDRESS_FULL,
    ILLEGAL_STATE,
    BrokerError,
)
from atalanta.kernel.publish.duplicate_detection import keep_apart
from atalanta.kernel.publish.grouping import Undecided
from atalanta.kernel.publish.named_queues import disclaim_unless_manager
from atalanta.kernel.queue.consumers import add_consumer
from atalanta.kernel.queue.reference import DELIVERING, Reference
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.registry.queues import parse_filter
from atalanta.kernel.sessions.auto_create import SendAddresses
from atalanta.kernel.sessions.request_wait import RequestWait
from atalanta.kernel.sessions.session_consumer import (
    LaterDrain,
    SessionConsumer,
    check_consumer_allowed,
)
from atalanta.kernel.sessions.session_producers import SessionProducers
from atalanta.kernel.transactions.owner import TransactionOwner
from atalanta.kernel.transactions.transaction import SessionTransaction
from atalanta.message.fqqn import join_fqqn, split_fqqn
from atalanta.message.internal_headers import SCALEDOWN_TO, disclaim
from atalanta.message.message import ROUTE_TO

if TYPE_CHECKING:
    from atalanta.kernel.errors import Postponed
    from atalanta.kernel.memory.large_body import LargeBody, LargeStream
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.spec import QueueSpec
    from atalanta.kernel.security.security import Identity
    from atalanta.kernel.sessions.client import Client
    from atalanta.kernel.sessions.services import SessionServices
    from atalanta.kernel.sessions.session_endpoint import SessionEndpoint
    from atalanta.kernel.transactions.xa import XaBranch
    from atalanta.message.message import Message

DRAINS_MAX: Final = 10_000  # that may wait at one queue
DRAIN_WAIT_NS: Final = 1_000_000_000


class Session(TransactionOwner):
    """A session of a client.

    `addresses` are those it has sent to.
    """

    def __init__(
        self,
        services: SessionServices,
        client: Client,
        name: str,
        endpoint: SessionEndpoint,
        identity: Identity,
        auto_commit_sends: bool,
        auto_commit_acks: bool,
        pre_acknowledge: bool,
    ) -> None:
        services.command.begin_change()
        super().__init__(name, auto_commit_sends, auto_commit_acks)
        self.services: SessionServices = services
        self.client: Client = client
        self.endpoint: SessionEndpoint = endpoint
        self.identity: Identity = identity
        self.pre_acknowledge = pre_acknowledge
        self.consumers: dict[int, SessionConsumer] = {}
        self._acknowledging: SessionConsumer | None = None
        self.addresses = SendAddresses(services.security.version)
        self.metadata: dict[str, str] = {}
        self.started: bool = False
        self.blocked: bool = False
        self.closed: bool = False
        self.request_wait: RequestWait | None = None
        self.created_at: int = services.store.now
        self.producers: SessionProducers = SessionProducers(services.clients)
        services.clients.opened(self)

    def check(self, permission: str, address: str) -> None:
        """Raises BrokerError SECURITY unless the user has the permission on the address or FQQN."""
        services = self.services
        services.permissions.check(services.store.now, self.identity, permission, address)

    # -- queues ---------------------------------------------------------------------------------
    def create_queue(self, now: int, spec: QueueSpec) -> Queue:
        """Creates a queue for the client, if its user may; a temporary one ends with the connection."""
        return self.services.queues.create(now, self.identity, self.client, spec)

    def take_over_queue(self, now: int, former: Session, name: str) -> None:
        """Takes a temporary destination of another connection, if the user may create it."""
        self.services.queues.take_over(now, self.identity, self.client, former.client, name)

    def delete_queue(self, now: int, name: str) -> None:
        """Deletes a queue without consumers, if the user may."""
        self.services.queues.delete(now, self.identity, self.client, name)

    # -- sending --------------------------------------------------------------------------------
    def send(self, now: int, message: Message, token: int) -> None:
        """Sends a message; `endpoint.done(token)` follows when it is durable (or added to the transaction).

        A message to a service, as management, is answered by that. Headers that only members of the cluster may set are
        removed from the messages of others.
        """
        services = self.services
        peer = self.identity.cluster
        if message.special:
            if not peer:
                if message.has_property(ROUTE_TO):
                    self._disclaim(message)
                else:
                    disclaim(message)
                if message.has_property(BRIDGE_DUPLICATE):
                    keep_apart(services.permissions, self.identity, services.config.management_address, message)
            elif message.has_property(SCALEDOWN_TO):
                services.scale_down_target.redirect(now, message)
        addresses = self.addresses
        address = addresses.by_name.get(message.address)
        if address is None or services.request_prefixes:
            handler = services.request_handler(message.address)
            if handler is not None:
                handler(now, message, self)
                self.endpoint.done(token)
                return
        routing_type = message.routing_type
        try:
            if (
                address is None
                or address.gone
                or addresses.rules_version != services.security.version
                or (routing_type == ANYCAST and address.anycast_count == 0)
                or (routing_type >= 0 and not address.supports(routing_type))
                or (routing_type < 0 and address.local_count == 0)
            ):
                address = services.auto_creation.prepare(
                    now, self.identity, self.client, addresses, message
                )
            if services.memory.refusing and services.full_addresses.drops(
                message, peer, self.endpoint
            ):
                self._dropped(message, token)
                return
            if services.ingress_headers.wanted:
                services.ingress_headers.add(now, self.identity, message)
            if not self.auto_commit_sends:
                if services.transaction_sends.add(self.identity, self.transaction, address, message):
                    self.endpoint.done(token)
                else:
                    self._dropped(message, token)
                return
        except BrokerError as error:
            if not self.auto_commit_sends:
                self.transaction.rollback_only = error
            raise
        try:
            copies = services.publisher.publish(now, message, self.endpoint, token, address)
            if copies > 1:
                services.fan_out.count(self.endpoint, copies)
        except Undecided as undecided:
            self._send_later(now, undecided, message, token)

    def _disclaim(self, message: Message) -> None:
        """Removes the headers of members from a message that names queues, unless its user may name them."""
        services = self.services
        management = services.config.management_address
        try:
            disclaim_unless_manager(
                services.permissions, self.identity, management, services.publisher.queues_by_id, message
            )
        except BrokerError as unknown:
            if not self.auto_commit_sends:
                self.transaction.rollback_only = unknown
            raise

    def _dropped(self, message: Message, token: int) -> None:
        """Confirms a message that a full address has dropped; who takes notices is told, or cannot commit."""
        if self.endpoint.takes_notices():
            if self.auto_commit_sends:
                self.endpoint.notice(token, DROPPED)
            else:
                name = split_fqqn(message.address)[0]
                why = f"AMQ229102: address {name} is full and has dropped a message of the transaction"
                self.transaction.rollback_only = BrokerError(ADDRESS_FULL, why)
        self.endpoint.done(token)

    def _send_later(self, now: int, undecided: Undecided, message: Message, token: int) -> None:
        """Sends the message again when the queues of its groups are chosen."""

        def retry(then: int) -> None:
            try:
                self.send(then, message, token)
            except BrokerError as error:
                self.endpoint.failed(token, error)

        self.wait(now, undecided, message.large, retry)

    def wait(self, now: int, postponed: Postponed, body: LargeBody | None, retry: Callable[[int], None]) -> None:
        """Holds the client's input until `retry` has processed its request; `body`: of the request's large message.

        The copies of one message for several destinations wait one after the other.
        """
        wait = self.request_wait
        if wait is None or not wait.active:
            services, client = self.services, self.client
            wait = RequestWait(
                services.unfinished, services.publisher.router.grouping, self.endpoint, services.command,
                services.large, body, retry,
                lambda then, error: services.close_failed(then, client, "a request that has waited", error),
            )  # fmt: skip
            self.request_wait = wait
        elif not wait.trying:
            wait.add(body, retry)
            return
        wait.wait(now, postponed)

    def waits(self) -> bool:
        """Returns True while a request waits, and holds the client's input."""
        return self.request_wait is not None and self.request_wait.active

    def request_credits(self, address: str, amount: int, since: int = -1) -> None:
        """Grants producer credits by `endpoint.credits`, now or when memory allows.

        `since` (ns): when the sender began to wait, if its wait has an end: `endpoint.overdue` follows.
        """
        peer = self.identity.cluster
        # What it changes is the endpoint's own, and is forgotten with it (Memory.forget).
        self.services.full_addresses.request_credits(self.endpoint, peer, address, amount, since)

    # -- consuming ------------------------------------------------------------------------------
    def create_consumer(
        self,
        now: int,
        consumer_id: int,
        queue_name: str,
        filter_text: str | None,
        browse_only: bool,
        priority: int,
        claims: bool = False,
    ) -> Queue:
        """Creates a consumer; with `claims` it wants the queue for itself. BrokerError if the user may not."""
        services = self.services
        queue = services.queue_registry.find(queue_name)
        permission = "browse" if browse_only else "consume"
        self.check(permission, join_fqqn(queue.spec.address, queue.name))
        if consumer_id in self.consumers:
            raise BrokerError(
                ILLEGAL_STATE, f"consumer {consumer_id} already exists in session {self.name}"
            )
        selector = parse_filter(filter_text)
        if not browse_only:
            check_consumer_allowed(now, queue)
        services.command.begin_change()
        consumer = SessionConsumer(self, consumer_id, queue, selector, browse_only, priority, claims)
        consumer.reserved_bytes = self.client.consumer_memory.reserve(filter_text)
        consumer.open(now, services.clients.take_number(), self.pre_acknowledge)
        consumer.show_started(self.started, self.blocked)
        self.consumers[consumer_id] = consumer
        add_consumer(queue, consumer)
        # No dispatch is needed without credits of the new consumer, unless its arrival has rebalanced the groups.
        if queue.groups is not None:
            services.dispatches.mark_dirty(queue)
        if not browse_only:
            for observer in services.observers:
                observer.on_consumer_added(now, consumer)
        return queue

    def count_messages(self, consumer_id: int, prefetch: int, pending_max: int) -> None:
        """Makes the credits of a new consumer count messages.

        `prefetch`: its window; `pending_max`: how many messages at most wait beyond that, where its topic limits them
        (0: as many as the topic says).
        """
        consumer = self.consumer(consumer_id)
        consumer.count_messages(prefetch)
        limit = consumer.queue.pending_limit
        if limit is not None:
            limit.take_consumer(prefetch, pending_max)

    def consumer(self, consumer_id: int) -> SessionConsumer:
        found = self.consumers.get(consumer_id)
        if found is None:
            raise BrokerError(ILLEGAL_STATE, f"AMQ229028: session {self.name} has no consumer {consumer_id}")
        return found

    def add_credits(self, consumer_id: int, amount: int) -> None:
        consumer = self.consumer(consumer_id)
        self.services.command.begin_change()
        consumer.add_credits(amount)
        if consumer.stream is not None:
            consumer.stream.pump()
        elif consumer.ready():
            self.services.dispatches.mark_dirty(consumer.queue)

    def drain(self, now: int, consumer_id: int, token: int) -> None:
        """Delivers all deliverable messages, then calls `endpoint.drained`, at once or in a later batch of inputs.

        It waits for messages that are on their way to the queue: a client in an XA session does not wait for its sends.
        If the consumer's window is used up, it waits up to DRAIN_WAIT_NS for credits.
        """
        consumer = self.consumer(consumer_id)
        queue = consumer.queue
        if len(queue.drains) >= DRAINS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"queue {queue.name}: more than {DRAINS_MAX} drains wait")
        self.services.command.begin_change()
        deadline = now + DRAIN_WAIT_NS
        if queue.pending > 0:
            self.services.store.reply_when_entered(LaterDrain(consumer, deadline), token)
            return
        queue.drain(consumer, token, deadline)
        self.services.dispatch(now, queue)

    def start(self) -> None:
        self._set_started(True)

    def stop(self) -> None:
        self._set_started(False)

    def _set_started(self, started: bool) -> None:
        self.services.command.begin_change()
        self.started = started
        self._show_started()

    def set_blocked(self, blocked: bool) -> None:
        """Sets whether the client's connection is full; while it is, messages for its consumers stay in the queues."""
        self.blocked = blocked
        self._show_started()

    def _show_started(self) -> None:
        for consumer in self.consumers.values():
            stream = consumer.stream
            if stream is not None:
                if not self.blocked:
                    stream.pump()
                continue
            consumer.show_started(self.started, self.blocked)
            if consumer.started:
                self.services.dispatches.mark_dirty(consumer.queue)

    def begin_stream(self, consumer: QueueConsumer, stream: LargeStream) -> None:
        """Begins a large message; until `end_stream` the consumer gets no other message."""
        consumer.begin_stream(stream)

    def end_stream(self, consumer: QueueConsumer) -> None:
        consumer.end_stream(self.started, self.blocked)
        if consumer.started and not consumer.closed:
            self.services.dispatches.mark_dirty(consumer.queue)

    def close_consumer(self, now: int, consumer_id: int, counted: bool = False) -> None:
        """Closes a consumer; its unacknowledged messages return to the queue, as if not delivered.

        With `counted` they count as delivered: a protocol knows better which the application has seen.
        """
        consumer = self.consumer(consumer_id)
        self.services.command.begin_change()
        del self.consumers[consumer_id]
        consumer.remove(now, self.services, counted)

    def disconnect_consumer(self, now: int, consumer_id: int, why: str) -> None:
        """Closes a consumer for an operator: the client is notified, messages return as after a lost connection."""
        consumer = self.consumer(consumer_id)
        self.services.command.begin_change()
        consumer.endpoint.consumer_gone(consumer, why)
        self.consumers.pop(consumer_id, None)
        consumer.remove(now, self.services, True)

    def expire(self, now: int, consumer_id: int, message_id: int) -> None:
        """Expires a message that the client found expired."""
        consumer = self.consumer(consumer_id)
        self.services.command.begin_change()
        reference = consumer.unacknowledged.pop(message_id)
        if reference is None:
            return
        # A message of a non-destructive queue may be in a page file, or wait for one: it expires when it is read.
        if reference.state == DELIVERING or consumer.queue.has(reference):
            self.services.expiry.expire(now, [reference])

    # -- acknowledging --------------------------------------------------------------------------
    def acknowledge(
        self, now: int, consumer_id: int, message_id: int, individual: bool, token: int
    ) -> None:
        """Acknowledges all deliveries to the consumer up to the message, or with `individual` only that one."""
        consumer = self._acknowledging  # usually the same as before
        if consumer is None or consumer.id != consumer_id or consumer.closed:
            consumer = self.consumers.get(consumer_id)
            if consumer is None:
                self._refuse_acknowledge(f"AMQ229028: session {self.name} has no consumer {consumer_id}")
            self._acknowledging = consumer
        self.services.command.begin_change()
        held = consumer.unacknowledged
        first = held.pop_first(message_id)
        if first is not None:
            consumer.counts.acknowledged_at = now
            if self.auto_commit_acks:
                self.services.store.acknowledge_one(first, self.endpoint, token)
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
                f"AMQ229027: message {message_id} is not delivered to consumer {consumer_id}: cannot acknowledge"
            )
        consumer.counts.acknowledged_at = now
        if self.auto_commit_acks:
            self.services.store.acknowledge(taken, self.endpoint, token)
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
        self,
        now: int,
        consumer_id: int,
        message_id: int,
        reject: bool,
        delay_ms: int,
        token: int,
        cause: str = "",
    ) -> None:
        """Gives back one delivery, like a rollback of it alone; `endpoint.done(token)` follows when that is durable.

        The attempt counts. `delay_ms` replaces the redelivery-delay of the address unless it is negative. With `reject`
        the message goes to the dead-letter address at once, and `cause` with it. No transaction has a part in it.
        BrokerError ILLEGAL_STATE: the message is not delivered to the consumer.
        """
        services = self.services
        consumer = self.consumer(consumer_id)
        services.command.begin_change()
        reference = consumer.unacknowledged.pop(message_id)
        if reference is None:
            raise BrokerError(
                ILLEGAL_STATE, f"AMQ229027: message {message_id} is not delivered to consumer {consumer_id}"
            )
        consumer.counts.acknowledged_at = now
        if reject:
            if reference.state == DELIVERING or consumer.queue.has(reference):
                services.dead_letters.move(now, reference, "rejected by its consumer", cause)
        elif reference.state == DELIVERING:
            services.redelivery.redeliver(now, [reference], True, delay_ms)
        elif consumer.queue.keeps_messages:
            consumer.rewind(reference.sequence)
            services.dispatches.mark_dirty(consumer.queue)
        services.store.reply_when_durable(services.store.journal.last, self.endpoint, token)

    def body_damaged(self, now: int, consumer: QueueConsumer, reference: Reference) -> None:
        """Sets a message aside whose body cannot be delivered to the consumer; not for a browser."""
        if not consumer.browse_only and consumer.unacknowledged.pop(reference.message.id) is not None:
            self.services.redelivery.set_damaged_aside(now, reference)

    # -- transactions ---------------------------------------------------------------------------
    def discharge(self, now: int, transaction: SessionTransaction, committed: bool, token: int) -> None:
        """Commits or rolls back a declared transaction; `endpoint.done(token)` follows, for a commit when it is
        durable.

        A refused commit raises BrokerError and rolls back. Messages that are not acknowledged stay delivered.
        """
        self.check_declared(transaction)
        if committed:
            self.services.commits.commit(self, now, transaction, self.endpoint, token)
        else:
            self.roll_back(now, transaction, False)
            self.endpoint.done(token)

    def commit(self, now: int, token: int) -> None:
        """Commits the transaction in one record; `endpoint.done(token)` when durable. DUPLICATE_ID rolls back."""
        self._check_no_branch()
        self.services.commits.commit(self, now, self.transaction, self.endpoint, token)

    def _check_no_branch(self) -> None:
        if self.branch is not None:
            raise BrokerError(ILLEGAL_STATE, "a distributed transaction is committed by its xid")

    def enter_branch(self, branch: XaBranch | None) -> None:
        """Makes the session work in `branch`; None: in no transaction."""
        self.services.command.begin_change()
        self.enter(self.client.connection, branch)

    def rollback(self, now: int, last_as_delivered: bool, token: int) -> None:
        """Rolls back the current transaction, and the branch of a client that abandoned it."""
        self.services.command.begin_change()
        if self.branch is not None:
            self.services.branches.abandon(now, self.branch)
            self.enter_branch(None)
        self.roll_back(now, self.transaction, last_as_delivered)
        self.endpoint.done(token)

    def roll_back(self, now: int, transaction: SessionTransaction, last_as_delivered: bool) -> None:
        """Drops the sends; acknowledged messages return as redelivered, prefetched ones as new.

        Follows ServerSessionImpl.rollback: with `last_as_delivered` the first prefetched message counts as delivered.
        """
        self.services.command.begin_change()
        declared = transaction in self.declared
        self.end_transaction(transaction)
        if declared:
            self.services.redelivery.redeliver(now, transaction.acknowledged, True)
        else:
            self.give_back_prefetched(now, transaction.acknowledged, last_as_delivered)

    def give_back_prefetched(
        self, now: int, acknowledged: list[Reference], last_as_delivered: bool
    ) -> None:
        """Returns acknowledged messages to their queues as redelivered, and prefetched ones as new."""
        back: list[Reference] = list(acknowledged)
        for consumer in self.consumers.values():
            back.extend(consumer.take_prefetched(last_as_delivered))
            if consumer.queue.keeps_messages:
                self.services.dispatches.mark_dirty(consumer.queue)
        self.services.redelivery.redeliver(now, back, True)

    # -- the end --------------------------------------------------------------------------------
    def close(self, now: int, failed: bool) -> None:
        """Rolls back the transaction and removes the consumers; `failed`: the connection was lost, not closed."""
        if self.closed:
            return
        self.services.command.begin_change()
        self.closed = True
        if self.request_wait is not None:
            self.request_wait.end()
        for transaction in list(self.declared):
            self.roll_back(now, transaction, False)
        if self.xa:
            self._leave_branches(now, failed)
        elif not failed:
            self.roll_back(now, self.transaction, False)  # ServerSessionImpl.doClose
        acknowledged = self.transaction.acknowledged
        self.transaction = SessionTransaction()
        for consumer in list(self.consumers.values()):
            consumer.remove(now, self.services, failed)
        self.consumers.clear()
        self.services.redelivery.redeliver(now, acknowledged, True)
        self.services.memory.forget(self.endpoint)
        self.client.sessions.pop(self.name, None)
        self.services.clients.closed(now, self)

    def _leave_branches(self, now: int, failed: bool) -> None:
        """Leaves the session's branches; those of a lost client are rolled back unless they are prepared.

        After an orderly close any session may end the branches.
        """
        if failed:
            for branch in (self.branch, self.ended_branch):
                if branch is not None:
                    self.services.branches.abandon(now, branch)
        self.enter_branch(None)
        self.ended_branch = None
