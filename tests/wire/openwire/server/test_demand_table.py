"""What the consumers of another broker want: one demand for many consumers, or one for each."""

from __future__ import annotations

import time
from typing import Any

import pytest

from atalanta.kernel.errors import BrokerError
from atalanta.wire.openwire.broker_path import longer_path
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import BrokerId, ConsumerId
from atalanta.wire.openwire.server.bridge.demand_shares import WANTED_MAX, DemandShares
from atalanta.wire.openwire.server.bridge.demand_table import PATTERNS_MAX, DemandTable
from atalanta.wire.openwire.server.bridge.rules import BridgeNames, BridgeRules, DestinationList

A, B, C = BrokerId("a"), BrokerId("b"), BrokerId("c")
ORDERS, NEWS = ActiveMQQueue("orders"), ActiveMQTopic("news")


def table(**values: Any) -> DemandTable:
    """The demand of B at A."""
    return DemandTable(BridgeRules(BridgeNames("NC", "a", "b"), **values), A, B, "ID:bridge", DemandShares(), "user")


def consumer(number: int, destination: ActiveMQDestination, **values: Any) -> ConsumerInfo:
    return ConsumerInfo(ConsumerId("ID:client", 1, number), destination=destination, **values)


def test_consumers_of_a_destination_count_as_one() -> None:
    made = table()
    (demand,) = made.add(consumer(1, ORDERS, selector="x = 1"))
    assert made.add(consumer(2, ORDERS)) == made.add(consumer(1, ORDERS)) == []
    info = demand.info
    assert (info.selector, info.priority, info.network_subscription) == (None, -5, True)
    assert info.broker_path == [B] and info.network_consumer_path == [ConsumerId("ID:client", 1, 1)]
    assert made.remove(ConsumerId("ID:client", 1, 1)) == []
    assert made.remove(ConsumerId("ID:client", 1, 2)) == [demand]


def test_without_conduit_each_consumer_is_one() -> None:
    made = table(conduit=False)
    found = [made.add(consumer(number, ORDERS, selector=f"x = {number}"))[0] for number in (1, 2)]
    assert [each.info.selector for each in found] == ["x = 1", "x = 2"]


def test_what_is_no_demand() -> None:
    made = table(message_ttl=1, consumer_ttl=2)
    for info in (
        consumer(1, ORDERS, browser=True),
        consumer(2, ORDERS, broker_path=[A]),
        consumer(3, ORDERS, broker_path=[C, C]),
        ConsumerInfo(None, destination=ORDERS),
        consumer(4, ActiveMQTopic("ActiveMQ.Advisory.Connection")),
    ):
        assert made.add(info) == []
    (demand,) = made.add(consumer(5, ORDERS, broker_path=[C], network_subscription=True))
    assert demand.info.priority == -8 and demand.info.broker_path == [C, B]


def test_consumers_of_farther_brokers_stay_apart_unless_asked() -> None:
    for together, count in ((False, 2), (True, 1)):
        made = table(consumer_ttl=5, conduit_network_queues=together)
        made.add(consumer(1, ORDERS))
        made.add(consumer(2, ORDERS, broker_path=longer_path(None, C), network_subscription=True))
        assert len(made.index.by_id) == count


def test_parts_of_composite_destinations() -> None:
    made = table()
    info = consumer(1, ActiveMQQueue("orders,topic://news,bills"))
    assert [each.destination for each in made.add(info)] == [ORDERS, NEWS, ActiveMQQueue("bills")]
    assert made.add(info) == []
    assert len(made.remove(ConsumerId("ID:client", 1, 1))) == 3


def test_lists_of_destinations() -> None:
    rules = BridgeRules(
        excluded=DestinationList([(True, "orders.local")]),
        dynamic=DestinationList([(True, "orders.>"), (False, "news.*")]),
        static=DestinationList([(True, "always")]),
    )
    names = ["orders.eu", "orders.local", "bills", "always"]
    assert [rules.permits(ActiveMQQueue(name)) for name in names] == [True, False, False, True]
    assert rules.permits(ActiveMQTopic("news.eu")) and not rules.permits(ActiveMQTopic("orders.eu"))
    assert rules.permits(ActiveMQTempQueue("ID:x")) and not BridgeRules(temporary=False).permits(ActiveMQTempQueue("x"))


def test_a_durable_subscription_outlives_its_consumer() -> None:
    made = table()
    (demand,) = made.add(consumer(1, NEWS, subscription_name="s", client_id="c"))
    assert demand.info.subscription_name == "NC-DS_a_news" and demand.info.additional_predicate is None
    assert made.remove(ConsumerId("ID:client", 1, 1)) == []
    assert made.remove_subscription("c", "other") == []
    assert made.remove_subscription("c", "s") == [demand]


def test_durable_subscriptions_without_conduit() -> None:
    """One demand for each, also if it is told twice; the bridge of a third broker has no client id."""
    made = table(conduit=False)
    (demand,) = made.add(consumer(1, NEWS, subscription_name="s", client_id="c"))
    (other,) = made.add(consumer(2, NEWS, subscription_name="s", client_id="d"))
    (farther,) = made.add(consumer(3, NEWS, subscription_name="e:s"))
    assert [each.info.subscription_name for each in (demand, other, farther)] == ["c:s", "d:s", "e:s"]
    assert made.add(consumer(4, NEWS, subscription_name="s", client_id="c")) == []
    assert made.remove(ConsumerId("ID:client", 1, 1)) == []
    assert made.remove(ConsumerId("ID:client", 1, 4)) == [demand]


def test_a_durable_subscription_takes_the_plain_consumers_over() -> None:
    made = table()
    (plain,) = made.add(consumer(1, NEWS))
    (durable,) = made.add(consumer(2, NEWS, subscription_name="s", client_id="c"))
    assert made.replaced_by(durable) == [plain] and made.replaced_by(durable) == []
    assert made.add(consumer(3, NEWS)) == []


def test_the_other_broker_cannot_fill_the_table() -> None:
    made = table()
    for number in range(WANTED_MAX):
        made.add(consumer(number, ORDERS))
    with pytest.raises(BrokerError, match="at most 100,000 consumers"):
        made.add(consumer(WANTED_MAX, NEWS))
    made.remove(ConsumerId("ID:client", 1, 0))
    assert len(made.add(consumer(WANTED_MAX, NEWS))) == 1


def test_bridges_of_one_user_share_a_limit() -> None:
    """Also over their connections: whoever may log in can open any number of them."""
    shares = DemandShares()
    made = [DemandTable(BridgeRules(BridgeNames("NC", "a", "b")), A, B, f"ID:{n}", shares, "user") for n in range(2)]
    shares.change("user", WANTED_MAX - 2)
    for each in made:
        each.add(consumer(1, ORDERS))
    with pytest.raises(BrokerError, match="of one user serve at most 100,000 consumers"):
        made[1].add(consumer(2, NEWS))
    assert len(made[0].close()) == 1
    assert len(made[1].add(consumer(2, NEWS))) == 1
    made[1].close()
    assert shares.by_user == {"user": WANTED_MAX - 2}


def test_many_destinations_are_not_compared_with_each_other() -> None:
    """The other broker has any number of queues: a list of them is not searched for each."""
    made = table()
    begin = time.process_time()
    for number in range(20_000):
        made.add(consumer(number, ActiveMQQueue(f"q{number}")))
    for number in range(20_000):
        assert len(made.remove(ConsumerId("ID:client", 1, number))) == 1
    assert time.process_time() - begin < 20  # in a list: minutes
    assert not made.index.by_id


def test_destinations_with_wildcards_are_few() -> None:
    made = table()
    for number in range(PATTERNS_MAX):
        made.add(consumer(number, ActiveMQTopic(f"news{number}.>")))
    with pytest.raises(BrokerError, match="at most 1,000 destinations with wildcards"):
        made.add(consumer(PATTERNS_MAX, ActiveMQTopic("news.>")))
    assert made.add(consumer(PATTERNS_MAX, ActiveMQTopic("news7.eu"))) == []
    assert len(made.add(consumer(PATTERNS_MAX + 1, ActiveMQTopic("bills.eu")))) == 1
    made.remove(ConsumerId("ID:client", 1, 8))
    assert len(made.add(consumer(PATTERNS_MAX + 2, ActiveMQTopic("news.>")))) == 1
