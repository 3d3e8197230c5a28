"""A transaction that the target refuses leaves nothing open there, and is offered again."""

from __future__ import annotations

import pytest

from atalanta.cluster.scale_down import link
from atalanta.cluster.scale_down.link import XA_CHANNEL
from atalanta.cluster.scale_down.phase import DONE, FAILED
from atalanta.cluster.scale_down.shipments import Shipment
from atalanta.sim.host import Host
from atalanta.wire.core.packets.transaction import XaCommit, Xid
from tests.cluster.cluster_rig import Rig, node_of
from tests.cluster.scale_down.scale_down_rig import FullTarget, begin, departure, held, leave
from tests.cluster.scale_down.xa_rig import end_branch, in_doubt_at, xa_client

XIDS = [Xid(1, b"branch", b"global %d" % number) for number in range(2)]


class RefusesWithin(FullTarget):
    """Refuses what comes in a transaction, as long as it is `full`."""

    full = False

    def ship(self, shipment: Shipment) -> None:
        if self.channel == XA_CHANNEL and type(self).full:
            self.refuse(shipment)
        else:
            super().ship(shipment)


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> type[RefusesWithin]:
    monkeypatch.setattr(RefusesWithin, "full", True)
    monkeypatch.setattr(link, "Sender", RefusesWithin)
    return RefusesWithin


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


def test_a_transaction_that_is_refused_is_undone_there_and_goes_when_there_is_room(
    full: type[RefusesWithin],
) -> None:
    rig, target, leaving = prepared()
    part = begin(rig, leaving)
    rig.until(lambda: len(rig.events("scale_down_refused queue=(transaction")) == 2)
    rig.until(lambda: not node_of(target).broker.branches.by_xid, 1)
    assert in_doubt_at(leaving) == 2
    full.full = False
    rig.until(part.over, 30)
    assert (part.phase, part.left(), part.why) == (DONE, 0, "")
    leaving.stop()
    assert in_doubt_at(target) == 2
    for xid in XIDS:
        end_branch(rig, target, XaCommit(xid, False))
    assert held(target, "orders") == [b"0", b"1"]


def test_a_transaction_that_is_refused_to_the_end_stays_whole(full: type[RefusesWithin]) -> None:
    rig, target, leaving = prepared()
    part = leave(rig, leaving)
    assert (part.phase, part.left()) == (FAILED, 2)
    assert "address orders is full (code 210); start this node again" in part.why
    assert len(rig.events("scale_down_refused queue=(transaction")) == 2
    assert not node_of(target).broker.branches.by_xid
    leaving.start()
    rig.formed()
    assert (departure(leaving).phase, in_doubt_at(leaving)) == ("none", 2)
    for xid in XIDS:
        end_branch(rig, leaving, XaCommit(xid, False))
    assert held(leaving, "orders") == [b"0", b"1"]
