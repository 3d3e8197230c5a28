"""A leaving node brings its transaction again, since the answer was lost; at the target it has ended meanwhile."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.phase import DONE
from atalanta.cluster.scale_down.transactions import PREPARING, TransactionStage
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.sim.host import Host
from atalanta.sim.nodes import USER
from atalanta.wire.core.packets.transaction import XaCommit, XaRollback
from tests.cluster.cluster_rig import Rig, count, node_of
from tests.cluster.scale_down.scale_down_rig import begin, departure, held, leave, to
from tests.cluster.scale_down.xa_rig import XID, end_branch, in_doubt_at, xa_client


def prepared(rig: Rig, host: Host, takes: bool) -> None:
    """A branch there that sent `new`; and, if it `takes`, acknowledged `old`."""
    if takes:
        rig.client(host).publish("orders", b"old", ANYCAST)
        rig.until(lambda: count(host, "orders") == 1)
    client = xa_client(rig, host)
    client.begin(XID)
    if takes:
        client.consume_in_branch("orders")
        rig.until(lambda: len(client.taken) == 1)
    client.send_in_branch("orders", b"new")
    client.prepare(rig, XID)


def crashes_unanswered(rig: Rig, leaving: Host, target: Host) -> None:
    """A node leaves; the target has prepared the branch, and the leaving node dies before it hears of it."""
    part = begin(rig, to(leaving, target.name))
    while part.mover is None or not preparing(part.mover.stages[0]):
        rig.run(0.00005)
    rig.network.block(target.name, leaving.name)
    rig.until(lambda: in_doubt_at(target) == 1)
    leaving.crash()
    rig.network.heal()
    rig.run(1)
    assert in_doubt_at(target) == 1


def preparing(stage: object) -> bool:
    return isinstance(stage, TransactionStage) and stage.state == PREPARING


def goes_on(rig: Rig, leaving: Host) -> None:
    leaving.start()
    part = departure(leaving)
    rig.until(part.over, 30)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    leaving.stop()


def test_a_branch_stays_its_users_at_the_target(rig: Rig) -> None:
    target, leaving = rig.cluster(2, mode="OFF")
    prepared(rig, leaving, True)
    (branch,) = node_of(leaving).broker.branches.by_xid.values()
    assert branch.user == USER
    leave(rig, to(leaving, target.name))
    (moved,) = node_of(target).broker.branches.by_xid.values()
    assert moved.user == USER


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("takes", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_what_has_ended_at_the_target_is_not_in_doubt_there_again(
    rig: Rig, commit: bool, takes: bool, restart: bool
) -> None:
    target, leaving = rig.cluster(2, mode="OFF")
    prepared(rig, leaving, takes)
    crashes_unanswered(rig, leaving, target)
    end_branch(rig, target, XaCommit(XID, False) if commit else XaRollback(XID))
    if restart:
        target.crash()
        target.start()
    goes_on(rig, leaving)
    assert not node_of(target).broker.branches.by_xid
    expected = [b"new"] if commit else [b"old"] if takes else []
    assert held(target, "orders") == expected


def target_left(takes: bool) -> tuple[Rig, list[Host]]:
    """A leaving node crashed with a branch on its way; then its target left to the last one. Last, target, leaving."""
    rig = Rig()
    last, target, leaving = nodes = [rig.node(peers=[0, 1, 2], mode="OFF") for _ in range(3)]
    rig.form(*nodes)
    prepared(rig, leaving, takes)
    crashes_unanswered(rig, leaving, target)
    leave(rig, to(target, last.name))
    return rig, nodes


@pytest.mark.parametrize("takes", [False, True])
def test_what_went_on_from_the_target_is_not_in_doubt_there_again(takes: bool) -> None:
    """The target has left as well, and is back."""
    rig, (last, target, leaving) = target_left(takes)
    assert in_doubt_at(last) == 1
    end_branch(rig, last, XaCommit(XID, False))
    target.start()
    goes_on(rig, leaving)
    for host in (last, target):
        assert not node_of(host).broker.branches.by_xid
    assert held(last, "orders") == [b"new"]
    assert held(target, "orders") == []


@pytest.mark.parametrize("takes", [False, True])
def test_a_branch_that_comes_round_is_taken_once_more(rig: Rig, takes: bool) -> None:
    """From node to node and back: the same branch, and not a repeat of it."""
    hosts = [rig.node(peers=[0, 1, 2], mode="OFF") for _ in range(3)]
    rig.form(*hosts)
    prepared(rig, hosts[0], takes)
    for number in range(5):
        source, target = hosts[number % 3], hosts[(number + 1) % 3]
        part = begin(rig, to(source, target.name))
        rig.until(part.over)
        assert (part.phase, part.left(), part.why) == (DONE, 0, "")
        assert in_doubt_at(target) == 1
        rig.run(0.1)  # the mark of the departure goes
        source.stop()
        source.start()
        rig.formed()
    end_branch(rig, hosts[2], XaCommit(XID, False))
    assert held(hosts[2], "orders") == [b"new"]
    assert [in_doubt_at(host) for host in hosts] == [0, 0, 0]
