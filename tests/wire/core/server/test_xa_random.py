"""A transaction manager, its client and the node fail at any time: every order is there, or its invoice, never both."""

from __future__ import annotations

import random

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.consumer import IndividualAcknowledge
from atalanta.wire.core.packets.message import ReceiveMessage
from atalanta.wire.core.packets.transaction import (
    XaCommit,
    XaEnd,
    XaInDoubt,
    XaInDoubtResponse,
    XaPrepare,
    XaResponse,
    XaRollback,
    XaStart,
    Xid,
)
from tests.kernel.broker_rig import SECOND
from tests.share import share
from tests.wire.core.server.server_rig import Client, Server

ORDERS = 12


class Manager:
    """`decided` is its own log: what it has told, or will tell, every branch that said it was prepared."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.server = Server()
        self.server.settings.add("#", {"max_delivery_attempts": -1})
        self.decided: dict[bytes, bool] = {}
        self.number = 0
        setup = self.server.login()
        setup.create_queue("in")
        setup.create_queue("out")
        for number in range(ORDERS):
            setup.publish("in", str(number), wait=False)
        self.server.settle()
        self.client = self.connect()

    def connect(self) -> Client:
        client = self.server.greeted()
        client.open_session(10, "admin", "admin", transacted=True, xa=True)
        client.consume("in", credits=100)
        return client

    def ask(self, packet: Packet) -> bool | None:
        """Whether it was carried out; None: there was no answer (yet)."""
        self.client.send(packet)
        self.some_of_it_becomes_durable()
        answers = [
            one
            for _, one in self.client.receive()
            if isinstance(one, XaResponse) or one.type == 20
        ]
        if not answers:
            return None
        return isinstance(answers[0], XaResponse) and not answers[0].error

    def some_of_it_becomes_durable(self) -> None:
        server = self.server
        journal = server.journal
        if self.random.random() < 0.7:
            server.settle()
        elif journal.last > journal.durable:
            journal.durable = self.random.randint(journal.durable, journal.last)
            server.broker.on_durable(server.now, journal.durable)
            server.turn()

    def move_one(self) -> None:
        """One order becomes an invoice, or something fails on the way."""
        pick = self.random
        self.number += 1
        xid = Xid(1, str(self.number).encode(), b"")
        before = len(self.client.seen)
        if self.ask(XaStart(xid)) is None:
            return self.fail()
        self.server.settle()
        self.client.receive()
        found = [one for _, one in self.client.seen[before:] if isinstance(one, ReceiveMessage)]
        if not found:
            return self.fail()
        order = found[0].message
        self.client.send(IndividualAcknowledge(0, order.id, False))
        self.client.publish("out", order.text() or "", wait=False)
        self.ask(XaEnd(xid, False))
        if pick.random() < 0.25:
            self.ask(XaCommit(xid, True))
        elif pick.random() < 0.2:
            self.ask(XaRollback(xid))
        elif self.ask(XaPrepare(xid)):
            key = xid.branch_qualifier
            self.decided[key] = pick.random() < 0.7
            if pick.random() < 0.7:
                self.ask(XaCommit(xid, False) if self.decided[key] else XaRollback(xid))
        return self.fail()

    def fail(self) -> None:
        """The client, or the node; what is in doubt is ended as it was decided."""
        pick = self.random.random()
        server = self.server
        if pick < 0.3:
            server.restart()
        elif pick < 0.4:
            server.settle()
            server.compact(server.journal.last)
            server.settle()
            server.restart()
        elif pick < 0.9:
            server.lost(self.client.conn)
        else:
            server.now += 400 * SECOND
            server.lost(self.client.conn)
        self.client = self.connect()
        validate(server.broker)
        if self.random.random() < 0.5:
            self.recover()

    def recover(self) -> None:
        self.server.settle()
        answer = self.client.call(XaInDoubt())
        assert isinstance(answer, XaInDoubtResponse)
        for xid in answer.xids:
            commit = self.decided.get(xid.branch_qualifier, False)
            answer = self.client.call(XaCommit(xid, False) if commit else XaRollback(xid))
            assert isinstance(answer, XaResponse) and not answer.error

    def texts(self, queue: str) -> list[str]:
        client = self.server.login()
        client.consume(queue)
        found = client.bodies()
        self.server.lost(client.conn)
        return found


@pytest.mark.parametrize("seed", share(range(12)))
def test_orders_and_invoices_agree(seed: int) -> None:
    manager = Manager(seed)
    for _ in range(40):
        manager.move_one()
    manager.server.lost(manager.client.conn)
    manager.client = manager.connect()
    manager.recover()
    manager.server.lost(manager.client.conn)
    manager.server.settle()
    left, done = manager.texts("in"), manager.texts("out")
    assert sorted([*left, *done], key=int) == [str(number) for number in range(ORDERS)]
    assert done, "something must have been moved"
    branches = manager.server.broker.branches
    assert (branches.prepared, branches.by_xid, branches.stored_bytes) == (0, {}, 0)
    validate(manager.server.broker)
