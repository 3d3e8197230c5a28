"""A leaving node has more than plain queues: large messages, what waits for others, duplicate ids, transactions."""

from __future__ import annotations

import pytest

from atalanta.cluster.connection.bridge import ClusterBridge
from atalanta.cluster.scale_down.phase import DONE, FAILED
from atalanta.cluster.scale_down.stages import Mover
from atalanta.kernel.queue.reference import DELIVERING
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.sim.nodes import queue
from atalanta.wire.core.packets.transaction import XaCommit, XaRollback, Xid
from tests.cluster.cluster_rig import Rig, count, linked, node_of, queue_of, waiting
from tests.cluster.connection.chain_rig import chain
from tests.cluster.links.large_client import BODY
from tests.cluster.links.large_client import client as large_client
from tests.cluster.scale_down.scale_down_rig import (
    begin,
    bodies,
    departure,
    held,
    leave,
    moving,
    send,
    to,
)
from tests.cluster.scale_down.xa_rig import XID, end_branch, xa_client


def test_large_messages_travel_piece_by_piece_and_leave_no_file(rig: Rig) -> None:
    first, second = rig.cluster(2, mode="OFF")
    client = large_client(rig, first)
    client.publish_large("orders", BODY)
    client.publish("orders", b"small", ANYCAST)
    client.publish_large("orders", BODY[:200_000])
    rig.until(lambda: count(first, "orders") == 3)
    part = departure(first)
    node_of(first).leave(rig.world.now)
    first.flush_later()
    rig.until(part.over)
    rig.run(1)
    assert part.phase == DONE
    assert not first.large.contents
    first.stop()
    reader = large_client(rig, second, "orders")
    rig.until(lambda: len(reader.bodies) == 3)
    assert reader.bodies == [BODY, b"small", BODY[:200_000]]


# -- messages for other nodes ---------------------------------------------------------------------------
@pytest.mark.parametrize("restarted", [False, True])
def test_what_waits_for_a_third_node_reaches_it_by_way_of_the_target(rig: Rig, restarted: bool) -> None:
    target, third, leaving = rig.cluster(3, mode="STRICT")
    client = rig.client(leaving)
    rig.network.block(leaving.name, third.name)
    for number in range(30):
        client.publish("orders", b"%d" % number, ANYCAST)
    rig.until(lambda: len(client.answers) == 30)
    third.crash()
    rig.network.heal()
    parked = waiting(leaving, "node-1")
    assert parked > 0
    if restarted:
        # It has forgotten which queues the third node has, but not the way to it.
        target.crash()
        target.start()
        rig.until(lambda: linked(leaving) == 1)
    part = leave(rig, to(leaving, "n0"))
    assert (part.phase, part.left()) == (DONE, 0)
    assert waiting(target, "node-1") >= parked
    third.start()
    rig.until(lambda: waiting(target, "node-1") == 0, 30)
    here, there = held(target, "orders"), held(third, "orders")
    assert len(there) >= parked
    assert sorted(here + there, key=int) == [b"%d" % number for number in range(30)]


def test_what_no_way_leads_to_comes_to_the_targets_queues_once() -> None:
    """n1 leaves to n0, which knows no n2; the answers to what it gives are lost, and it gives all of it again."""
    rig, (target, leaving, third) = chain(1, "STRICT")
    client = rig.client(leaving)
    node_of(leaving).broker.queues["$.artemis.internal.sf.test.node-2"].paused = True
    for number in range(6):
        client.publish("orders", b"%d" % number, ANYCAST)
    rig.until(lambda: len(client.answers) == 6)
    third.crash()
    rig.run(1)
    assert waiting(leaving, "node-2") > 0
    part = begin(rig, to(leaving, "n0"))
    while part.mover is None or not part.mover.link.sender.unanswered:
        rig.run(0.00001)
    rig.network.block(target.name, leaving.name)
    rig.run(1)
    for connection in list(node_of(leaving).connections):
        rig.network.cut_connection(connection)
    rig.network.heal()
    rig.until(part.over, 60)
    assert (part.phase, part.left()) == (DONE, 0)
    assert sorted(held(target, "orders")) == [b"%d" % number for number in range(6)]


@pytest.mark.parametrize("lost", [False, True])
def test_a_time_that_comes_while_the_message_is_on_its_way_comes_at_the_target(rig: Rig, lost: bool) -> None:
    """Simulator seed 563: it took a place here as well, and was counted off for both."""
    leaving, target = rig.cluster(2, mode="OFF")
    client = rig.client(leaving)
    at_ms = rig.world.now // 1_000_000 + 2_000
    send(client, "orders", b"later", _AMQ_SCHED_DELIVERY=at_ms)
    rig.until(lambda: count(leaving, "orders") == 1)
    part = begin(rig, leaving)
    while part.mover is None or not any(
        shipment.references for _, shipment in part.mover.link.sender.unanswered.values()
    ):
        rig.run(0.00001)
    rig.network.block(target.name, leaving.name)
    rig.network.latency_ns = (100, 200)
    while queue_of(leaving, "orders").pending == 0 and rig.world.now // 1_000_000 < at_ms + 10:
        rig.run(0.00001)
    if lost:
        for connection in list(node_of(leaving).connections):
            rig.network.cut_connection(connection)
    rig.network.heal()
    rig.run(0.0005)
    node_of(leaving).validate()
    rig.until(part.over, 60)
    assert (part.phase, part.left()) == (DONE, 0)
    assert bodies(rig, target, "orders") == [b"later"]


def test_a_message_that_comes_due_behind_the_last_one_goes_too(rig: Rig) -> None:
    leaving, target = rig.cluster(2, mode="OFF")
    client = rig.client(leaving)
    for number in range(3):
        client.publish("orders", b"%d" % number, ANYCAST)
    send(client, "orders", b"later", _AMQ_SCHED_DELIVERY=rig.world.now // 1_000_000 + 1_000)
    rig.until(lambda: count(leaving, "orders") == 4)
    departure(leaving).choice.config.commit_interval = 1
    part = begin(rig, leaving)
    moving(rig, part, 2)
    rig.network.block(target.name, leaving.name)
    leaving.disk.slow = 1_000
    while queue_of(leaving, "orders").pending == 0:
        rig.run(0.001)
    rig.network.heal()
    rig.until(part.over)
    assert (part.phase, part.left()) == (DONE, 0)
    assert held(target, "orders") == [b"0", b"1", b"2", b"later"]


def test_what_waits_for_the_target_itself_goes_to_the_queues_it_was_for(rig: Rig) -> None:
    target, leaving = rig.cluster(2, mode="STRICT")
    client = rig.client(leaving)
    for number in range(20):
        if number == 4:
            rig.until(lambda: count(target, "orders") == 2)
            rig.network.block(target.name, leaving.name)  # answers do not come back
        client.publish("orders", b"%d" % number, ANYCAST)
    rig.until(lambda: len(client.answers) == 20)
    rig.until(lambda: count(target, "orders") == 10)
    for connection in list(node_of(leaving).connections):
        if isinstance(node_of(leaving).connections[connection], ClusterBridge):
            rig.network.cut_connection(connection)
    rig.network.heal()
    part = leave(rig, leaving)
    assert (part.phase, part.left()) == (DONE, 0)
    assert sorted(held(target, "orders"), key=int) == [b"%d" % number for number in range(20)]


# -- duplicate ids --------------------------------------------------------------------------------------
@pytest.mark.parametrize("duplicate_id", ["text", b"\xff\xfe bytes \x80"])
def test_a_repeat_of_what_the_leaving_node_took_is_known_at_the_target(rig: Rig, duplicate_id: object) -> None:
    first, second = rig.cluster(2, mode="OFF")
    send(rig.client(first), "orders", b"once", _AMQ_DUPL_ID=duplicate_id)
    rig.until(lambda: count(first, "orders") == 1)
    leave(rig, first)
    again = rig.client(second)
    send(again, "orders", b"once", _AMQ_DUPL_ID=duplicate_id)
    rig.until(lambda: again.answers == [1])
    assert held(second, "orders") == [b"once"]


# -- transactions in doubt --------------------------------------------------------------------------------
def in_doubt(rig: Rig) -> tuple[Host, Host]:
    """Of two nodes, the first has a prepared branch: it sent `new`, and acknowledged `old` of the queue."""
    first, second = rig.cluster(2, mode="OFF")
    rig.client(first).publish("orders", b"old", ANYCAST)
    rig.until(lambda: count(first, "orders") == 1)
    client = xa_client(rig, first)
    client.begin(XID)
    client.consume_in_branch("orders")
    client.send_in_branch("orders", b"new")
    rig.until(lambda: len(client.taken) == 1)
    client.prepare(rig, XID)
    rig.client(first).publish("orders", b"plain", ANYCAST)
    rig.until(lambda: count(first, "orders") == 2)
    return first, second


def test_a_prepared_transaction_stays_where_a_queue_of_it_cannot_be_had_at_the_target(
    rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = in_doubt(rig)
    monkeypatch.setattr(
        Mover, "_ask_id", lambda mover, now, queue, create: mover._cannot(queue, "refused")
    )
    part = leave(rig, first)
    assert part.phase == FAILED and "cannot be had at the target" in part.why
    # Nothing began there, and all of it is still here.
    assert not node_of(second).broker.branches.by_xid
    first.start()
    assert [branch.xid for branch in node_of(first).broker.branches.list_prepared()]
    assert count(first, "orders") == 2


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize(
    ("commit", "expected"), [(True, [b"plain", b"new"]), (False, [b"plain", b"old"])]
)
def test_a_prepared_transaction_ends_at_the_target(
    rig: Rig, commit: bool, expected: list[bytes], restart: bool
) -> None:
    first, second = in_doubt(rig)
    part = leave(rig, first)
    assert (part.phase, part.left()) == (DONE, 0)
    assert [branch.xid for branch in node_of(second).broker.branches.list_prepared()]
    states = [each.state for each in queue_of(second, "orders").live()]
    assert states.count(DELIVERING) == 1
    if restart:
        second.crash()
        second.start()
    end_branch(rig, second, XaCommit(XID, False) if commit else XaRollback(XID))
    assert bodies(rig, second, "orders") == expected
    assert count(second, "orders") == 0
    # Nothing of it is left where it was.
    first.start()
    assert not node_of(first).broker.branches.by_xid
    assert count(first, "orders") == 0


def test_messages_of_several_prepared_transactions_all_arrive(rig: Rig) -> None:
    """They have no number yet that tells them apart; the target must not take one for another's repeat."""
    first, second = rig.cluster(2, mode="OFF")
    xids = [Xid(1, b"branch%d" % number, b"global") for number in range(3)]
    for number, xid in enumerate(xids):
        client = xa_client(rig, first, f"xa{number}")
        client.begin(xid)
        client.send_in_branch("orders", b"%d first" % number)
        client.send_in_branch("orders", b"%d second" % number)
        client.prepare(rig, xid)
    part = leave(rig, first)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    for xid in xids:
        end_branch(rig, second, XaCommit(xid, False))
    expected = [b"%d %s" % (number, which) for number in range(3) for which in (b"first", b"second")]
    assert held(second, "orders") == expected


def test_a_prepared_transaction_of_several_addresses_goes_whole(rig: Rig) -> None:
    names = ("orders", "others")
    first, second = rig.cluster(2, mode="OFF", queues=[queue(name, name, ANYCAST) for name in names])
    client = xa_client(rig, first)
    client.begin(XID)
    for name in (*names, *names):
        client.send_in_branch(name, b"new")
    client.prepare(rig, XID)
    part = leave(rig, first)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    end_branch(rig, second, XaCommit(XID, False))
    assert [held(second, name) for name in names] == [[b"new", b"new"]] * 2


def test_long_duplicate_ids_go_to_the_target_in_requests_that_it_takes(rig: Rig) -> None:
    """A thousand of 80 characters are more than 1 MiB."""
    target, leaving = rig.cluster(2, mode="OFF")
    client = rig.client(leaving)
    ids = [f"{number:080d}" for number in range(1_100)]
    for start in range(0, len(ids), 50):
        for each in ids[start : start + 50]:
            client.publish("orders", b"", ANYCAST, _AMQ_DUPL_ID=each)
        rig.until(lambda sent=start + 50: len(client.answers) == sent)  # type: ignore[misc]
    known = list(node_of(leaving).broker.caches.by_name["orders"].ids)
    assert len(known) == len(ids)
    part = leave(rig, leaving)
    assert part.phase == DONE
    assert not rig.events("scale_down_refused")
    assert list(node_of(target).broker.caches.by_name["orders"].ids) == known
