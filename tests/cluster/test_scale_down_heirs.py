"""A node crashed while it left, and its target is away: has it left in order, and to whom?"""

from __future__ import annotations

import pytest

from atalanta.cluster import scale_down_caches
from atalanta.cluster.scale_down_candidate import Candidate
from atalanta.cluster.scale_down_config import ScaleDownConfig
from atalanta.cluster.scale_down_link import Answer, TargetLink
from atalanta.cluster.scale_down_phase import DONE, FAILED
from atalanta.kernel.duplicates import TOKENS
from atalanta.kernel.queue_spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.wire.core.packets_connection import DisconnectV3
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.rig import RawPeer, Rig, node_of
from tests.cluster.scale_down_rig import (
    NeverOurs,
    begin,
    departure,
    held,
    leave,
    moving,
    to,
    unanswered_copies,
    underway,
)

MESSAGES = [b"%d" % number for number in range(60)]
BODIES = MESSAGES[:6]


def filled(**options: object) -> tuple[Rig, Host, Host, Host]:
    """The last, the middle, which is the target of the first, and the first, with messages."""
    rig = Rig()
    last, middle, first = rig.cluster(3, mode="OFF", **options)
    rig.filled(first, MESSAGES).kill()
    to(first, "n1", 5)
    return rig, last, middle, first


def crash_midway(rig: Rig, first: Host, moved: int, middle: Host | None = None) -> None:
    """With `middle`, it has had some of which the first node does not know."""
    underway(rig, first, moved)
    if middle is not None:
        rig.network.block(middle.name, first.name)
        rig.run(0.5)
    first.crash()
    rig.network.heal()
    rig.run(1)


def goes_on(rig: Rig, first: Host, target: Host) -> None:
    first.start()
    part = departure(first)
    rig.until(part.over, 30)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    assert part.target is not None
    assert part.target.node_id == node_of(target).broker.node_id
    first.stop()


@pytest.mark.parametrize("unanswered", [False, True])
@pytest.mark.parametrize("moved", [1, 30, 55])
def test_what_is_left_goes_where_the_target_has_gone(moved: int, unanswered: bool) -> None:
    rig, last, middle, first = filled()
    crash_midway(rig, first, moved, middle if unanswered else None)
    leave(rig, to(middle, "n0"))
    last.crash()  # it has on disk what it needs to know
    last.start()
    goes_on(rig, first, last)
    assert sorted(held(last, "orders"), key=int) == MESSAGES


def test_a_target_that_leaves_while_the_link_to_it_is_broken_is_followed_without_a_crash() -> None:
    rig, last, middle, first = filled()
    part = underway(rig, first, 10)
    rig.network.block(first.name, middle.name)
    rig.network.block(middle.name, first.name)
    rig.run(0.5)
    leave(rig, to(middle, "n0"))
    rig.network.heal()
    rig.until(part.over, 60)
    assert (part.phase, part.left()) == (DONE, 0)
    assert sorted(held(last, "orders"), key=int) == MESSAGES


def test_a_target_whose_target_left_as_well_is_found_behind_both() -> None:
    rig, last, middle, first = filled()
    late = rig.node(mode="OFF")
    crash_midway(rig, first, 13, middle)
    leave(rig, to(middle, "n0"))
    late.start()
    rig.formed()
    departure(last).choice.config = ScaleDownConfig(connectors=[])
    leave(rig, last)
    first.start()
    rig.run(5)
    part = departure(first)
    assert not part.over()  # nobody it knows is there any more: the late one did not know it either
    last.start()
    rig.until(part.over, 60)
    assert (part.phase, part.left()) == (DONE, 0)
    both = held(late, "orders") + held(last, "orders")
    assert sorted(both, key=int) == MESSAGES


def test_a_target_that_is_only_down_is_waited_for_and_the_wait_is_explained() -> None:
    """It has messages of which nobody else knows."""
    rig, last, middle, first = filled()
    crash_midway(rig, first, 13, middle)
    middle.crash()
    first.start()
    part = departure(first)
    part.broker.timers.set("scaledown.deadline", rig.world.now + 5_000_000_000)
    rig.until(part.over, 30)
    assert part.phase == FAILED
    assert "of 1 other members that answer none has taken over from it" in part.why
    (told,) = rig.events("scale_down_waits_for_target")
    assert "node=node-1" in told and "scale-down-resume = false" in told
    assert not rig.events("scale_down_target node=node-0")
    first.stop()
    assert "orders" not in node_of(last).broker.queues or held(last, "orders") == []
    middle.start()
    rig.formed()
    goes_on(rig, first, middle)
    assert held(middle, "orders") == MESSAGES


@pytest.mark.parametrize("began", ["before it left", "when it was back"])
def test_a_target_that_left_once_and_came_back_is_not_taken_for_gone(began: str) -> None:
    """Who took over then does not know what it has had since."""
    rig, last, middle, first = filled()
    if began == "before it left":
        crash_midway(rig, first, 13, middle)
    leave(rig, to(middle, "n0"))
    middle.start()
    if began == "before it left":
        first.start()
        departure(first).choice.config.commit_interval = 1
        moving(rig, departure(first), 2)
    else:
        rig.formed()
        underway(rig, first, 13)
    rig.network.block(middle.name, first.name)
    rig.run(0.5)
    first.crash()
    rig.network.heal()
    rig.run(1)
    middle.crash()
    first.start()
    rig.run(5)
    part = departure(first)
    assert part.under_way()
    assert part.target is not None and part.target.node_id == "node-1"
    middle.start()
    rig.until(part.over, 60)
    assert (part.phase, part.left()) == (DONE, 0)
    here = held(middle, "orders") + held(last, "orders")
    assert sorted(here, key=int) == MESSAGES


def test_a_target_that_crashed_as_it_handed_its_ids_on_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has some of them has not all."""
    monkeypatch.setattr(scale_down_caches, "IDS_MAX", 1)
    rig, last, middle, first = filled()
    crash_midway(rig, first, 13, middle)
    begin(rig, to(middle, "n0"))
    caches = node_of(last).broker.caches
    while len(caches.cache("BRIDGE.orders", 1_000).ids) < 3:
        rig.run(0.0002)
    middle.crash()
    first.start()
    rig.run(5)
    part = departure(first)
    assert part.target is not None and part.target.node_id == "node-1"
    middle.start()
    rig.until(departure(middle).over, 30)
    middle.stop()
    rig.until(part.over, 30)
    assert (part.phase, part.left()) == (DONE, 0)
    assert sorted(held(last, "orders"), key=int) == MESSAGES


def test_who_could_not_be_given_all_ids_is_not_taken_for_one_that_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig, last, middle, first = filled()
    crash_midway(rig, first, 13, middle)
    call = TargetLink.call

    def refused(
        link: TargetLink, now: int, resource: str, operation: str, given: list[object], answer: Answer
    ) -> None:
        if given[:1] == ["BRIDGE.orders"]:
            operation = "thatIsNotThere"
        call(link, now, resource, operation, given, answer)

    monkeypatch.setattr(TargetLink, "call", refused)
    leave(rig, to(middle, "n0"))
    first.start()
    rig.run(5)
    part = departure(first)
    assert part.under_way() and part.target is not None and part.target.node_id == "node-1"
    assert len(held(last, "orders")) < len(MESSAGES)


def test_a_real_artemis_as_the_target_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hands no ids on, and remembers no token."""
    monkeypatch.setattr(TargetLink, "ours", NeverOurs(), raising=False)
    rig, last, middle, first = filled()
    crash_midway(rig, first, 13, middle)
    middle.crash()
    first.start()
    rig.run(5)
    part = departure(first)
    assert part.under_way() and part.target is not None and part.target.node_id == "node-1"
    (told,) = rig.events("scale_down_waits_for_target")
    assert "nobody could tell" in told


def test_another_node_that_has_the_targets_address_is_not_followed_as_it_leaves() -> None:
    """Where it goes nobody knows what the target has had."""
    rig, last, middle, first = filled()
    crash_midway(rig, first, 13)
    rig.network.latency_ns = (20_000_000, 21_000_000)
    part = begin(rig, to(middle, "n0"))
    rig.until(lambda: part.members_told)
    first.start()
    waits = departure(first)
    assert waits.target is not None
    waits.target = Candidate("node-9", waits.target.transport)
    waits.mark.token = "which node-9 has"
    rig.run(10)
    assert part.over()
    assert waits.under_way() and waits.target.node_id == "node-9"
    assert len(held(last, "orders")) < len(MESSAGES)


def test_a_target_found_at_another_address_is_told_to_clients_by_that() -> None:
    rig, _, middle, first = filled()
    crash_midway(rig, first, 13, middle)
    middle.crash()
    first.start()
    part = departure(first)
    gone = TransportConfiguration("gone")
    gone.put("host", "nowhere")
    gone.put("port", "61616")
    part.target = Candidate("node-1", gone)
    peer = RawPeer(rig, "comer")
    peer.dial(first)
    rig.run(3)
    middle.start()
    rig.until(part.over, 60)
    assert (part.phase, part.left(), part.heirs.asked) == (DONE, 0, None)
    (goodbye,) = peer.got(DisconnectV3)
    assert isinstance(goodbye, DisconnectV3)
    assert goodbye.target is not None and goodbye.target.host == "n1"
    assert held(middle, "orders") == MESSAGES


def test_no_client_can_push_out_what_leaving_nodes_have_told() -> None:
    rig, _, middle, first = filled()
    leave(rig, first)
    tokens = list(node_of(middle).broker.caches.by_name[TOKENS].ids)
    client = rig.client(middle)
    client.publish(TOKENS, b"", ANYCAST, _AMQ_DUPL_ID="one more")
    rig.run(1)
    assert list(node_of(middle).broker.caches.by_name[TOKENS].ids) == tokens


@pytest.mark.parametrize("discovery", [False, True])
def test_members_that_the_configuration_does_not_name_are_asked_too(discovery: bool) -> None:
    """Known at the freeze, or heard in the discovery group since."""
    rig = Rig()
    hosts = [rig.node(peers=[], mode="OFF", discovery=True) for _ in range(2)]
    late = rig.node(peers=[], mode="OFF", discovery=True)
    middle, first = hosts
    started = hosts if discovery else [late, *hosts]
    rig.form(*started)
    rig.filled(first, MESSAGES).kill()
    departure(first).choice.config.commit_interval = 5
    if not discovery:
        only = departure(first).choice.candidates()[0]
        assert only.node_id == "node-0"
    crash_midway(rig, first, 13, middle)
    if discovery:
        late.start()
    rig.formed()
    leave(rig, middle)
    goes_on(rig, first, late)
    assert sorted(held(late, "orders"), key=int) == MESSAGES


@pytest.mark.parametrize("had", [True, False])
@pytest.mark.parametrize("meant_for", ["whom it is left to last", "the first target"])
def test_what_waited_for_others_comes_once_by_way_of_who_took_over(
    meant_for: str, had: bool
) -> None:
    """The first target `had` it, or not."""
    rig = Rig()
    last, middle, first = rig.cluster(3)
    there = last if meant_for == "whom it is left to last" else middle
    unanswered_copies(rig, first, middle, there, BODIES, had)
    first.crash()
    rig.network.heal()
    rig.run(1)
    leave(rig, to(middle, "n0"))
    rig.run(1)
    goes_on(rig, first, last)
    rig.run(5)
    assert held(last, "mine") == BODIES
    left = [queue.message_count for queue in node_of(last).broker.queues.values() if queue.internal]
    assert not any(left)
