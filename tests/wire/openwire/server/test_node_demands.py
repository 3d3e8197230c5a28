"""The demands of all bridges of a node: which are opened, and how often that is tried."""

from __future__ import annotations

from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.commands.identifiers import BrokerId, ConsumerId
from atalanta.wire.openwire.server.bridge.demand import Demand
from atalanta.wire.openwire.server.bridge.node_demands import TRIED_MAX, DemandOwner, NodeDemands

ORDERS = ActiveMQQueue("orders")
MANY = 1_000


class Bridge(DemandOwner):
    """A bridge that may have so many consumers."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.tried = 0

    def open_demand(self, now: int, demand: Demand) -> None:
        self.tried += 1
        if self.places > 0:
            self.places -= 1
            demand.open()
        else:
            demand.refused = True

    def close_demand(self, now: int, demand: Demand) -> None:
        demand.close()
        self.places += 1


def demand(number: int, way: int = 0, priority: int = 0, brokers: int = 1) -> Demand:
    """The demand for a consumer; with `way` it is not used where a better one leads to the same application."""
    ways = [ConsumerId("ID:app", 1, way)] if way else None
    path = [BrokerId(str(each)) for each in range(brokers)]
    consumer_id = ConsumerId("ID:bridge", 1, number)
    info = ConsumerInfo(consumer_id, priority=priority, broker_path=path, network_consumer_path=ways)
    made = Demand(info, ConsumerId("ID:bridge", 1, number), ORDERS, False)
    if way:
        made.suppressible = True
    return made


def test_what_is_refused_is_not_tried_again_for_each_further_one() -> None:
    """A neighbour without rights asks for one queue many times."""
    for way in (0, 1):
        bridge, demands = Bridge(0), NodeDemands()
        made = [demand(number, way) for number in range(MANY)]
        for each in made:
            demands.add(1, each, bridge)
        assert bridge.tried == MANY
        demands.remove(1, made[0])
        demands.remove_all(1, made[1:])
        assert bridge.tried == MANY and demands.by_destination == {}


def test_a_place_that_has_become_free_is_taken() -> None:
    bridge, demands = Bridge(1), NodeDemands()
    made = [demand(number) for number in range(MANY)]
    for each in made:
        demands.add(1, each, bridge)
    assert [each.opened for each in made[:3]] == [True, False, False]
    bridge.close_demand(1, made[0])
    demands.remove(1, made[0])
    assert made[1].opened and bridge.tried <= MANY + TRIED_MAX


def test_the_shorter_way_is_better_though_it_came_later_and_no_priority_tells_it() -> None:
    bridge, demands = Bridge(10), NodeDemands()
    longer, shorter = demand(1, 1, brokers=2), demand(2, 1)
    for each in (longer, shorter):
        demands.add(1, each, bridge)
    assert (longer.opened, shorter.opened) == (False, True)


def test_a_worse_way_is_used_while_the_better_one_is_away() -> None:
    bridge, demands = Bridge(10), NodeDemands()
    worse, better, other = demand(1, 1, -8), demand(2, 1, -5), demand(3, 2, -8)
    for each in (worse, better, other):
        demands.add(1, each, bridge)
    assert (worse.opened, better.opened, other.opened) == (False, True, True)
    bridge.close_demand(1, better)
    demands.remove(1, better)
    assert worse.opened
