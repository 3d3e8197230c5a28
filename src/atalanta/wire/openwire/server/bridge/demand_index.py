"""The demands of one bridge by what the other broker's consumers are compared with, so that few of them are looked at.

The other broker chooses how many there are: nothing that one of its commands does looks at all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.wire.openwire.conversion.destination import has_wildcard

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import ConsumerId
    from atalanta.wire.openwire.server.bridge.demand import Demand


class DemandIndex:
    """The demands. `patterns`: the destinations with wildcards among theirs, which cover others."""

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
