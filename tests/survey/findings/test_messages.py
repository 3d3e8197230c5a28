"""Findings about messages: stranded, parked, prepared, and consumers that get none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from atalanta.survey.findings.diagnosis import diagnosed
from atalanta.survey.model.cluster import LiveCluster, NodeView
from atalanta.survey.model.links import ClusterConnectionView, LinkView
from atalanta.survey.model.queues import ConsumerView, QueueView
from tests.survey.views import FORWARD, put, stranding, the, two_nodes


def test_a_stranded_message_where_since_when_and_what_keeps_it() -> None:
    found = the(stranding(), "stranded")
    assert (found.severity, found.node) == ("error", "a")
    assert "5 messages in orders for 3 min" in found.text and "b (1 consumer)" in found.text
    assert "redistribution-delay is -1" in found.text
    assert found.remedy == (
        '<address-setting match="orders"><redistribution-delay>0</redistribution-delay></address-setting>'
    )


def _mode(text: str) -> Callable[[LiveCluster], object]:
    return lambda found: setattr(found.nodes[0].connections[0], "load_balancing", text)


@pytest.mark.parametrize(
    ("change", "why", "remedy"),
    [
        (
            _mode("OFF"),
            "message-load-balancing is OFF",
            "<message-load-balancing>OFF_WITH_REDISTRIBUTION</message-load-balancing>",
        ),
        (
            _mode("STRICT"),
            "message-load-balancing is STRICT",
            "<message-load-balancing>ON_DEMAND</message-load-balancing>",
        ),
        (
            lambda found: setattr(found.nodes[0].connections[0], "address", "jms"),
            "address 'jms' does not cover orders",
            "<address>jms,orders</address>",
        ),
        (
            lambda found: setattr(found.nodes[0].connections[0], "address", "!ord"),
            "does not cover",
            "<address></address>",
        ),
        (
            lambda found: found.nodes[0].connections[0].links.clear(),
            "no link from here to b",
            "<static-connectors>",
        ),
        (
            lambda found: found.nodes[0].redistribution_delay_ms.update(orders=0),
            "messages of a group are never redistributed",
            "<grouping-handler",
        ),
        (lambda found: found.nodes[0].connections.clear(), "no cluster connection", "<cluster"),
    ],
)
def test_a_finding_names_its_reason_and_remedy(change: Callable[[LiveCluster], object], why: str, remedy: str) -> None:
    found = stranding()
    change(found)
    finding = the(found, "stranded")
    assert why in finding.text and finding.remedy.startswith(remedy)


def test_two_hops_away() -> None:
    found = stranding()
    a, b = found.nodes
    middle = NodeView("h3:1", "id-c", "c")
    middle.connections.append(
        ClusterConnectionView("test", links={"id-b": LinkView("id-b"), "id-a": LinkView("id-a")})
    )
    found.nodes.append(middle)
    a.connections[0].links = {"id-c": LinkView("id-c")}
    b.connections[0].links = {"id-c": LinkView("id-c")}
    assert the(found, "stranded").remedy == "<max-hops>2</max-hops>"


def test_not_stranded() -> None:
    """With a consumer of its own, without one anywhere, while it empties, or when only a selector might take it."""
    found = stranding()
    found.nodes[0].consumers.append(ConsumerView("0", "s", "orders"))
    assert not [each for each in diagnosed(found, "u", "p") if each.code == "stranded"]
    found = stranding()
    found.nodes[1].consumers.clear()
    assert not [each for each in diagnosed(found, "u", "p") if each.code == "stranded"]
    found = stranding()
    put(found.nodes[0], "orders", messages=5, later=QueueView("orders", "orders", acknowledged=3))
    assert not [each for each in diagnosed(found, "u", "p") if each.code == "stranded"]
    found = stranding()
    found.nodes[1].consumers[0].filter = "colour = 'red'"
    assert the(found, "stranded").severity == "note"


def test_parked_for_a_member_that_is_away() -> None:
    found = stranding()
    del found.nodes[1]
    a = found.nodes[0]
    put(a, "orders", consumers=1)
    put(a, FORWARD + "id-b", messages=7, internal=True, oldest_ms=90_000, addresses={"orders": 7})
    a.connections[0].links["id-b"] = LinkView("id-b", linked=False)
    finding = the(found, "parked")
    assert finding.severity == "error"
    assert "7 messages parked for h2:61616, which is away; the oldest for 90 s" in finding.text
    assert "a (orders)" in finding.text and "Artemis keeps them" in finding.remedy
    a.ours = True
    a.connections[0].links["id-b"].may_have_arrived = 2
    finding = the(found, "parked")
    assert "2 of them may have arrived" in finding.text and "atalanta.toml" in finding.remedy


def test_a_forward_queue_that_grows() -> None:
    found = two_nodes()
    queue = put(found.nodes[0], FORWARD + "id-b", messages=100, internal=True, addresses={"x": 100})
    queue.later = QueueView(queue.name, queue.name, messages=900, acknowledged=50)
    found.seconds = 3
    finding = the(found, "forwarding_falls_behind")
    assert "900 messages wait for b, 800 more than 3 s ago" in finding.text
    assert '<address-setting match="x"><address-full-policy>PAGE<' in finding.remedy


def test_a_forward_queue_that_stands_still_though_its_link_is_open() -> None:
    found = two_nodes()
    queue = put(found.nodes[0], FORWARD + "id-b", messages=100, internal=True, acknowledged=7)
    queue.later = QueueView(queue.name, queue.name, messages=100, acknowledged=7)
    found.seconds = 3
    finding = the(found, "forwarding_stands_still")
    assert finding.severity == "warning"
    assert finding.text == "100 messages wait for b, and it took none for 3 s"
    queue.later.acknowledged, queue.later.messages = 8, 99
    assert diagnosed(found, "u", "p") == []


def test_consumers_with_credit_that_get_nothing() -> None:
    for values, why, remedy in (
        ({"paused": True}, "the queue is paused", "atalanta queue resume orders"),
        ({"exclusive": True}, "exclusive", '<queue name="orders" exclusive="false"/>'),
        (
            {"consumers_before_dispatch": 5},
            "waits for 5 consumers",
            'consumers-before-dispatch="2"',
        ),
        ({"enabled": False}, "disabled", 'enabled="true"'),
        ({}, "groups of other consumers", "group-rebalance"),
    ):
        found = two_nodes()
        found.seconds = 2
        queue = put(found.nodes[0], "orders", messages=4, consumers=2, **values)
        queue.later = QueueView("orders", "orders", messages=4)
        for number in ("0", "1"):
            consumer = ConsumerView(number, "s", "orders", delivered=3)
            consumer.later = ConsumerView(number, "s", "orders", delivered=3)
            found.nodes[0].consumers.append(consumer)
        # Without credit: not hungry.
        found.nodes[0].consumers[0].ready = False
        finding = the(found, "consumers_starve")
        assert "1 of 2 consumers of orders" in finding.text and why in finding.text
        assert remedy in finding.remedy


def test_prepared_transactions_whose_manager_is_gone() -> None:
    found = two_nodes()
    found.nodes[0].prepared = ["AAA", "BBB"]
    finding = the(found, "prepared_transactions")
    assert finding.text.startswith("2 prepared XA transactions wait") and "with AAA" in finding.remedy
