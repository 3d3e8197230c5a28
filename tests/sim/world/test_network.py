"""Peers that do not read: who sends hears of it, nothing is lost or overtaken, and a farewell is remembered."""

from __future__ import annotations

from atalanta.sim.world.network import Machine, Network
from atalanta.sim.world.world import SECOND, World


class Peer(Machine):
    def __init__(self, name: str) -> None:
        self.name = name
        self.conn = 0
        self.got = b""
        self.choked: list[bool] = []

    def on_accepted(self, conn: int, port: int) -> None:
        self.conn = conn

    def on_dialed(self, conn: int, key: str) -> None:
        self.conn = conn

    def on_bytes(self, conn: int, data: bytes) -> None:
        self.got += data

    def on_closed(self, conn: int, why: str) -> None:
        self.conn = 0

    def on_choked(self, conn: int, choked: bool) -> None:
        self.choked.append(choked)


def connected() -> tuple[World, Network, Peer, Peer]:
    world = World(1)
    network = Network(world)
    sender, reader = Peer("sender"), Peer("reader")
    network.listen(reader, "reader", 1)
    network.dial(sender, "key", "reader", 1)
    wait(world)
    assert sender.conn and reader.conn
    return world, network, sender, reader


def wait(world: World) -> None:
    world.run_until(world.now + SECOND)


def test_a_peer_that_does_not_read_chokes_its_sender_until_it_reads_again() -> None:
    world, network, sender, reader = connected()
    network.choke_bytes = 100
    network.stall("reader")
    network.send(sender.conn, b"a" * 100)
    wait(world)
    assert (reader.got, sender.choked) == (b"", [])
    network.send(sender.conn, b"b")
    wait(world)
    assert (reader.got, sender.choked) == (b"", [True])
    network.read_again("reader")
    network.send(sender.conn, b"c")
    wait(world)
    assert (reader.got, sender.choked) == (b"a" * 100 + b"bc", [True, False])


def test_a_cut_holds_back_what_a_peer_that_reads_again_would_take() -> None:
    world, network, sender, reader = connected()
    network.choke_bytes = 1
    network.stall("reader")
    network.send(sender.conn, b"abc")
    network.blocked["sender", "reader"] = True
    network.read_again("reader")
    wait(world)
    assert (reader.got, sender.choked) == (b"", [True])
    network.heal()
    wait(world)
    assert (reader.got, sender.choked) == (b"abc", [True, False])


def test_when_the_other_side_closed_is_known_before_it_is_heard() -> None:
    world, network, sender, reader = connected()
    conn = reader.conn
    assert network.left_at(conn) == 0
    closed_at = world.now
    network.close(sender.conn, "good-bye")
    assert network.left_at(conn) == closed_at
    wait(world)
    assert reader.conn == 0


def test_a_connection_to_a_machine_that_was_replaced_counts_as_left_since_then() -> None:
    """Also one that was opened while the machine stood still: what it sends there it had before."""
    world, network, sender, reader = connected()
    early = reader.conn
    network.outdate(sender)
    replaced_at = world.now
    world.run_until(world.now + SECOND)
    network.dial(sender, "key", "reader", 1)
    wait(world)
    assert (network.left_at(early), network.left_at(reader.conn)) == (replaced_at, 0)
    network.outdate(sender, replaced_at)
    assert (network.left_at(early), network.left_at(reader.conn)) == (replaced_at, replaced_at)
