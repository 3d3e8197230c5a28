"""What the simulator takes for an order that parked messages broke as they came back."""

from __future__ import annotations

import pytest

from atalanta.kernel.queue_spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.sim.ledger import Violation
from atalanta.sim.return_order import HERE, ReturnOrder
from tests.cluster.parked_rig import TIMEOUT
from tests.cluster.rig import Rig, cluster_of, count, waiting


class Spread:
    """n0 deals out `a/0` … `a/5`: two stay, two are parked for n1, and two for n2, which died 3 s later."""

    def __init__(self) -> None:
        self.rig = Rig()
        self.hosts = self.rig.cluster(3, mode="STRICT")
        near, *others = self.hosts
        client = self.rig.client(near)
        for other in others:
            self.rig.network.block("n0", other.name)
        for number in range(6):
            client.publish("orders", b"", ANYCAST, key=f"a/{number}")
        self.rig.until(lambda: count(near, "orders") == 2)
        self.rig.until(lambda: all(waiting(near, f"node-{each}") == 2 for each in (1, 2)))
        self.order = ReturnOrder(near, "orders")
        self.dies(others[0])
        self.rig.run(3)
        self.dies(others[1])
        self.rig.network.heal()

    def dies(self, host: Host) -> None:
        host.crash()
        self.rig.until(lambda: host.name.replace("n", "node-") in self.away())

    def away(self) -> dict[str, bool]:
        """Who is: whether its time is over."""
        away = cluster_of(self.hosts[0]).parked.away
        return {node_id: each.due for node_id, each in away.items()}

    def promised(self, where: str) -> list[str]:
        return [key for key, at in self.order.promised.items() if at == where]


def test_what_is_parked_for_a_member_whose_time_is_not_over_may_come_late() -> None:
    play = Spread()
    play.rig.until(lambda: play.away() == {"node-1": True, "node-2": False})
    play.order.begin()
    here, ripe = play.promised(HERE), play.promised("node-1")
    assert len(here) == len(ripe) == waiting(play.hosts[0], "node-2") == 2
    assert len(play.order.promised) == 4
    play.order.came("taker", "a/9")
    for number in range(6):
        key = f"a/{number}"
        if key in here + ripe:
            with pytest.raises(Violation, match=f"taker gets {key} after a/9, though it came when"):
                play.order.came("taker", key)
        else:
            play.order.came("taker", key)


def test_when_all_is_over_all_is_in_order() -> None:
    play = Spread()
    play.rig.run(TIMEOUT + 1)
    play.order.begin()
    assert sorted(play.order.promised) == [f"a/{number}" for number in range(6)]
    for number in range(6):
        play.order.came("taker", f"a/{number}")
    play.order.begin(nothing=True)
    assert not play.order.promised


def test_what_a_member_gets_that_is_back_or_has_no_room_is_not_awaited_any_more() -> None:
    play = Spread()
    play.rig.run(TIMEOUT + 1)
    play.order.begin()
    ripe, others = play.promised("node-1"), play.promised("node-2")
    play.hosts[1].start()
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 0)
    play.order.look()
    assert not any(key in play.order.promised for key in ripe)
    assert play.promised("node-2") == others
    cluster_of(play.hosts[0]).parked.away["node-2"].look.without_room = 1
    play.order.look()
    assert not play.promised("node-2")


def test_what_has_come_back_keeps_its_place_whoever_returns() -> None:
    play = Spread()
    play.rig.run(TIMEOUT + 1)
    play.order.begin()
    ripe = play.promised("node-1")
    play.rig.client(play.hosts[0]).consume("orders")
    play.rig.until(lambda: waiting(play.hosts[0], "node-1") == 0)
    play.order.look()
    play.hosts[1].start()
    play.rig.until(lambda: "node-1" not in play.away())
    play.order.came("taker", "a/9")
    with pytest.raises(Violation):
        play.order.came("taker", ripe[0])


def test_what_arrives_later_is_promised_as_it_waits_here() -> None:
    play = Spread()
    play.rig.run(TIMEOUT + 1)
    play.order.begin()
    client = play.rig.client(play.hosts[0])
    for number in (6, 8, 7):
        client.publish("orders", b"", ANYCAST, key=f"a/{number}")
    play.rig.until(lambda: count(play.hosts[0], "orders") == 5)
    play.order.look()
    assert (
        "a/6" in play.order.promised and "a/7" not in play.order.promised
    )  # check_senders' matter
    play.order.came("taker", "a/9")
    with pytest.raises(Violation):
        play.order.came("taker", "a/6")
