"""Clients that a node with too many clients redirects, clients that it keeps, and messages neither lost nor doubled."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from atalanta.message.message import Message
from atalanta.sim.host import Host
from atalanta.wire.core.packets.consumer import CreateConsumer, ForceConsumerDelivery
from atalanta.wire.core.packets.message import SendContinuation, SendLargeMessage
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.core.packets.transaction import XaCommit, XaEnd, XaPrepare, XaStart, Xid
from tests.cluster.balancing.balancing_rig import at_node, balancer, known, settings
from tests.cluster.balancing.constant_clients import MILLISECOND, Accounts, Roamer, roam
from tests.cluster.cluster_rig import Rig, count

Prepare = Callable[[Roamer], None]


def fleet(rig: Rig, host: Host, number: int, accounts: Accounts, **options: Any) -> list[Roamer]:
    """Clients at `host` that are known to reconnect, and do nothing unless `options` say so."""
    return roam(rig, host.name, number, accounts, known, **{"period_ns": 0, **options})


def two(mode: str = "OFF", **options: Any) -> tuple[Rig, list[Host], Accounts]:
    rig = Rig()
    return rig, rig.cluster(2, mode=mode, own=settings(**options)), Accounts()


def test_half_of_the_clients_go_to_an_empty_member_each_to_the_named_one() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 10, accounts)
    rig.until(lambda: at_node(roamers, hosts) == [5, 5])
    rig.run(30)
    assert accounts.redirects == 5
    assert len(rig.events("client_redirected")) == 5
    assert len(rig.events("clients_balanced clients=5 sent=5")) == 1


def test_clients_that_reconnect_slowly_are_not_replaced_by_others() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 10, accounts)
    for number, one in enumerate(roamers):
        one.retry_ns = number * 250 * MILLISECOND
    rig.until(lambda: at_node(roamers, hosts) == [5, 5])
    rig.run(30)
    assert accounts.redirects == 5


def test_a_client_that_never_reconnected_stays_unless_all_are_known_to() -> None:
    rig, hosts, accounts = two()
    roamers = roam(rig, hosts[0].name, 10, accounts, period_ns=0)
    rig.run(30)
    assert at_node(roamers, hosts) == [10, 0]
    assert len(rig.events("rebalance_stuck surplus=5 stay=10 why=10 not known to reconnect")) == 1
    rig, hosts, accounts = two(rebalance_any_client=True)
    roamers = roam(rig, hosts[0].name, 10, accounts, period_ns=0)
    rig.until(lambda: at_node(roamers, hosts) == [5, 5])


def test_nobody_goes_when_it_is_switched_off() -> None:
    rig, hosts, accounts = two(rebalance=False)
    roamers = fleet(rig, hosts[0], 10, accounts)
    rig.run(30)
    assert at_node(roamers, hosts) == [10, 0]
    balancer(hosts[0]).ask(rig.world.now)
    rig.until(lambda: at_node(roamers, hosts) == [5, 5])
    rig.run(30)
    assert at_node(roamers, hosts) == [5, 5]


def temporary(one: Roamer) -> None:
    one.send(
        CreateQueueV2(
            address="reply",
            queue=f"reply.{one.name}",
            durable=False,
            temporary=True,
            requires_response=False,
            routing_type=0,
        )
    )


def browsing(one: Roamer) -> None:
    one.send(
        CreateConsumer(consumer_id=7, queue="orders", browse_only=True, requires_response=False)
    )


@pytest.mark.parametrize(
    ("prepare", "why"),
    [(temporary, "has temporary queues"), (browsing, "is browsing a queue")],
)
def test_clients_that_would_be_harmed_stay(prepare: Prepare, why: str) -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 4, accounts)
    for one in roamers:
        prepare(one)
    rig.run(20)
    assert at_node(roamers, hosts) == [4, 0]
    assert balancer(hosts[0]).obstacles(rig.world.now) == {why: 4}


def test_clients_with_a_distributed_transaction_go_when_it_is_finished() -> None:
    rig, hosts, accounts = two(rebalance_patience_ms=1_000)
    roamers = fleet(rig, hosts[0], 2, accounts, xa=True)
    for number, one in enumerate(roamers):
        one.send(XaStart(Xid(1, b"branch", b"%d" % number)))
        one.send(XaEnd(Xid(1, b"branch", b"%d" % number), False))
        one.send(XaPrepare(Xid(1, b"branch", b"%d" % number)))
    rig.run(15)
    assert at_node(roamers, hosts) == [2, 0]
    why = "was busy: has a distributed transaction that is not finished"
    assert why in balancer(hosts[0]).obstacles(rig.world.now)
    for number, one in enumerate(roamers):
        one.send(XaCommit(Xid(1, b"branch", b"%d" % number), False))
    rig.until(lambda: at_node(roamers, hosts) == [1, 1], seconds=20)
    assert accounts.errors == 0


def test_the_last_consumer_of_a_subscription_stays_where_its_messages_come() -> None:
    rig, hosts, accounts = two()
    subscriber = fleet(rig, hosts[0], 1, accounts, queue="archive")
    worker = fleet(rig, hosts[0], 1, accounts, queue="orders")
    rig.until(lambda: at_node(worker, hosts) == [0, 1])
    others = fleet(rig, hosts[0], 2, accounts)
    rig.until(lambda: at_node(others, hosts) == [1, 1])
    assert at_node(subscriber, hosts) == [1, 0]


def test_messages_that_follow_their_consumers_hold_nobody_back() -> None:
    for delay_ms, expected in ((-1, [2, 0]), (0, [1, 1])):
        rig = Rig()
        hosts = rig.cluster(2, mode="ON_DEMAND", delay_ms=delay_ms)
        accounts = Accounts()
        roamers = fleet(rig, hosts[0], 1, accounts, queue="archive", window_bytes=0)
        roamers += fleet(rig, hosts[0], 1, accounts, queue="orders", window_bytes=0)
        publisher = rig.client(hosts[0])
        publisher.publish("prices", b"1", 0)
        publisher.publish("orders", b"1", 1)
        rig.run(20)
        publisher.kill()
        rig.run(10)
        assert at_node(roamers, hosts) == expected, delay_ms


def test_a_client_with_messages_in_hand_goes_when_it_has_acknowledged_them() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 2, accounts, work_ns=700 * MILLISECOND)
    rig.sender(hosts[0], "orders", [b"%d" % number for number in range(8)], 1)
    rig.until(lambda: accounts.redirects == 1)
    rig.run(30)
    assert len(accounts.received) == 8
    assert accounts.repeated(1) == []
    assert len(roamers) == 2


def test_a_client_that_does_not_acknowledge_in_time_stays_and_gets_what_was_held_back() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 2, accounts, work_ns=3_600_000 * MILLISECOND)
    rig.sender(hosts[0], "orders", [b"%d" % number for number in range(20)], 1)
    rig.run(20)
    assert at_node(roamers, hosts) == [2, 0]
    assert hosts[0].trace.counters["busy_clients_kept"] >= 1
    for one in roamers:
        one.work_ns = MILLISECOND
        one.drop()
    rig.run(30)
    assert len(accounts.received) == 20


def without_harm(rig: Rig, roamers: list[Roamer], accounts: Accounts) -> None:
    """A little later they send no more, and everything was sent and received once."""
    rig.run(2)
    for one in roamers:
        one.sending = False
    rig.run(5)
    assert accounts.errors == 0
    assert accounts.lost() == []
    assert accounts.repeated(1) == []


def test_who_sends_with_credit_is_redirected_behind_an_answer() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 4, accounts, period_ns=4 * MILLISECOND, credit_window=3_000)
    rig.until(lambda: at_node(roamers, hosts) == [2, 2], seconds=40)
    without_harm(rig, roamers, accounts)


@pytest.mark.parametrize("period_ms", [50, 20, 4])
def test_a_client_in_constant_use_is_redirected_right_behind_an_answer(
    period_ms: int,
) -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 4, accounts, period_ns=period_ms * MILLISECOND)
    rig.until(lambda: at_node(roamers, hosts) == [2, 2], seconds=20)
    without_harm(rig, roamers, accounts)


def test_clients_that_never_pause_nor_get_answers_stay_and_are_named() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 2, accounts, queue="archive")
    for one in roamers:
        one.sending = False

    def talk() -> None:
        for one in roamers:
            if one.ready:
                one.publish_silently("prices", b"tick")
        rig.world.at(300 * MILLISECOND, talk)

    talk()
    rig.run(20)
    assert at_node(roamers, hosts) == [2, 0]
    assert len(rig.events("rebalance_stuck surplus=1 stay=2 why=2 was busy: is talking")) == 1


def test_a_call_that_waits_for_a_message_does_not_keep_a_client() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 2, accounts, work_ns=900 * MILLISECOND)
    rig.run(4)
    rig.sender(hosts[0], "orders", [b"%d" % number for number in range(10)], 1)
    pending = balancer(hosts[0]).redirects.pending
    rig.until(lambda: bool(pending))
    for one in roamers:
        one.send(ForceConsumerDelivery(0, 1))
    rig.until(lambda: at_node(roamers, hosts) == [1, 1], seconds=20)
    rig.run(10)
    # The answer to the call is an empty message of its own.
    assert sorted(body for body in accounts.received if body) == [b"%d" % number for number in range(10)]
    assert [body for body in accounts.repeated(1) if body] == []


def test_an_idle_client_that_waits_for_a_message_is_redirected() -> None:
    rig, hosts, accounts = two(rebalance=False)
    roamers = fleet(rig, hosts[0], 2, accounts, window_bytes=0)
    for one in roamers:
        one.send(ForceConsumerDelivery(0, 1))
    rig.run(10)
    assert at_node(roamers, hosts) == [2, 0]
    balancer(hosts[0]).ask(rig.world.now)
    rig.until(lambda: at_node(roamers, hosts) == [1, 1], seconds=3)


def test_a_client_in_constant_transactions_is_redirected_between_two_of_them() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(
        rig, hosts[0], 4, accounts, period_ns=4 * MILLISECOND, credit_window=3_000, batch=7
    )  # fmt: skip
    rig.until(lambda: at_node(roamers, hosts) == [2, 2], seconds=20)
    assert accounts.errors == 0
    assert accounts.cut_short == 0
    assert accounts.redirects == 2


def test_clients_that_come_back_are_not_sent_for_ever() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 30, accounts)
    for one in roamers:
        one.obeys = False
    rig.run(60)
    assert at_node(roamers, hosts) == [30, 0]
    assert len(rig.events("rebalance_paused")) == 1
    calm = accounts.redirects
    assert calm <= 30
    rig.run(300)
    assert accounts.redirects == calm


def test_a_node_that_is_new_to_the_cluster_is_left_in_peace_for_the_settling_time(rig: Rig) -> None:
    hosts = rig.cluster(2, mode="OFF", own=settings(rebalance_settle_ms=20_000))
    accounts = Accounts()
    roamers = fleet(rig, hosts[0], 10, accounts)
    began = rig.world.now
    rig.until(lambda: accounts.redirects > 0, seconds=40)
    assert rig.world.now - began >= 15_000 * MILLISECOND
    assert roamers


def test_clients_go_to_the_members_of_their_zone(rig: Rig) -> None:
    hosts = []
    for zone in ("east", "east", "west"):
        hosts.append(rig.node(mode="OFF", own=settings(zone=zone)))
        hosts[-1].start()
    rig.formed()
    accounts = Accounts()
    roamers = fleet(rig, hosts[0], 20, accounts) + fleet(rig, hosts[2], 10, accounts)
    rig.until(lambda: at_node(roamers, hosts) == [10, 10, 10])
    assert accounts.redirects == 10
    assert all(" to=node-1 " in line for line in rig.events("client_redirected"))


def send_in_pieces(one: Roamer, address: str, requires_response: bool) -> None:
    """A large message."""
    one.send(SendLargeMessage(Message.create(address, b"", 4, True, one.world.now // 1_000_000, 4)))
    one.send(SendContinuation(bytes(100_000), continues=True))
    one.send(
        SendContinuation(
            b"the end",
            continues=False,
            body_size=100_007,
            requires_response=requires_response,
            correlation=0 if requires_response else -1,
        )
    )


def test_what_crosses_the_good_bye_is_done_only_if_nobody_waits_for_it() -> None:
    rig, hosts, accounts = two()
    roamers = fleet(rig, hosts[0], 2, accounts)
    for one in roamers:
        one.deaf = True  # the good-bye is on its way to them for a while
    rig.until(lambda: accounts.redirects == 1)
    gone = next(one for one in roamers if one.heard_goodbye)
    connection = gone.conn
    before = count(hosts[0], "archive")
    gone.publish("prices", b"waits for an answer", 0)
    gone.publish_silently("prices", b"does not")
    send_in_pieces(gone, "prices", False)
    send_in_pieces(gone, "prices", True)
    rig.run(2)
    assert count(hosts[0], "archive") == before + 2
    assert gone.answers == []
    rig.run(15)
    assert gone.conn != connection  # it was closed for it


def test_management_tells_who_would_go_where_and_why_others_stay() -> None:
    rig, hosts, accounts = two(rebalance=False)
    roamers = fleet(rig, hosts[0], 5, accounts) + roam(rig, "n0", 3, accounts, period_ns=0)
    rig.run(8)
    told = json.loads(rig.ask(hosts[0], "broker", "rebalance", True))
    assert (told["clients"], told["on"]) == (8, False)
    assert told["members"] == [
        {"node": "node-0", "zone": None, "clients": 8, "at": "n0:61616"},
        {"node": "node-1", "zone": None, "clients": 0, "at": "n1:61616"},
    ]
    assert told["moves"] == [{"node": "node-1", "at": "n1:61616", "clients": 4, "able": 4}]
    assert told["stay"] == {"not known to reconnect": 3}
    assert told["waits"] == "switched off in atalanta.toml"
    assert roamers
