"""Colocated nodes in the simulator: who hosts whose backup, who is refused, and what happens when a host is lost."""

from __future__ import annotations

from dataclasses import replace

from atalanta.cluster.connection.backup_call import ASK, REQUEST, BackupCall, decode_answer
from atalanta.cluster.connection.colocation_seat import ColocationSeat, HostingMember
from atalanta.node.config import Ports
from atalanta.sim.host import Host
from atalanta.wire.core.transport import TransportConfiguration
from tests.cluster.cluster_rig import Rig, node_of

INTERVAL_NS = 1_000_000_000


class Seat(ColocationSeat):
    """The seat of one node, which survives its crashes; no process is started."""

    def __init__(self, name: str, room: int = 1) -> None:
        self.own = BackupCall(ASK, "", "replication", "", name, 61616)
        self.backup_group = ""
        self.interval_ns = INTERVAL_NS
        self.backups_max = room
        self.name = name
        self.running: list[str] = []
        self.known: list[HostingMember] = []

    def hosted(self) -> list[str]:
        return self.running

    def host(self, call: BackupCall) -> tuple[str, int]:
        if call.node_id not in self.running:
            self.running.append(call.node_id)
        return self.name, 61716

    def release(self, node_id: str) -> None:
        if node_id in self.running:
            self.running.remove(node_id)

    def hosts(self) -> list[HostingMember]:
        return self.known

    def remember(self, hosts: list[HostingMember]) -> None:
        self.known = hosts


def colocated(rig: Rig, count: int, room: int = 1) -> tuple[list[Host], list[Seat]]:
    """Started nodes that know each other, each with a seat."""
    hosts, seats = [rig.node() for _ in range(count)], [Seat(f"n{index}", room) for index in range(count)]
    for host, seat in zip(hosts, seats, strict=True):
        made = host.make_node

        def make(ports: Ports, made: object = made, seat: Seat = seat) -> object:
            return made(replace(ports, colocation=seat))  # type: ignore[operator]

        host.make_node = make  # type: ignore[assignment]
    rig.form(*hosts)
    return hosts, seats


def connect(host: Host, at: str) -> None:
    """Tells the node that the backup at `at` is connected, "" for none."""
    node = node_of(host)
    backups = {"test": TransportConfiguration.tcp("test", at, 61716)} if at else {}
    node.on_backups(host.world.now, backups)


def hosted(seats: list[Seat]) -> list[list[str]]:
    return [seat.running for seat in seats]


def test_nodes_that_start_together_host_each_other_in_a_ring(rig: Rig) -> None:
    _, seats = colocated(rig, 3)
    rig.run(5)
    assert hosted(seats) == [["node-2"], ["node-0"], ["node-1"]]
    assert [each.known[0].node_id for each in seats] == ["node-1", "node-2", "node-0"]
    assert len(rig.events("backup_hosted")) == 3  # told once


def test_a_node_that_finds_no_room_says_so_and_gets_the_next_free_place(rig: Rig) -> None:
    _, seats = colocated(rig, 3, room=0)
    seats[0].backups_max = 1
    rig.run(5)
    (first,) = seats[0].running
    late = "n1" if first == "node-2" else "n2"
    assert any(f"{late} backup_missing why=no other member has room" in each for each in rig.events("backup_missing"))
    seats[0].backups_max = 2
    rig.run(5)
    assert sorted(seats[0].running) == ["node-1", "node-2"]


def test_other_members_are_asked_when_the_host_is_away_for_a_minute_and_the_superfluous_one_ends(rig: Rig) -> None:
    hosts, seats = colocated(rig, 3, room=2)
    rig.run(5)
    hosts[1].crash()  # it hosts the backup of node-0
    rig.run(30)
    assert seats[2].running == ["node-1"]  # it may come back
    rig.run(60)
    assert seats[2].running == ["node-1", "node-0"]
    connect(hosts[0], "n2")
    hosts[1].start()
    rig.formed()
    rig.run(5)
    assert "node-0" not in seats[1].running and "node-0" in seats[2].running
    assert [each.node_id for each in seats[0].known] == ["node-2"]


def test_a_node_with_another_form_or_group_is_refused(rig: Rig) -> None:
    hosts, _ = colocated(rig, 2)
    answer = node_of(hosts[0]).host.cluster.backup_call
    call = BackupCall(REQUEST, "other", "replication", "", "h", 1)
    assert not decode_answer(answer(call.encode())).why
    assert "not with shared-store" in decode_answer(answer(replace(call, form="shared-store").encode())).why
    assert "group-name '', not 'west'" in decode_answer(answer(replace(call, group="west").encode())).why
