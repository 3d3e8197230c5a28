"""The demand of one bridge: the destinations that consumers of the other broker want from this one.

Follows ConduitBridge and DurableConduitBridge of ActiveMQ Classic. A durable subscription there is a durable one here,
which stays while its consumer is away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.wire.openwire.bridge_filter import takes_demand
from atalanta.wire.openwire.broker_path import longer_path
from atalanta.wire.openwire.commands.brokers import NetworkBridgeFilter
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.identifiers import ConsumerId
from atalanta.wire.openwire.conversion.destination import (
    has_wildcard,
    is_advisory,
    is_queue,
    is_temporary,
    parts_of,
)
from atalanta.wire.openwire.server.bridge.demand import Demand
from atalanta.wire.openwire.server.bridge.demand_shares import DemandShares
from atalanta.wire.openwire.server.bridge.local_side import SESSION

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import BrokerId
    from atalanta.wire.openwire.server.bridge.rules import BridgeRules

PATTERNS_MAX: Final = 1_000  # of one bridge: each is compared with what the other broker wants


class DemandIndex:
    """The demands of one bridge by what the other broker's consumers are compared with, so that few are looked at.

    The other broker chooses how many there are: nothing that one of its commands does looks at all of them.
    `patterns`: the destinations with wildcards among theirs, which cover others.
    """

    def __init__(self) -> None:
        self.by_id: dict[ConsumerId, Demand] = {}
        self.patterns: dict[ActiveMQDestination, bool] = {}
        self._by_destination: dict[ActiveMQDestination, dict[ConsumerId, Demand]] = {}
        self._by_subscription: dict[tuple[str, str], dict[ConsumerId, Demand]] = {}
        self._by_name: dict[tuple[str, ActiveMQDestination], Demand] = {}

    def add(self, demand: Demand) -> None:
        """Adds a demand."""
        destination = demand.destination
        self.by_id[demand.id] = demand
        self._by_destination.setdefault(destination, {})[demand.id] = demand
        if has_wildcard(destination.physical_name or ""):
            self.patterns[destination] = True
        name = demand.info.subscription_name
        if name is not None:
            self._by_name.setdefault((name, destination), demand)

    def remove(self, demand: Demand) -> None:
        """Removes a demand, if it is there."""
        if self.by_id.pop(demand.id, None) is None:
            return
        destination = demand.destination
        entries = self._by_destination[destination]
        del entries[demand.id]
        if not entries:
            del self._by_destination[destination]
            self.patterns.pop(destination, None)
        name = demand.info.subscription_name
        if name is not None and self._by_name.get((name, destination)) is demand:
            del self._by_name[name, destination]
        for subscription in demand.subscriptions:
            self._take_out(subscription, demand)

    def at(self, destination: ActiveMQDestination) -> list[Demand]:
        """Returns the demands for exactly that destination."""
        return list(self._by_destination.get(destination, {}).values())

    def covering(self, destination: ActiveMQDestination) -> list[Demand]:
        """Returns the demands that cover the destination."""
        found = self.at(destination)
        for pattern in self.patterns:
            if pattern != destination:
                entries = self._by_destination[pattern]
                if next(iter(entries.values())).covers(destination):
                    found.extend(entries.values())
        return found

    def named(self, name: str, destination: ActiveMQDestination) -> Demand | None:
        """Returns the demand of a durable subscription here."""
        return self._by_name.get((name, destination))

    # -- durable subscriptions of the other broker ----------------------------------------------
    def join(self, demand: Demand, consumer_id: ConsumerId, subscription: tuple[str, str] | None) -> None:
        """Adds a consumer of the other broker to a demand."""
        demand.join(consumer_id, subscription)
        if subscription is not None:
            self._by_subscription.setdefault(subscription, {})[demand.id] = demand

    def end_subscription(self, subscription: tuple[str, str]) -> list[Demand]:
        """Removes a durable subscription from its demands, and returns them."""
        found = list(self._by_subscription.pop(subscription, {}).values())
        return [demand for demand in found if demand.end_subscription(subscription)]

    def _take_out(self, subscription: tuple[str, str], demand: Demand) -> None:
        entries = self._by_subscription.get(subscription)
        if entries is not None and entries.pop(demand.id, None) is not None and not entries:
            del self._by_subscription[subscription]


class DemandTable:
    """The demand of the broker `remote`, for the broker `own`.

    `connection_id` is that of the bridge at its own broker. `known`: the destinations of each consumer there, `wanted`
    in all. `shares`: what the bridges of each user serve; of `user` this one `counted`.
    """

    def __init__(
        self, rules: BridgeRules, own: BrokerId, remote: BrokerId, connection_id: str, shares: DemandShares,
        user: str,
    ) -> None:  # fmt: skip
        self.rules = rules
        self.own = own
        self.remote = remote
        self.connection_id = connection_id
        self.shares = shares
        self.user = user
        self.index = DemandIndex()
        self.known: dict[ConsumerId, dict[ActiveMQDestination, bool]] = {}
        self.wanted: int = 0
        self.counted: int = 0
        self.last_number: int = 0
        self.durables_stay: bool = rules.conduit and not rules.dynamic_only

    def add(self, info: ConsumerInfo) -> list[Demand]:
        """Adds a consumer of the other broker, each destination once; returns the demands to open.

        BrokerError: its destination has no name, or there are too many.
        """
        opened: list[Demand] = []
        consumer_id = info.consumer_id
        if consumer_id is None or info.destination is None or info.browser:
            return opened
        if not takes_demand(info.broker_path, self.own, self.rules.consumer_ttl):
            return opened
        parts = parts_of(info.destination)
        self.shares.check(self.user, len(parts))
        self._check_patterns(parts)
        known = self.known.get(consumer_id, {})
        for part in parts:
            if part not in known and not is_advisory(part) and self.rules.permits(part):
                known[part] = True
                self.known[consumer_id] = known
                self.wanted += 1
                self._add_part(info, consumer_id, part, opened)
        self._count()
        return opened

    def _check_patterns(self, parts: list[ActiveMQDestination]) -> None:
        """Raises BrokerError if there would be too many destinations with wildcards."""
        patterns = self.index.patterns
        more = [part for part in parts if has_wildcard(part.physical_name or "") and part not in patterns]
        if more and len(patterns) + len(more) > PATTERNS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"a bridge serves at most {PATTERNS_MAX:,} destinations with wildcards")

    def _count(self) -> None:
        """Counts the consumers in the share of the user."""
        count = max(self.wanted, len(self.index.by_id))
        self.shares.change(self.user, count - self.counted)
        self.counted = count

    def _add_part(
        self, info: ConsumerInfo, consumer_id: ConsumerId, part: ActiveMQDestination, opened: list[Demand]
    ) -> None:
        subscription: tuple[str, str] | None = None
        if info.subscription_name is not None and not is_queue(part) and not is_temporary(part):
            subscription = (info.client_id or "", info.subscription_name)
        if self.rules.conduit and self._joins(info, consumer_id, part, subscription):
            return
        name = self._name_of(part, subscription)
        if name is not None and self._continues(name, consumer_id, part, subscription):
            return
        demand = self._made(info, part, name, info.network_subscription)
        self.index.join(demand, consumer_id, subscription)
        opened.append(demand)

    def replaced_by(self, demand: Demand) -> list[Demand]:
        """Removes the plain demands of a topic whose place an opened durable one takes, and returns them."""
        if not (demand.durable and self.rules.conduit):
            return []
        found: list[Demand] = []
        for other in self.index.at(demand.destination):
            if other is not demand and not (other.durable or other.network):
                demand.take_over(other)
                found.append(other)
        return self._removed(found)

    def _joins(
        self, info: ConsumerInfo, consumer_id: ConsumerId, part: ActiveMQDestination,
        subscription: tuple[str, str] | None,
    ) -> bool:  # fmt: skip
        """Adds the consumer to the demands that cover its destination; returns False if there is none."""
        if info.network_subscription and is_queue(part) and not self.rules.conduit_network_queues:
            return False
        joined = False
        for demand in self.index.covering(part):
            if demand.network and not demand.permanent:
                continue  # a consumer of a third broker stays apart, as its way is longer
            if demand.refused and (demand.destination != part or demand.durable != (subscription is not None)):
                continue  # what it covers may be allowed
            if demand.durable or subscription is None:
                self.index.join(demand, consumer_id, subscription)
                joined = True
        return joined

    def _continues(
        self, name: str, consumer_id: ConsumerId, part: ActiveMQDestination, subscription: tuple[str, str] | None
    ) -> bool:
        """Adds the consumer to the demand of the same durable subscription: its client was away, or has two ways."""
        demand = self.index.named(name, part)
        if demand is None:
            return False
        self.index.join(demand, consumer_id, subscription)
        return True

    def _name_of(self, part: ActiveMQDestination, subscription: tuple[str, str] | None) -> str | None:
        """Returns the name of the durable subscription here, None without one."""
        if subscription is None:
            return None
        if self.rules.conduit:
            return self.rules.names.subscription_name(part.physical_name or "")
        # A bridge's subscription has no client id: its name tells whose it is.
        return ":".join([text for text in subscription if text])

    def add_static(self, destination: ActiveMQDestination, subscription_name: str | None = None) -> Demand | None:
        """Adds a demand that needs no consumer; None if there is one already, or the bridge does not forward it."""
        if not self.rules.permits(destination):
            return None
        if self.index.at(destination):
            return None
        made = self._made(ConsumerInfo(), destination, subscription_name, True, True)
        self._count()
        return made

    def _made(
        self, source: ConsumerInfo, part: ActiveMQDestination, name: str | None, network: bool, permanent: bool = False
    ) -> Demand:
        """Returns a new demand, for the consumer `source` at the other broker."""
        rules = self.rules
        path = longer_path(source.broker_path, self.remote)
        ways = list(source.network_consumer_path or [])
        if source.consumer_id is not None:
            ways.append(source.consumer_id)
        selector = None if rules.conduit else source.selector
        info = self._consumer(part, selector, rules.priority(len(path)), path, ways, name, source.exclusive)
        demand = self._entered(info, part, network, permanent)
        if ways and rules.suppresses(is_queue(part)):
            demand.suppressible = True
        return demand

    def _consumer(
        self, part: ActiveMQDestination, selector: str | None, priority: int, path: list[BrokerId],
        ways: list[ConsumerId], name: str | None, exclusive: bool, filtered: bool = True,
    ) -> ConsumerInfo:  # fmt: skip
        self.last_number += 1
        rules = self.rules
        predicate = NetworkBridgeFilter(rules.message_ttl, self.remote, rules.message_ttl, rules.consumer_ttl)
        # What is kept for the other broker has no filter: it would change with the id of that broker.
        return ConsumerInfo(
            ConsumerId(self.connection_id, SESSION, self.last_number),
            destination=part,
            prefetch_size=rules.prefetch,
            dispatch_async=True,
            selector=selector,
            subscription_name=name,
            exclusive=exclusive,
            priority=priority,
            broker_path=path,
            additional_predicate=predicate if filtered and name is None else None,
            network_subscription=True,
            network_consumer_path=ways,
        )

    def _entered(self, info: ConsumerInfo, part: ActiveMQDestination, network: bool, permanent: bool) -> Demand:
        assert info.consumer_id is not None
        demand = Demand(info, info.consumer_id, part, network, permanent)
        self.index.add(demand)
        return demand

    def add_returning(self, demand: Demand, selector: str, priority: int) -> Demand:
        """Adds a demand beside another one, for messages that have passed the other broker."""
        path = list(demand.info.broker_path or [])
        info = self._consumer(demand.destination, selector, priority, path, [], None, False, False)
        found = self._entered(info, demand.destination, True, True)
        found.returning = True
        self._count()
        return found

    # -- the end --------------------------------------------------------------------------------
    def remove(self, consumer_id: ConsumerId) -> list[Demand]:
        """Removes a consumer of the other broker; returns the demands that have lost their reason."""
        parts = self.known.pop(consumer_id, {})
        self.wanted -= len(parts)
        left: list[Demand] = []
        for part in parts:
            left.extend([demand for demand in self.index.covering(part) if demand.leave(consumer_id)])
        return self._removed([demand for demand in left if not demand.is_needed(self.durables_stay)])

    def remove_subscription(self, client_id: str, name: str) -> list[Demand]:
        """Removes a durable subscription of the other broker; returns the demands that have lost their reason."""
        ended = self.index.end_subscription((client_id, name))
        return self._removed([demand for demand in ended if not demand.is_needed(self.durables_stay)])

    def remove_destination(self, destination: ActiveMQDestination) -> list[Demand]:
        """Removes the demands for a temporary destination that has ended, and returns them."""
        return self._removed(self.index.at(destination))

    def discard(self, demand: Demand) -> None:
        """Removes a demand."""
        self._removed([demand])

    def close(self) -> list[Demand]:
        """Ends all demands, and returns them."""
        self.known.clear()
        self.wanted = 0
        return self._removed(list(self.index.by_id.values()))

    def _removed(self, demands: list[Demand]) -> list[Demand]:
        for demand in demands:
            self.index.remove(demand)
        self._count()
        return demands
