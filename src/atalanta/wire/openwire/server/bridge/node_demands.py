"""The demand of all bridges of a node. Of several ways to one consumer only the best is used.

Classic suppresses the worse way for good (suppressDuplicateTopicSubscriptions, …QueueSubscriptions); here it is used
when the better one has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import mypyc_attr

from atalanta.wire.openwire.server.bridge.other_ways import Way

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import ConsumerId
    from atalanta.wire.openwire.server.bridge.demand import Demand

TRIED_MAX: Final = 10  # refused demands that are tried again for one place that has become free


@mypyc_attr(allow_interpreted_subclasses=True)
class DemandOwner(Way):
    """A bridge, whose demands are opened and closed."""

    def open_demand(self, now: int, demand: Demand) -> None:
        """Creates the consumer of the demand."""
        raise NotImplementedError

    def close_demand(self, now: int, demand: Demand) -> None:
        """Ends the consumer of the demand: another way is better."""
        raise NotImplementedError

    def retry(self, now: int, created: dict[str, bool]) -> bool:
        """Opens refused demands again, all if permissions have changed, else those of the queues that were created.

        Returns False if the bridge has ended.
        """
        raise NotImplementedError

    def replay_delay_ms(self) -> int:
        """Returns how long a queue has no consumer before its messages go back, -1 never."""
        raise NotImplementedError

    def return_to(self, now: int, demand: Demand) -> Demand:
        """Opens the way back beside a demand, and returns it: nobody here consumes its queue."""
        raise NotImplementedError


class Ways:
    """The demands for one destination, the oldest first, each with its bridge. `suppressible`: how many of them are.

    `by_way`: how many have a consumer on their way; those that share none do not concern each other.
    """

    def __init__(self) -> None:
        self.entries: dict[ConsumerId, tuple[Demand, DemandOwner]] = {}
        self.suppressible: int = 0
        self.by_way: dict[ConsumerId, int] = {}

    def add(self, demand: Demand, owner: DemandOwner) -> None:
        """Adds a demand."""
        self.entries[demand.id] = (demand, owner)
        self.suppressible += demand.suppressible
        for way in demand.ways:
            self.by_way[way] = self.by_way.get(way, 0) + 1

    def remove(self, demand: Demand) -> bool:
        """Removes a demand; returns True if it was there."""
        if self.entries.pop(demand.id, None) is None:
            return False
        self.suppressible -= demand.suppressible
        for way in demand.ways:
            left = self.by_way.get(way, 0) - 1
            if left > 0:
                self.by_way[way] = left
            else:
                self.by_way.pop(way, None)
        return True

    def concerns(self, demand: Demand) -> bool:
        """Returns True if others may be better or worse ways to the same consumer."""
        if self.suppressible == 0 and not demand.suppressible:
            return False
        return any(way in self.by_way for way in demand.ways)

    def next_refused(self, ended: Demand) -> list[tuple[Demand, DemandOwner]]:
        """Returns refused demands that may have the place of one that has ended: of its durable subscription, or a few.

        The others are tried again when permissions have changed.
        """
        name = ended.info.subscription_name
        found: list[tuple[Demand, DemandOwner]] = []
        for demand, owner in self.entries.values():
            if demand.refused and demand.info.subscription_name == name:
                found.append((demand, owner))
                if len(found) == TRIED_MAX:
                    break
        return found


class NodeDemands:
    """The demands by destination. Other brokers choose how many there are: nothing is done for all again and again."""

    def __init__(self) -> None:
        self.by_destination: dict[ActiveMQDestination, Ways] = {}

    def add(self, now: int, demand: Demand, owner: DemandOwner) -> None:
        """Adds a demand, and opens it unless another way is as good."""
        ways = self.by_destination.get(demand.destination)
        if ways is None:
            self.by_destination[demand.destination] = ways = Ways()
        concerned = ways.concerns(demand)
        ways.add(demand, owner)
        if concerned:
            _choose(now, ways, False)
        elif not demand.opened or demand.ending:
            owner.open_demand(now, demand)

    def remove(self, now: int, demand: Demand) -> None:
        """Removes a demand; its bridge has closed it."""
        self.remove_all(now, [demand])

    def remove_all(self, now: int, demands: list[Demand]) -> None:
        """Removes demands; their bridge has closed them."""
        changed: dict[ActiveMQDestination, list[Demand]] = {}
        for demand in demands:
            ways = self.by_destination.get(demand.destination)
            if ways is not None and ways.remove(demand):
                changed.setdefault(demand.destination, []).append(demand)
        for destination, ended in changed.items():
            self._fill(now, destination, ended)

    def _fill(self, now: int, destination: ActiveMQDestination, ended: list[Demand]) -> None:
        """Opens what may take the places of demands that have ended."""
        ways = self.by_destination[destination]
        if not ways.entries:
            del self.by_destination[destination]
            return
        if any(ways.concerns(each) for each in ended):
            _choose(now, ways, False)
        tried: dict[ConsumerId, bool] = {}
        for each in ended:
            if each.refused or len(tried) >= TRIED_MAX:
                continue
            for demand, owner in ways.next_refused(each):
                if demand.id not in tried:
                    tried[demand.id] = True
                    owner.open_demand(now, demand)

    def choose(self, now: int, destination: ActiveMQDestination) -> None:
        """Opens the best of the ways to each consumer of the destination, also those that were refused."""
        ways = self.by_destination.get(destination)
        if ways is not None:
            _choose(now, ways, True)


def _choose(now: int, ways: Ways, again: bool) -> None:
    """Opens the best of the ways to each consumer of the destination, and closes the others.

    A way that is refused is none; `again`: those that were refused are tried again.
    """
    worse: list[tuple[Demand, DemandOwner]] = []
    better: dict[ConsumerId, list[DemandOwner]] = {}
    for demand, owner in sorted(ways.entries.values(), key=_rank):
        if demand.suppressible and _is_met(demand, owner, better):
            worse.append((demand, owner))
            continue
        if demand.refused and not again:
            continue
        if not demand.opened or demand.ending:
            owner.open_demand(now, demand)
        if not demand.refused:
            for way in demand.ways:
                better.setdefault(way, []).append(owner)
    for demand, owner in worse:
        if demand.opened and not demand.ending:
            owner.close_demand(now, demand)


def _is_met(demand: Demand, owner: DemandOwner, better: dict[ConsumerId, list[DemandOwner]]) -> bool:
    """Returns whether a demand needs not be used beside better ones: they lead to the same consumer of an application.

    The queue of a durable subscription gets messages also while its way is not used, and nobody would take them: only
    another demand of its own bridge, which has the same queue, replaces it.
    """
    durable = demand.info.subscription_name is not None
    for way in demand.ways:
        owners = better.get(way)
        if owners is not None and (not durable or any(each is owner for each in owners)):
            return True
    return False


def _rank(entry: tuple[Demand, DemandOwner]) -> tuple[int, int]:
    """Returns the place of a demand among the ways: the priority tells the shorter one, unless it is not decreased."""
    info = entry[0].info
    return -info.priority, len(info.broker_path or ())
