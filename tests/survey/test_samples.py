"""Two samples of a cluster as one: rates of what both have."""

from __future__ import annotations

from atalanta.survey.flow import flow_of
from atalanta.survey.model.links import BridgeView, NetworkView
from atalanta.survey.model.queues import ConsumerView
from atalanta.survey.samples import joined
from tests.survey.views import put, two_nodes


def test_rates_over_samples_that_follow_one_another() -> None:
    samples = []
    for added in (0, 100, 160):
        cluster = two_nodes()
        put(cluster.nodes[0], "orders", messages=added, added=added, paused=added == 160)
        cluster.nodes[0].connections[0].links["id-b"].confirmed = added
        cluster.nodes[0].consumers.append(ConsumerView("0", "s", "orders", delivered=added))
        cluster.nodes[0].bridges.append(BridgeView("out", acknowledged=added))
        cluster.nodes[0].networks.append(NetworkView("NC", "tcp://c:1", sent=added))
        samples.append(cluster)
    found = joined(samples[0], samples[1], 2.0)
    assert flow_of(found).nodes[0].in_per_second == 50.0
    found = joined(found, samples[2], 2.0)
    flow = flow_of(found)
    assert (flow.nodes[0].in_per_second, flow.nodes[0].messages) == (30.0, 160)
    link = flow.between("id-a", "id-b")
    assert link is not None and link.per_second == 30.0
    a = found.nodes[0]
    assert a.queues["orders"].paused and a.queues["orders"].later is not None
    assert a.consumers[0].delivered == 100 and a.consumers[0].later is not None
    assert (a.bridges[0].acknowledged, a.bridges[0].later_acknowledged) == (100, 160)
    assert (a.networks[0].sent, a.networks[0].later_sent) == (100, 160)


def test_what_is_new_or_was_created_again_has_no_rate() -> None:
    before, after = two_nodes(), two_nodes()
    put(before.nodes[0], "again", added=500)
    put(after.nodes[0], "again", added=3)
    put(after.nodes[0], "new", added=7)
    del before.nodes[1]
    found = joined(before, after, 1.0)
    assert [queue.later for queue in found.nodes[0].queues.values()] == [None, None]
    assert flow_of(found).nodes[0].in_per_second == 0


def test_queues_over_all_nodes() -> None:
    found = two_nodes()
    put(found.nodes[0], "orders", messages=3, added=10)
    put(found.nodes[1], "orders", messages=4, consumers=2)
    put(found.nodes[1], "$.artemis.internal.sf.test.id-a", internal=True, messages=9)
    (orders,) = found.queues()
    assert (orders.total("messages"), orders.total("consumers"), list(orders.by_node)) == (7, 2, ["id-a", "id-b"])
    assert orders.per_second("added", 0) is None
