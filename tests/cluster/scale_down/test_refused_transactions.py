"""A transaction that the target refuses leaves nothing open there, and stays; for room at a full address it waits."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down.phase import DONE, FAILED
from atalanta.sim.host import Host
from atalanta.wire.core.packets.transaction import XaCommit, Xid
from tests.cluster.cluster_rig import Rig, node_of
from tests.cluster.scale_down.scale_down_rig import Refusals, begin, departure, held, leave
from tests.cluster.scale_down.xa_rig import end_branch, in_doubt_at, xa_client

XIDS = [Xid(1, b"branch", b"global %d" % number) for number in range(2)]


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> Refusals:
    return Refusals(monkeypatch)


def prepared() -> tuple[Rig, Host, Host]:
    """The second node has two branches in doubt, each with a message for `orders`."""
    rig = Rig()
    target, leaving = rig.cluster(2, mode="OFF")
    client = xa_client(rig, leaving)
    for number, xid in enumerate(XIDS):
        client.begin(xid)
        client.send_in_branch("orders", b"%d" % number)
        client.prepare(rig, xid)
    return rig, target, leaving


def test_a_transaction_for_a_full_address_is_undone_there_and_goes_when_there_is_room(
    refusals: Refusals,
) -> None:
    rig, target, leaving = prepared()
    refusals.room["orders"] = 0
    part = begin(rig, leaving)
    rig.until(lambda: len(refusals.seen) > 3)
    rig.until(lambda: not node_of(target).broker.branches.by_xid, 1)
    assert in_doubt_at(leaving) == 2
    refusals.room["orders"] = 2
    rig.until(part.over, 30)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    leaving.stop()
    assert in_doubt_at(target) == 2
    for xid in XIDS:
        end_branch(rig, target, XaCommit(xid, False))
    assert held(target, "orders") == [b"0", b"1"]


@pytest.mark.parametrize(
    ("full", "seconds", "why"),
    [
        (True, range(15, 20), "address orders is full (code 210)"),
        (False, range(2), "not this one (code 105)"),
    ],
)
def test_a_transaction_that_is_refused_to_the_end_stays_whole(
    refusals: Refusals, full: bool, seconds: range, why: str
) -> None:
    rig, target, leaving = prepared()
    if full:
        refusals.room["orders"] = 0
    else:
        refusals.bodies = [b"0", b"1"]
    departure(leaving).full_timeout_ns = 15_000_000_000
    began = rig.world.now
    part = leave(rig, leaving)
    assert (rig.world.now - began) // 1_000_000_000 in seconds
    assert (part.phase, part.left()) == (FAILED, 2)
    assert f"{why}; start this node again" in part.why
    assert len(rig.events("scale_down_refused queue=(transaction")) == 2
    assert full or len(refusals.seen) == 2
    assert not node_of(target).broker.branches.by_xid
    leaving.start()
    rig.formed()
    assert (departure(leaving).phase, in_doubt_at(leaving)) == ("none", 2)
    for xid in XIDS:
        end_branch(rig, leaving, XaCommit(xid, False))
    assert held(leaving, "orders") == [b"0", b"1"]


def test_a_transaction_waits_for_credits_until_the_time_is_up() -> None:
    """An Atalanta withholds them while the address is full."""
    rig, target, leaving = prepared()
    rig.filled(target, [b"older"] * 10)
    broker = node_of(target).broker
    broker.settings.add("orders", {"address_full_policy": "BLOCK", "max_size_bytes": 1_000})
    broker.address_registry.apply_settings(broker.addresses["orders"])
    departure(leaving).full_timeout_ns = 15_000_000_000
    part = leave(rig, leaving)
    assert (part.phase, part.left(), part.in_doubt) == (FAILED, 2, False)
    assert "the target has no room at address orders; start this node again" in part.why
    assert not broker.branches.by_xid
