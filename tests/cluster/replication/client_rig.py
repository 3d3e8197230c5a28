"""A client of a group: sends, pages, sends large bodies, acknowledges, prepares; knows what was confirmed to it."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace

from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import NullResponse
from atalanta.wire.core.packets.consumer import CreateConsumer, FlowToken, IndividualAcknowledge
from atalanta.wire.core.packets.message import (
    ReceiveMessage,
    SendMessage,
)
from atalanta.wire.core.packets.session import SessionStart
from atalanta.wire.core.packets.transaction import (
    XaCommit,
    XaEnd,
    XaInDoubt,
    XaInDoubtResponse,
    XaPrepare,
    XaResponse,
    XaStart,
    Xid,
)
from tests.cluster.replication.group_rig import begin_large, publish, send_piece
from tests.cluster.replication.machine_rig import Machine, Machines
from tests.cluster.replication.member_rig import SESSION
from tests.cluster.replication.replica_rig import drain
from tests.wire.core.server.server_rig import queue_request, text_message

ORDERS, PAGED, LARGE, XA = QUEUES = ("orders", "paged", "large", "xa")
LARGE_SIZE = 150_000
XA_SESSION = replace(SESSION, name="x", xa=True, auto_commit_sends=False, auto_commit_acks=False)


def large_body(number: int) -> bytes:
    return number.to_bytes(4, "big") * (LARGE_SIZE // 4)


class Client:
    """One connection for each purpose, to the machine that serves; `connect` again after its end.

    `sent`: every message, by queue and number. `confirmed`: those whose send was confirmed; `acknowledged` those whose
    acknowledgement was; `tried` those whose acknowledgement was sent. `prepared`: xids whose prepare was confirmed.
    """

    def __init__(self, group: Machines, seed: int) -> None:
        self.group = group
        self.draw = random.Random(seed)
        self.machine: Machine | None = None
        self.life = 0
        self.number = 0
        self.sent: set[tuple[str, int]] = set()
        self.confirmed: set[tuple[str, int]] = set()
        self.acknowledged: set[tuple[str, int]] = set()
        self.tried: set[tuple[str, int]] = set()
        self.prepared: list[int] = []
        self.queues_made: set[str] = set()
        self._sends: dict[int, tuple[str, int]] = {}
        self._acks: deque[tuple[str, int]] = deque()
        self._body = b""
        self._large_id = 0
        self._branch = 0
        self._branch_answers = 0
        self.sender = self.large = self.reader = self.xa = 0

    # --- life ---------------------------------------------------------------------------------------------

    def connected(self) -> bool:
        machine = self.machine
        return machine is not None and machine.life == self.life and machine.serving()

    def connect(self) -> bool:
        """Connects to the machine that serves. Returns whether there is one."""
        machine = self.group.active()
        if machine is None:
            return False
        self.machine = machine
        self.life = machine.life
        self._sends.clear()
        self._acks.clear()
        self._body = b""
        self._branch = 0
        self.sender, self.large, self.reader = machine.login(), machine.login(), machine.login()
        self.xa = machine.login(XA_SESSION)
        for queue in QUEUES:
            if queue not in self.queues_made:
                machine.send(self.sender, queue_request(queue))
        for index, queue in enumerate((ORDERS, PAGED)):
            machine.send(self.reader, CreateConsumer(consumer_id=index, queue=queue))
            machine.send(self.reader, FlowToken(index, 30_000))
        machine.send(self.reader, SessionStart())
        return True

    # --- actions ------------------------------------------------------------------------------------------

    def act(self) -> None:
        """Does something, and takes what has come."""
        if not self.connected() and not self.connect():
            return
        machine = self.machine
        assert machine is not None
        choice = self.draw.randrange(10)
        if choice < 6:
            queue = ORDERS if choice < 3 else PAGED
            self.number += 1
            self.sent.add((queue, self.number))
            self._sends[-10 - self.number] = queue, self.number
            publish(machine, self.sender, f"{self.number}:{'x' * 600}", -10 - self.number, queue)
        elif choice < 8:
            self._send_large(machine)
        elif self._branch == 0:
            self._prepare(machine)
        self.take()

    def _send_large(self, machine: Machine) -> None:
        """Begins a large message, or continues it."""
        if not self._body:
            self.number += 1
            self._large_id = self.number
            self._body = large_body(self.number)
            self.sent.add((LARGE, self.number))
            begin_large(machine, self.large, queue=LARGE)
        if self.connected():
            piece, self._body = self._body[:60_000], self._body[60_000:]
            correlation = 0 if self._body else -10 - self._large_id
            if correlation:
                self._sends[correlation] = LARGE, self._large_id
            send_piece(machine, self.large, piece, LARGE_SIZE, correlation)

    def _prepare(self, machine: Machine) -> None:
        self.number += 1
        self._branch = self.number
        self._branch_answers = 0
        self.sent.add((XA, self.number))
        xid = xid_of(self.number)
        message = text_message(XA, f"{self.number}:")
        packets: list[Packet] = [
            XaStart(xid), SendMessage(message, False, -1, 0), XaEnd(xid, False), XaPrepare(xid)
        ]  # fmt: skip
        for packet in packets:
            if self.connected():
                machine.send(self.xa, packet)

    # --- what comes ---------------------------------------------------------------------------------------

    def take(self) -> None:
        """Takes what has come, and acknowledges some of it."""
        machine = self.machine
        if machine is None or machine.life != self.life:
            return
        for conn in (self.sender, self.large):
            for correlation in machine.confirmed(conn):
                if correlation in self._sends:
                    self.confirmed.add(self._sends.pop(correlation))
                self.queues_made.update(QUEUES)
        for packet in machine.received(self.xa):
            assert not isinstance(packet, XaResponse) or not packet.error
            self._branch_answers += isinstance(packet, XaResponse)
            if self._branch_answers == 3 and self._branch:
                self.prepared.append(self._branch)
                self._branch = 0
        for packet in machine.received(self.reader):
            if isinstance(packet, NullResponse) and self._acks:
                self.acknowledged.add(self._acks.popleft())
            elif isinstance(packet, ReceiveMessage):
                self._got(machine, packet)

    def _got(self, machine: Machine, packet: ReceiveMessage) -> None:
        item = (ORDERS, PAGED)[packet.consumer_id], number_of(str(packet.message.text()))
        assert item in self.sent
        assert item not in self.acknowledged, f"{item} comes again"
        if self.connected() and self.draw.random() < 0.5:
            self.tried.add(item)
            self._acks.append(item)
            machine.send(self.reader, FlowToken(packet.consumer_id, 1_000))
            machine.send(
                self.reader, IndividualAcknowledge(packet.consumer_id, packet.message.id, requires_response=True)
            )

    # --- the end ------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Reads everything, and compares it with what was confirmed."""
        group = self.group
        group.until(lambda: group.active() is not None)
        machine = group.active()
        assert machine is not None
        machine.node.validate()
        if machine is self.machine and self.connected():
            for conn in (self.sender, self.large, self.reader, self.xa):
                machine.input("on_closed", conn, "done")
            group.run(100)
        branches = self._in_doubt(machine)
        assert set(self.prepared) <= set(branches)
        found = {(XA, number) for number in branches}
        for queue in QUEUES:
            if queue in machine.node.broker.queues:
                found |= {(queue, number) for number in self._drained(queue)}
        assert found <= self.sent
        assert not found & self.acknowledged, f"{sorted(found & self.acknowledged)} come again"
        missing = self.confirmed - self.tried - found
        assert not missing, f"{sorted(missing)} are lost"

    def _in_doubt(self, machine: Machine) -> list[int]:
        """Returns the numbers of the prepared branches, and commits them."""
        conn = machine.login(XA_SESSION)
        machine.send(conn, XaInDoubt())
        self.group.until(lambda: bool(machine.wire.written.get(conn)))
        [answer] = [each for each in machine.received(conn) if isinstance(each, XaInDoubtResponse)]
        numbers = [int(xid.global_transaction_id) for xid in answer.xids]
        for number in numbers:
            machine.send(conn, XaCommit(xid_of(number), one_phase=False))
        self.group.run(200)
        return numbers

    def _drained(self, queue: str) -> list[int]:
        numbers: list[int] = []
        for message in drain(self.group, queue):
            if isinstance(message, bytes):
                numbers.append(int.from_bytes(message[:4], "big"))
                assert message == large_body(numbers[-1])
            else:
                numbers.append(number_of(message))
        assert len(set(numbers)) == len(numbers)
        return numbers


def xid_of(number: int) -> Xid:
    return Xid(1, b"b", str(number).encode())


def number_of(text: str) -> int:
    return int(text.partition(":")[0])
