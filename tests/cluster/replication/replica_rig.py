"""What the tests of passive members share: a group that a test starts as it likes, and a client of whoever serves."""

from __future__ import annotations

from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.wire.core.packets.consumer import Acknowledge, CreateConsumer, FlowToken
from atalanta.wire.core.packets.message import (
    ReceiveContinuation,
    ReceiveLargeMessage,
    ReceiveMessage,
)
from atalanta.wire.core.packets.session import SessionStart
from tests.cluster.replication.group_rig import begin_large, publish, send_piece
from tests.cluster.replication.machine_rig import Machine, Machines
from tests.wire.core.server.server_rig import queue_request


class World(Machines):
    """Machines "a" (the primary), "b", … none of which runs yet."""

    @property
    def node(self) -> Machine:
        """The machine that may send."""
        found = self.active()
        assert found is not None
        return found

    def serves(self, name: str) -> bool:
        """Returns whether the machine has the active node, and may send to clients."""
        machine = self.machines[name]
        return machine.serving() and machine.node.may_send(machine.now)

    def begin(self) -> None:
        """Starts all machines, and waits until all are in sync behind "a"."""
        self["a"].follow()
        self.until(lambda: self.serves("a"))
        for name, machine in self.machines.items():
            if name != "a":
                machine.follow()
        self.until(lambda: self.in_sync() == list(self.machines))

    def stop(self, name: str) -> None:
        """Stops an active node in good order: it hands over. The machine is down then."""
        machine = self.machines[name]
        machine.input("stop")
        self.until(lambda: bool(machine.hand_over()), 2_000)
        self.run(3)
        machine.crash()


def client(world: World, queue: str = "orders") -> int:
    """A client of the machine that serves, whose queue exists."""
    machine = world.node
    conn = machine.login()
    machine.send(conn, queue_request(queue))
    world.run(100)
    machine.received(conn)
    return conn


def drain(world: Machines, queue: str = "orders") -> list[str | bytes]:
    """Receives and acknowledges everything from the queue: texts, and the bodies of large messages."""
    active = world.active()
    assert active is not None
    conn = active.login()
    active.send(conn, CreateConsumer(consumer_id=1, queue=queue))
    active.send(conn, SessionStart())
    active.send(conn, FlowToken(1, 1 << 30))
    found: list[str | bytes] = []
    large: list[bytes] = []
    last = 0
    quiet = 0
    while quiet < 20:
        world.run(20)
        quiet += 1
        for packet in active.received(conn):
            quiet = 0
            if isinstance(packet, ReceiveMessage):
                found.append(str(packet.message.text()))
                active.send(conn, Acknowledge(1, packet.message.id, requires_response=False))
            elif isinstance(packet, ReceiveLargeMessage):
                last = packet.message.id
                large = []
            elif isinstance(packet, ReceiveContinuation):
                large.append(packet.body)
                if not packet.continues:
                    found.append(b"".join(large))
                    active.send(conn, Acknowledge(1, last, requires_response=False))
    active.input("on_closed", conn, "the client ends")
    world.run(100)
    return found


def paging() -> AddressSettingsRepository:
    """Addresses that page early."""
    settings = AddressSettingsRepository()
    settings.add("#", {"max_size_bytes": 20_000, "page_size_bytes": 8_000})
    return settings


def numbered(first: int, count: int, padding: int = 50) -> list[str]:
    """Returns the texts with the numbers from `first` on."""
    return [f"{number} {'x' * padding}" for number in range(first, first + count)]


def send(world: World, conn: int, texts: list[str]) -> None:
    """Sends and waits until all are confirmed, and the followers are told so."""
    for index, text in enumerate(texts):
        publish(world.node, conn, text, -100 - index)
        world.run(2)
    confirmed: list[int] = []

    def done() -> bool:
        confirmed.extend(world.node.confirmed(conn))
        return len(confirmed) == len(texts)

    world.until(done)
    world.run(50)


def send_large(world: World, conn: int, body: bytes) -> None:
    """Sends a large message in two pieces, and waits until it is confirmed."""
    begin_large(world.node, conn)
    half = len(body) // 2
    send_piece(world.node, conn, body[:half], len(body))
    world.run(20)
    send_piece(world.node, conn, body[half:], len(body), -9)
    world.run(100)
    assert world.node.confirmed(conn) == [-9]
