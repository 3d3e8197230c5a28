"""The demand of all bridges of a node. Of several ways to one consumer only the best is used.

Classic suppresses the worse way for good (suppressDuplicateTopicSubscriptions, …QueueSubscriptions); here it is used
when the better one has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

from atalanta.wire.openwire.server.bridge.other_ways import Way

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.server.bridge.demand import Demand


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


class NodeDemands:
    """The demands by destination, the oldest first, each with its bridge."""

    def __init__(self) -> None:
        self.by_destination: dict[ActiveMQDestination, list[tuple[Demand, DemandOwner]]] = {}

    def add(self, now: int, demand: Demand, owner: DemandOwner) -> None:
        """Adds a demand, and opens it unless another way is as good."""
        self.by_destination.setdefault(demand.destination, []).append((demand, owner))
        self.choose(now, demand.destination)

    def remove(self, now: int, demand: Demand) -> None:
        """Removes a demand; its bridge has closed it."""
        left = [each for each in self.by_destination.get(demand.destination, []) if each[0] is not demand]
        if left:
            self.by_destination[demand.destination] = left
            self.choose(now, demand.destination)
        else:
            self.by_destination.pop(demand.destination, None)

    def choose(self, now: int, destination: ActiveMQDestination) -> None:
        """Opens the best of the ways to each consumer of the destination, and closes the others.

        A way that is refused is none.
        """
        worse: list[tuple[Demand, DemandOwner]] = []
        better: list[tuple[Demand, DemandOwner]] = []
        for entry in sorted(self.by_destination.get(destination, []), key=_rank):
            demand, owner = entry
            if demand.suppressible and any(_replaces(other, entry) for other in better):
                worse.append(entry)
                continue
            if not demand.opened or demand.ending:
                owner.open_demand(now, demand)
            if not demand.refused:
                better.append(entry)
        for demand, owner in worse:
            if demand.opened and not demand.ending:
                owner.close_demand(now, demand)


def _replaces(better: tuple[Demand, DemandOwner], entry: tuple[Demand, DemandOwner]) -> bool:
    """Tells whether a demand needs not be used beside a better one.

    The queue of a durable subscription gets messages also while its way is not used, and nobody would take them: only
    another demand of its own bridge, which has the same queue, replaces it.
    """
    demand, owner = entry
    if demand.info.subscription_name is not None and better[1] is not owner:
        return False
    return demand.meets(better[0])


def _rank(entry: tuple[Demand, DemandOwner]) -> int:
    return -entry[0].info.priority
