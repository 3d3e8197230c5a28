"""The simulator's ledgers find broken promises."""

from __future__ import annotations

import pytest

from atalanta.message.message import Message
from atalanta.sim.checks.ledger import ORDERS, Ledger, Violation
from atalanta.sim.loads.core_bridge import CoreBridgeLoad
from atalanta.sim.loads.divert import Diverts
from atalanta.sim.loads.xa.branches import COMMIT, COMMITTED, WHOLE, LoggedBranch
from atalanta.sim.loads.xa.transactions import Transactions
from atalanta.sim.nodes import Shape
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World
from atalanta.wire.core.packets.transaction import Xid


def ledger_with(key: str) -> Ledger:
    ledger = Ledger(World(1))
    ledger.sending(key, False, False, True)
    return ledger


def taken(key: str, **properties: str | bool) -> Message:
    message = Message.create("queue", b"", 4, True, 0, 4)
    for name, value in {"key": key, **properties}.items():
        message.properties.put(name, value)
    return message


def test_a_message_is_settled_once() -> None:
    ledger = ledger_with("p0/1")
    ledger.settle(ORDERS, "p0/1")
    with pytest.raises(Violation, match="two acknowledgements of p0/1 in orders were confirmed"):
        ledger.settle(ORDERS, "p0/1")
    with pytest.raises(Violation, match="left orders twice"):
        ledger.move("p0/1")


def test_what_is_settled_does_not_come_again() -> None:
    ledger = ledger_with("p0/1")
    ledger.world.now += SECOND
    ledger.settle(ORDERS, "p0/1")
    # It was on its way when the node closed that connection, before the other acknowledgement.
    ledger.deliver(ORDERS, "p0/1", "c0", ledger.world.now - 1)
    with pytest.raises(Violation, match="again after its acknowledgement was confirmed"):
        ledger.deliver(ORDERS, "p0/1", "c0", 0)


def test_what_nobody_sent_does_not_come() -> None:
    with pytest.raises(Violation, match="which no client sent"):
        ledger_with("p0/1").deliver(ORDERS, "p0/2", "c0", 0)


def test_what_is_confirmed_arrives() -> None:
    ledger = ledger_with("p0/1")
    ledger.confirm("p0/1", False)
    with pytest.raises(Violation, match="p0/1 left orders without a delivery"):
        ledger.check()
    ledger.acknowledge(ORDERS, "p0/1")
    ledger.check()


def transactions() -> Transactions:
    world = World(1)
    made = Transactions(world, Network(world), Ledger(world), False, True)
    made.branches["w/1"] = LoggedBranch(Xid(1, b"1", b"w"), ["xp/1"])
    made.branches["w/2"] = LoggedBranch(Xid(1, b"2", b"w"), ["xp/1"])
    return made


def test_a_message_is_sold_by_one_branch() -> None:
    made = transactions()
    made.bought(taken("xp/1", branch="w/1"))
    made.bought(taken("xp/1", branch="w/1"))
    with pytest.raises(Violation, match="xp/1 was sold by the branches w/1 and w/2"):
        made.bought(taken("xp/1", branch="w/2"))


@pytest.mark.parametrize(("state", "said"), [(COMMITTED, "but was committed"), (WHOLE, "never prepared")])
def test_no_branch_is_in_doubt_that_cannot_be(state: str, said: str) -> None:
    made = transactions()
    made.branches["w/1"].state = state
    with pytest.raises(Violation, match=said):
        made.decide("w/1")


def test_a_prepared_branch_is_not_forgotten() -> None:
    made = transactions()
    branch = made.branches["w/1"]
    branch.state = COMMIT
    with pytest.raises(Violation, match="w/1 was prepared, and is forgotten"):
        made.gone("w/1", branch)
    branch.told = True
    made.gone("w/1", branch)
    assert branch.state == COMMITTED


def test_a_bridge_keeps_the_order_of_each_sender() -> None:
    world = World(1)
    made = CoreBridgeLoad(world, Network(world), Ledger(world), 3, Shape())
    for key in ("bp0/1", "bp0/3", "bp1/2", "bp0/3", "bp0/1"):
        made.arrived(taken(key))
    with pytest.raises(Violation, match="delivered bp0/2 after number 3"):
        made.arrived(taken("bp0/2"))


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_divert_owes_what_it_takes(exclusive: bool) -> None:
    world = World(1)
    made = Diverts(world, Network(world), Ledger(world), False)
    made.exclusive = exclusive
    with pytest.raises(Violation, match="filter does not match"):
        made.diverted(taken("dp0/1", even=False))
    if exclusive:
        with pytest.raises(Violation, match="though it is diverted"):
            made.kept(taken("dp0/2", even=True))
    made.ledger.confirm("dp0/2", False)
    made.ledger.acknowledge("mail", "dp0/2")
    with pytest.raises(Violation, match="dp0/2 was never delivered from copies"):
        made.check()
    made.ledger.acknowledge("copies", "dp0/2")
    made.check()
