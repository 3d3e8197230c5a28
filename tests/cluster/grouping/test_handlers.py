"""Groups of messages in a cluster with grouping handlers: one queue for each group, whoever gets its messages."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue.spec import MULTICAST
from tests.cluster.cluster_rig import Rig, count, node_of, queue_of
from tests.cluster.grouping.grouping_rig import (
    bodies_at,
    group_stored,
    grouped_cluster,
    grouping_of,
    holders,
    pins_of,
    readers_at,
    send_group,
)


def test_a_group_goes_to_one_queue_from_whatever_node_it_is_sent(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    readers = readers_at(rig, hosts)
    rig.run(1)
    for at, host in enumerate(hosts):
        sender = rig.client(host)
        send_group(sender, "red", *[f"{at}-{number}" for number in range(4)])
        rig.run(0.1)
        assert len(sender.answers) == 4
    rig.run(1)
    assert sorted(len(reader.bodies) for reader in readers) == [0, 0, 12]
    got = max((reader.bodies for reader in readers), key=len)
    assert got == [f"{at}-{number}".encode() for at in range(3) for number in range(4)]


def test_three_nodes_at_the_same_instant_do_not_split_a_group(rig: Rig) -> None:
    """Real Artemis behaves so (an observed race)."""
    hosts = grouped_cluster(rig)
    readers = readers_at(rig, hosts)
    senders = [rig.client(host) for host in hosts]
    rig.run(1)
    for group in range(20):
        for at, sender in enumerate(senders):
            send_group(sender, f"g{group}", *[f"{group}/{at}/{number}" for number in range(3)])
    rig.until(lambda: all(len(sender.answers) == 60 for sender in senders))
    rig.until(lambda: sum(len(reader.bodies) for reader in readers) == 180)
    where: dict[bytes, dict[str, bool]] = {}
    for reader in readers:
        for body in reader.bodies:
            where.setdefault(body.split(b"/")[0], {})[reader.target] = True
    assert all(len(nodes) == 1 for nodes in where.values()), where
    assert all(reader.bodies for reader in readers), "groups are shared among the nodes"
    for reader in readers:  # the order of each producer stands
        for at in range(3):
            mine = [body for body in reader.bodies if body.split(b"/")[1] == b"%d" % at]
            for group in range(20):
                numbers = [int(body[-1:]) for body in mine if body.startswith(b"%d/" % group)]
                assert numbers == sorted(numbers)


def test_groups_are_shared_by_round_robin(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    readers = readers_at(rig, hosts)
    rig.run(1)
    sender = rig.client(hosts[0])
    for group in ("a", "b", "c"):
        send_group(sender, group, *[f"{group}{number}" for number in range(10)])
    rig.until(lambda: all(len(reader.bodies) == 10 for reader in readers))


def test_nothing_is_confirmed_before_the_group_is_decided(rig: Rig) -> None:
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 2_000))
    hosts[0].crash()
    sender = rig.client(hosts[1])
    send_group(sender, "red", "one")
    sender.publish("orders", b"without")
    rig.run(1.5)
    assert sender.answers == [], "what follows in the session waits, too"
    assert sender.errors == []
    rig.until(lambda: sender.errors, 2)
    assert "LOCAL grouping-handler did not answer within 2000 ms" in str(sender.errors[0].message)
    assert sender.errors[0].correlation == 1
    rig.until(lambda: sender.answers == [2])
    assert b"one" not in bodies_at(hosts[1]) + bodies_at(hosts[2])


def test_the_local_node_comes_back_in_time(rig: Rig) -> None:
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 10_000))
    hosts[0].crash()
    sender = rig.client(hosts[1])
    send_group(sender, "red", "one", "two")
    rig.run(1)
    hosts[0].start()
    rig.until(lambda: sender.answers == [1, 2], 12)
    assert len(holders(hosts)) == 1


def test_decided_groups_go_on_while_the_local_node_is_away(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    sender = group_stored(rig, hosts[1], "red", "one")
    assert holders(hosts) == ["n1"], "its own queue came first"
    hosts[0].crash()
    send_group(sender, "red", "two")
    rig.until(lambda: len(sender.answers) == 2)
    assert bodies_at(hosts[1]) == [b"one", b"two"]


def test_decisions_survive_the_compaction_of_the_journal(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    sender = rig.client(hosts[0])
    send_group(sender, "red", "one")
    send_group(sender, "blue", "one")
    rig.until(lambda: len(sender.answers) == 2)
    before = pins_of(hosts[0])
    journal = node_of(hosts[0]).journal
    oldest = journal.segments[0].number
    rig.consuming(hosts[0])
    while journal.segments[0].number == oldest:
        for _ in range(20):
            sender.publish("orders", b"x" * 50_000)
        rig.run(0.5)
    hosts[0].crash()
    hosts[0].start()
    rig.run(1)
    assert pins_of(hosts[0]) == before


def test_the_pinned_node_is_down_and_comes_back(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    group_stored(rig, hosts[1], "red", "1")
    assert holders(hosts) == ["n1"]
    hosts[1].crash()
    others = [rig.client(hosts[0]), rig.client(hosts[2])]
    send_group(others[0], "red", "2", "3")
    rig.until(lambda: len(others[0].answers) == 2)
    send_group(others[1], "red", "4")
    rig.until(lambda: others[1].answers)
    assert holders(hosts) == [], "they wait for their node"
    hosts[1].start()
    rig.until(lambda: sorted(bodies_at(hosts[1])) == [b"1", b"2", b"3", b"4"])
    assert holders(hosts) == ["n1"]


def test_a_local_node_that_restarts_keeps_groups_with_a_node_that_is_away(rig: Rig) -> None:
    """Artemis gives them up: then the backlog there and what comes now are read side by side."""
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 1_000))
    group_stored(rig, hosts[1], "red", "1")
    hosts[1].crash()
    hosts[0].crash()
    hosts[0].start()
    other = rig.client(hosts[0])
    send_group(other, "red", "2")
    rig.until(lambda: other.errors)
    assert "its queue ordersnode-1 was not seen" in str(other.errors[0].message)
    hosts[1].start()
    rig.formed()
    send_group(other, "red", "3")
    rig.until(lambda: bodies_at(hosts[1]) == [b"1", b"3"])


def test_a_node_that_leaves_in_good_order_gives_its_groups_up(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    group_stored(rig, hosts[1], "red", "1")
    hosts[1].stop()
    rig.until(lambda: not pins_of(hosts[0]))
    group_stored(rig, hosts[2], "red", "2")
    assert holders([hosts[0], hosts[2]]) == ["n2"]


def test_a_group_goes_on_elsewhere_after_the_timeout_if_its_node_left_after_the_local_node(rig: Rig) -> None:
    """The LOCAL node and the group's node were stopped in good order; the LOCAL one comes back without the other."""
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 5_000))
    group_stored(rig, hosts[1], "red", "1")
    hosts[0].stop()
    hosts[1].stop()
    hosts[0].start()
    sender = rig.client(hosts[0])
    send_group(sender, "red", "2")
    rig.run(4.5)
    assert sender.answers == [] and sender.errors == [], "the group's node may come back"
    rig.until(lambda: sender.answers == [1], 1)
    assert any("n0 groups_freed node=node-1 groups=1 " in line.text for line in rig.world.history)
    (holder,) = [host for host in (hosts[0], hosts[2]) if queue_of(host, "orders").message_count]
    hosts[1].start()
    rig.formed()
    for host in (hosts[1], hosts[0], hosts[2]):
        group_stored(rig, host, "red", f"by {host.name}")
    assert bodies_at(hosts[1]) == [b"1"], "what was there before is there, and nothing new"
    assert bodies_at(holder) == [b"2", b"by n1", b"by n0", b"by n2"]


@pytest.mark.parametrize("crash", [False, True])
def test_a_local_node_that_starts_twice_within_the_timeout_still_gives_the_groups_up(rig: Rig, crash: bool) -> None:
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 2_000))
    group_stored(rig, hosts[1], "red", "1")
    hosts[0].stop()
    hosts[1].stop()
    hosts[0].start()
    rig.run(1)
    if crash:
        hosts[0].crash()
    else:
        hosts[0].stop()
    hosts[0].start()
    rig.run(3)
    sender = rig.client(hosts[0])
    send_group(sender, "red", "2")
    rig.until(lambda: sender.answers == [1], 4)


def test_a_node_that_is_back_within_the_timeout_keeps_its_groups(rig: Rig) -> None:
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 8_000))
    group_stored(rig, hosts[1], "red", "1")
    hosts[0].stop()
    hosts[1].stop()
    hosts[0].start()
    sender = rig.client(hosts[0])
    send_group(sender, "red", "2")
    rig.run(1)
    hosts[1].start()
    rig.until(lambda: bodies_at(hosts[1]) == [b"1", b"2"])
    rig.run(10)
    hosts[1].crash()
    send_group(sender, "red", "3")
    rig.until(lambda: sender.answers == [1, 2])
    assert holders([hosts[0], hosts[2]]) == [], "it crashed: its messages wait for it"


def test_a_node_that_connects_again_after_the_timeout_keeps_its_groups(rig: Rig) -> None:
    """It was never away: its next attempt to connect to the LOCAL node that restarts is later than a short timeout."""
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 300))
    group_stored(rig, hosts[1], "red", "1")
    hosts[0].stop()
    hosts[0].start()
    rig.run(0.4)
    assert not grouping_of(hosts[0]).complete
    rig.formed()
    for host in hosts:
        group_stored(rig, host, "red", f"by {host.name}")
    rig.until(lambda: len(bodies_at(hosts[1])) == 4)


def test_a_node_that_had_crashed_before_the_local_node_left_keeps_its_groups(rig: Rig) -> None:
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 1_000))
    group_stored(rig, hosts[1], "red", "1")
    hosts[1].crash()
    rig.until(lambda: "node-1" not in grouping_of(hosts[0]).complete)
    hosts[0].stop()
    hosts[0].start()
    sender = rig.client(hosts[0])
    rig.run(3)
    send_group(sender, "red", "2")
    rig.until(lambda: sender.errors)
    assert pins_of(hosts[0]) == {"red.orders": "ordersnode-1"}


def test_a_node_that_saw_the_groups_node_leave_tells_the_local_one(rig: Rig) -> None:
    """The LOCAL node crashed and could not see it; another one could."""
    hosts = grouped_cluster(rig, change=lambda config: setattr(config, "timeout_ms", 2_000))
    group_stored(rig, hosts[1], "red", "1")
    hosts[0].crash()
    hosts[1].stop()
    rig.run(1)
    hosts[0].start()
    rig.run(2)
    sender = rig.client(hosts[2])
    send_group(sender, "red", "2")
    rig.until(lambda: sender.answers == [1], 4)
    assert len(holders([hosts[0], hosts[2]])) == 1
    hosts[1].start()
    rig.formed()
    group_stored(rig, hosts[1], "red", "3")
    assert bodies_at(hosts[1]) == [b"1"]


def test_a_queue_that_is_deleted_gives_its_groups_up(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    sender = group_stored(rig, hosts[1], "red", "1")
    node = node_of(hosts[1])
    node.broker.queue_registry.delete(rig.world.now, "orders", "test")
    hosts[1].flush_later()
    rig.until(lambda: not pins_of(hosts[0]))
    send_group(sender, "red", "2")
    rig.until(lambda: len(sender.answers) == 2)
    assert len(holders([hosts[0], hosts[2]])) == 1


def test_each_subscription_of_a_topic_has_its_own_decision(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    rig.stored(hosts[2], "prices", [b"1", b"2", b"3"], MULTICAST, _AMQ_GROUP_ID="red")
    assert pins_of(hosts[0]) == {"red.archive": "archivenode-2"}
    assert bodies_at(hosts[2], "archive") == [b"1", b"2", b"3"]


def test_messages_without_a_group_ask_nobody(rig: Rig) -> None:
    hosts = grouped_cluster(rig)
    hosts[0].crash()
    sender = rig.client(hosts[1])
    sender.publish("orders", b"1")
    rig.until(lambda: sender.answers)
    assert grouping_of(hosts[1]).questions == {}


def test_a_group_ends_by_its_timeout(rig: Rig) -> None:
    def soon(config: object) -> None:
        config.group_timeout_ms = 2_000  # type: ignore[attr-defined]
        config.reaper_period_ms = 500  # type: ignore[attr-defined]

    hosts = grouped_cluster(rig, change=soon)
    sender = rig.client(hosts[1])
    for number in range(10):
        send_group(sender, "red", str(number))
        rig.run(0.5)
    assert pins_of(hosts[0]) == {"red.orders": "ordersnode-1"}, "it is in use all the time"
    rig.run(4)
    assert pins_of(hosts[0]) == {}
    group_stored(rig, hosts[2], "red", "new")
    assert pins_of(hosts[0]) == {"red.orders": "ordersnode-2"}
    assert count(hosts[2], "orders") == 1


def test_parked_messages_of_a_group_wait_for_their_node(rig: Rig) -> None:
    """Others come back to whoever consumes (cluster/store_and_forward/parked_messages.py)."""
    hosts = grouped_cluster(rig)
    group_stored(rig, hosts[1], "red", "1")
    hosts[1].crash()
    other = rig.client(hosts[0])
    send_group(other, "red", "2")
    reader = rig.consuming(hosts[0])
    rig.run(30)
    assert reader.bodies == []
    hosts[1].start()
    rig.until(lambda: bodies_at(hosts[1]) == [b"1", b"2"])
