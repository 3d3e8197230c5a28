"""One direction of a network bridge: messages of this broker for the consumers of another one, without sockets.

Follows DemandForwardingBridgeSupport of ActiveMQ Classic. The owner of the connection gives it what it reads of the
other broker, and sends what `BridgePeer` gets. The end that dials has one, and for `duplex` the end that accepts.
A message is acknowledged here when the other broker has answered that it has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.kernel.errors import BrokerError
from atalanta.kernel.security.security import CONSUME
from atalanta.wire.openwire.bridge_filter import returning_selector
from atalanta.wire.openwire.broker_path import longer_path
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo, RemoveSubscriptionInfo
from atalanta.wire.openwire.commands.deliveries import MessageAck, MessageDispatch
from atalanta.wire.openwire.commands.identifiers import BrokerId, ConnectionId, ConsumerId
from atalanta.wire.openwire.commands.producers import DestinationInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.conversion.destination import (
    is_queue,
    is_temporary,
    of_kind,
    text_of_destination,
)
from atalanta.wire.openwire.conversion.message_id import id_text
from atalanta.wire.openwire.server.bridge.demand_shares import DemandShares
from atalanta.wire.openwire.server.bridge.demand_table import DemandTable
from atalanta.wire.openwire.server.bridge.forwarded_message import forwarded_message
from atalanta.wire.openwire.server.bridge.kept_subscriptions import KeptSubscriptions
from atalanta.wire.openwire.server.bridge.local_side import LocalSide
from atalanta.wire.openwire.server.bridge.neighbour import CONSUMERS_TOPIC
from atalanta.wire.openwire.server.bridge.node_demands import DemandOwner
from atalanta.wire.openwire.server.bridge.rules import PRIORITY_MIN
from atalanta.wire.openwire.server.requests.acknowledgements import INDIVIDUAL, POISON
from atalanta.wire.openwire.server.requests.commands import ADD, REMOVE, TEMPORARY_MAX
from atalanta.wire.openwire.server.requests.consumers import remove_consumer
from atalanta.wire.openwire.server.sessions.subscription import NOTHING_DELIVERED

if TYPE_CHECKING:
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.openwire.commands.brokers import BrokerSubscriptionInfo
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import MessageId, ProducerId
    from atalanta.wire.openwire.encoding.structure import Command, DataStructure
    from atalanta.wire.openwire.encoding.throwable import Throwable
    from atalanta.wire.openwire.server.bridge.demand import Demand
    from atalanta.wire.openwire.server.bridge.node_bridges import NodeBridges
    from atalanta.wire.openwire.server.bridge.refusals import Refusals
    from atalanta.wire.openwire.server.bridge.rules import BridgeRules
    from atalanta.wire.server import WireServer

SHOWN_MAX: Final = 500  # characters of a destination, and of a reason, that are told and remembered


@mypyc_attr(allow_interpreted_subclasses=True)
class BridgePeer:
    """The connection to the other broker, as the bridge uses it."""

    def send_to_peer(self, command: Command) -> None:
        """Sends a command. EncodeError: nothing was sent."""
        raise NotImplementedError

    def take_command_id(self) -> int:
        """Returns the number of the next command that wants an answer."""
        raise NotImplementedError

    def is_full(self) -> bool:
        """Returns True if enough bytes wait to be written in this batch of inputs."""
        return False

    def flush_later(self) -> None:
        """Asks for a flush at the end of this batch of inputs, though nothing is written."""
        raise NotImplementedError

    def bridge_failed(self, why: str) -> None:
        """Ends the connection; it may be opened again later."""
        raise NotImplementedError

    def tell(self, event: str, why: str) -> None:
        """Reports an event of the bridge to the operator."""
        raise NotImplementedError


class Sent:
    """A message that the other broker has not answered."""

    def __init__(self, demand: Demand, destination: ActiveMQDestination | None, message_id: MessageId | None) -> None:
        self.demand = demand
        self.destination = destination
        self.message_id = message_id


@mypyc_attr(allow_interpreted_subclasses=True)
class DemandBridge(DemandOwner):
    """The bridge from this broker to `remote`, with the rights of `identity` here.

    `unanswered`: by number of the command. `settled`: sent without an answer, or not to be sent. `forwarded` counts
    messages. `rules_version`: of the permissions that were asked last. `other_ways`: the temporary
    destinations of the other broker that this one has otherwise.
    """

    def __init__(
        self, host: WireServer, shared: NodeBridges, peer: BridgePeer, rules: BridgeRules, remote: BrokerId,
        producer_id: ProducerId, refusals: Refusals, identity: Identity,
    ) -> None:  # fmt: skip
        self.host = host
        self.shared = shared
        self.peer = peer
        self.rules = rules
        self.own = BrokerId(host.broker.node_id)
        self.remote = remote
        self.producer_id = producer_id
        self.refusals = refusals
        broker = host.broker
        client_id = rules.names.local_client_id()
        self.local: LocalSide = LocalSide(host, shared, host.broker.now, client_id, identity, self)
        self.kept = KeptSubscriptions(broker.queue_registry, broker.security, client_id, identity)
        self.rules_version: int = broker.security.version
        # What an operator's own bridges ask for has a share for each.
        shares = DemandShares() if identity.cluster else shared.demand_shares
        self.table: DemandTable = DemandTable(rules, self.own, remote, self.local.id, shares, identity.user)
        self.unanswered: dict[int, Sent] = {}
        self.settled: list[Sent] = []
        self.forwarded: int = 0
        self.other_ways: dict[str, bool] = {}

    def start(self, now: int) -> None:
        """Opens the demand that needs no consumers: static destinations, and the durable subscriptions of earlier."""
        for for_queue, static in self.rules.static.names:
            self._add_static(now, of_kind(codes.QUEUE if for_queue else codes.TOPIC, static), None)
        if not self.table.durables_stay:
            return
        for queue in self.kept.beginning(self.rules.names.subscription_name("")):
            topic = queue.spec.address
            destination = of_kind(codes.TOPIC, topic)
            try:
                self.kept.check(queue)
            except BrokerError as error:
                self._refuse(now, destination, error)
                continue
            self._add_static(now, destination, self.rules.names.subscription_name(topic))

    def _add_static(self, now: int, destination: ActiveMQDestination, name: str | None) -> None:
        demand = self.table.add_static(destination, name)
        if demand is not None:
            self.shared.demands.add(now, demand, self)

    # -- news of the other broker ---------------------------------------------------------------
    def on_advisory(self, now: int, data: DataStructure | None) -> None:
        """Handles what an advisory of the other broker carries."""
        if isinstance(data, ConsumerInfo):
            self.add(now, data)
        elif isinstance(data, RemoveInfo):
            if isinstance(data.object_id, ConsumerId):
                self._close_all(now, self.table.remove(data.object_id), False)
        elif isinstance(data, RemoveSubscriptionInfo):
            ended = self.table.remove_subscription(data.client_id or "", data.subscription_name or "")
            self._close_all(now, ended, True)
        elif isinstance(data, DestinationInfo):
            self._change_temporary(now, data)

    def on_subscriptions(self, now: int, info: BrokerSubscriptionInfo) -> None:
        """Handles the durable subscriptions that the other broker lists (syncDurableSubs)."""
        if self.table.durables_stay:
            for each in info.subscription_infos or []:
                self.add(now, each)

    def add(self, now: int, info: ConsumerInfo) -> None:
        """Handles a consumer of the other broker."""
        try:
            opened = self.table.add(info)
        except BrokerError as error:
            self._refuse(now, info.destination, error)
            return
        for demand in opened:
            self.shared.demands.add(now, demand, self)
            self._replace_by(now, demand)

    def _replace_by(self, now: int, demand: Demand) -> None:
        """Ends the plain demands whose place a durable one has taken."""
        if not demand.refused:
            self._close_all(now, self.table.replaced_by(demand), False)

    def _change_temporary(self, now: int, info: DestinationInfo) -> None:
        """Creates or removes here the temporary destination of the other broker, so that replies are accepted."""
        destination = info.destination
        if destination is None or not is_temporary(destination) or not self.rules.temporary:
            return
        path = info.broker_path
        ttl = self.rules.consumer_ttl
        if path is not None and (self.own in path or 0 <= ttl <= len(path)):
            return
        session = self.local.session
        name = destination.physical_name or ""
        if info.operation_type == REMOVE:
            self.temporary_taken(now, destination)
            self._forget_way(name)
        elif name in session.temporary:
            return
        elif name in session.dispatches.advisories.temporary.kinds:  # it came another way, or its creator has not left
            if len(self.other_ways) < TEMPORARY_MAX and name not in self.other_ways:
                self.other_ways[name] = True
                self.shared.other_ways.add(name, self, info)
            return
        connection_id = ConnectionId(self.local.id)
        longer = longer_path(path, self.remote)
        try:
            if info.operation_type == ADD:  # any client can say that it is a bridge, and name destinations of others
                session.kernel.check(CONSUME, CONSUMERS_TOPIC)
            self.local.give(now, DestinationInfo(connection_id, destination, info.operation_type, 0, longer))
        except BrokerError as error:
            self._refuse(now, destination, error)

    def bring(self, now: int, info: DestinationInfo) -> None:
        destination = info.destination
        self.other_ways.pop("" if destination is None else destination.physical_name or "", None)
        self._change_temporary(now, info)
        if destination is not None and destination.physical_name in self.local.session.temporary:
            self.shared.demands.choose(now, destination)

    def _forget_way(self, name: str) -> None:
        if self.other_ways.pop(name, False):
            self.shared.other_ways.remove(name, self)

    def temporary_taken(self, now: int, destination: ActiveMQDestination) -> None:
        for demand in self.table.remove_destination(destination):
            self._end(now, demand)
            self.shared.demands.remove(now, demand)

    # -- consumers here -------------------------------------------------------------------------
    def open_demand(self, now: int, demand: Demand) -> None:
        if self.local.gone:
            return  # the bridge ends, and this demand with it
        if is_temporary(demand.destination) and demand.destination.physical_name in self.other_ways:
            demand.refused = True  # until the other way has ended
            return
        if demand.opened:
            if not demand.ending:
                return
            self._end(now, demand)
        self._end_former(now, demand)
        name = demand.info.subscription_name
        try:
            queue = None if name is None else self.kept.queue_of(name)
            if queue is not None:
                self.kept.check(queue)
            self.local.give(now, demand.info)
        except BrokerError as error:
            demand.refused = True
            self._refuse(now, demand.destination, error)
            return
        demand.open()
        self.shared.refused_demands.served(self.kept.client_id, name_shown(demand.destination)[:SHOWN_MAX])
        queue = None if name is None else self.kept.queue_of(name)
        if queue is not None:
            self.kept.take(now, queue)
        if is_queue(demand.destination) and not is_temporary(demand.destination) and not demand.returning:
            self.shared.stuck_queues.watch(now, self, demand)

    def _end_former(self, now: int, demand: Demand) -> None:
        """Ends the consumer that still waits for answers, if the durable subscription has one: it has one at a time."""
        name = demand.info.subscription_name
        if name is None:
            return
        for sent in list(self.unanswered.values()):
            former = sent.demand
            if former is not demand and former.opened and former.info.subscription_name == name:
                self._end(now, former)

    def close_demand(self, now: int, demand: Demand) -> None:
        """Ends the consumer when everything that it has sent is answered; the rest stays in the queue."""
        self.shared.stuck_queues.unwatch(now, self, demand)
        if not demand.opened:
            return
        demand.ending = True
        if demand.sent == 0:
            self._end(now, demand)

    def _close_all(self, now: int, demands: list[Demand], forgotten: bool) -> None:
        """Closes demands that have lost their reason; `forgotten`: also their durable subscriptions."""
        for demand in demands:
            if forgotten:
                self._end(now, demand)
                self._forget_subscription(now, demand)
            else:
                self.close_demand(now, demand)
        self.shared.demands.remove_all(now, demands)

    def _forget_subscription(self, now: int, demand: Demand) -> None:
        name = demand.info.subscription_name
        queue = None if name is None else self.kept.queue_of(name)
        if queue is None:
            return  # it was refused
        try:
            self.kept.check(queue)
            self.local.give(now, RemoveSubscriptionInfo(None, name))
        except BrokerError as error:
            self._refuse(now, demand.destination, error)

    def _end(self, now: int, demand: Demand) -> None:
        """Ends the consumer; messages that are not answered return to the queue."""
        remove_consumer(self.local.session, now, demand.id, NOTHING_DELIVERED)
        demand.close()
        if demand.returning:
            self.table.discard(demand)

    def replay_delay_ms(self) -> int:
        return self.rules.replay_delay_ms

    def return_to(self, now: int, demand: Demand) -> Demand:
        found = self.table.add_returning(demand, returning_selector(self.remote), PRIORITY_MIN)
        self.open_demand(now, found)
        if found.refused:
            self.table.discard(found)
        return found

    # -- refusals -------------------------------------------------------------------------------
    def left_out(self, queue: str, error: BrokerError) -> bool:
        self._refuse(self.host.broker.now, of_kind(codes.QUEUE, queue), error)
        return True

    def _refuse(self, now: int, destination: ActiveMQDestination | None, error: BrokerError) -> None:
        """Counts a refusal, and tells it if it is news. The bridge tries again when permissions have changed."""
        broker, refused = self.host.broker, self.shared.refused_demands
        broker.trace.count("network_demands_refused")
        name, why = name_shown(destination)[:SHOWN_MAX], error.text[:SHOWN_MAX]
        if refused.is_news(now, self.kept.client_id, name, why):
            self.peer.tell("network_demand_refused", f"{name}: {why}")
        refused.wait(now, self)

    def retry(self, now: int, created: dict[str, bool]) -> bool:
        local, security = self.local, self.host.broker.security
        if local.gone:
            return False
        changed = security.version != self.rules_version
        self.rules_version = security.version
        refused = [
            demand for demand in self.table.index.by_id.values()
            if demand.refused and (changed or (demand.destination.physical_name or "") in created)
        ]  # fmt: skip
        for destination in dict.fromkeys(demand.destination for demand in refused):
            self.shared.demands.choose(now, destination)
        for demand in refused:
            self._replace_by(now, demand)
        if changed:
            session = local.session
            queues = list(session.kernel.services.queue_registry.by_name.values())
            session.dispatches.wildcard_queues.complete(local.conn, queues)
        return True

    # -- messages -------------------------------------------------------------------------------
    def take(self, command: Command) -> None:
        if isinstance(command, MessageDispatch) and command.message is not None:
            self._forward(command)

    def _forward(self, dispatch: MessageDispatch) -> None:
        """Sends a message on. One of a demand that ends is not sent: it goes back with its consumer."""
        message, consumer_id = dispatch.message, dispatch.consumer_id
        assert message is not None and consumer_id is not None
        demand = self.table.index.by_id.get(consumer_id)
        if demand is None or demand.ending:
            return
        sent = Sent(demand, dispatch.destination, message.message_id)
        if demand.durable and self._was_there(message.broker_path):
            self.settled.append(sent)
            self.peer.flush_later()
            return
        answered = message.persistent or self.rules.always_sync_send
        command_id = self.peer.take_command_id() if answered else 0
        self.peer.send_to_peer(
            forwarded_message(
                message, dispatch.destination, self.own, self.producer_id, self.rules.compress, command_id, answered
            )
        )
        self.forwarded += 1
        if answered:
            demand.count_sent()
            self.unanswered[command_id] = sent
        else:
            self.settled.append(sent)
        if self.peer.is_full():
            self.local.fill()

    def _was_there(self, path: list[BrokerId] | None) -> bool:
        """Returns True for a message that the filter of a queue's consumer would refuse."""
        if path is None:
            return False
        return self.remote in path or 0 <= self.rules.message_ttl <= len(path)

    def on_response(self, now: int, response: Response) -> bool:
        """Handles an answer of the other broker; returns False if it is none to a message."""
        sent = self.unanswered.pop(response.correlation_id, None)
        if sent is None:
            return False
        demand = sent.demand
        if not demand.opened:
            return True
        demand.count_answered()
        if isinstance(response, ExceptionResponse):
            self._refused(now, sent, response.exception)
        else:
            self.refusals.accepted(id_of(sent.message_id))
            self._acknowledge(now, sent, INDIVIDUAL, None)
        if demand.ending and demand.sent == 0:
            self._end(now, demand)
        return True

    def _acknowledge(self, now: int, sent: Sent, kind: int, cause: Throwable | None) -> None:
        if sent.demand.id in self.local.session.subscriptions:
            last = sent.message_id
            self.local.give(now, MessageAck(sent.destination, None, sent.demand.id, kind, last, last, 1, cause))

    def _refused(self, now: int, sent: Sent, cause: Throwable | None) -> None:
        """Handles a message that the other broker does not take. It stays here and is sent again on a new connection.

        After several refusals it goes to the dead-letter address; a message for a temporary destination at once, as
        that has ended.
        """
        why = "no reason given" if cause is None else f"{cause.class_name}: {cause.message or ''}"
        ended = sent.destination is not None and is_temporary(sent.destination)
        text = id_of(sent.message_id)
        if ended or self.refusals.is_final(text, cause):
            self.peer.tell("network_message_refused", f"message {text} for {name_shown(sent.destination)}: {why}")
            self._acknowledge(now, sent, POISON, cause)
        else:
            name = name_shown(sent.destination)
            self.peer.bridge_failed(f"the other broker refuses message {text} for {name}: {why}")

    # -- turns ----------------------------------------------------------------------------------
    def flush(self, now: int) -> None:
        """Acknowledges what needs no answer, once per batch of inputs."""
        settled = self.settled
        self.settled = []
        for sent in settled:
            self._acknowledge(now, sent, INDIVIDUAL, None)
        if self.local.empty() or settled:
            self.host.broker.wake(now)

    def on_blocked(self, now: int, blocked: bool) -> None:
        """Stops the messages while the other broker reads too slowly."""
        self.local.on_blocked(now, blocked)

    def local_ended(self, why: str) -> None:
        self.peer.bridge_failed(why)

    def close(self, now: int) -> None:
        """Ends the bridge: what was not answered returns to its queues."""
        for name in list(self.other_ways):
            self._forget_way(name)
        demands = self.table.close()
        self.unanswered.clear()
        self.settled.clear()
        for demand in demands:
            self.shared.stuck_queues.unwatch(now, self, demand)
        self.local.closed(now, "the bridge ended")
        for demand in demands:
            demand.close()
        self.shared.demands.remove_all(now, demands)


def id_of(message_id: MessageId | None) -> str:
    return "" if message_id is None else id_text(message_id)


def name_shown(destination: ActiveMQDestination | None) -> str:
    return "no destination" if destination is None else text_of_destination(destination)
