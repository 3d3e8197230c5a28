"""Which seeds have what."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count as numbers
from itertools import islice
from typing import Final

from atalanta.sim.checks.ledger import Violation
from atalanta.sim.node_machine import serving
from atalanta.sim.pairs.machine import PairMachine
from atalanta.sim.replicas.machine import ReplicaMachine
from atalanta.sim.scenario import Scenario
from atalanta.sim.subject import Subject
from atalanta.sim.world.world import SECOND
from atalanta.store.pages import page_number

DELETION_LOOK_NS: Final = 20_000
LOOK_NS: Final = SECOND // 50  # between two attempts to lock a folder


def seeds_that(fit: Callable[[int], bool], first: int, count: int) -> Iterator[int]:
    """Seeds from `first` on that fit."""
    return islice(filter(fit, numbers(first)), count)


def seeds_with(subject: type[Subject], first: int, count: int) -> Iterator[int]:
    """Seeds from `first` on whose worlds have it."""

    def fits(seed: int) -> bool:
        return any(type(each) is subject for each in Scenario(seed, 3, 12.0).subjects)

    return seeds_that(fits, first, count)


def seeds_where_nodes_leave(first: int, count: int) -> Iterator[int]:
    return seeds_that(lambda seed: Scenario(seed, 3, 12.0).shape.departures, first, count)


def seeds_with_pairs(first: int, count: int) -> Iterator[int]:
    """Seeds from `first` on whose worlds have a node on two machines with a shared folder."""
    return seeds_that(lambda seed: Scenario(seed, 3, 12.0).pair is not None, first, count)


def world_with_pauses_in_commits(seed: int) -> Scenario:
    """A world with a pair whose machine is paused with its clocks in the middle of commits, which end later."""
    scenario = Scenario(seed, 3, 8.0, faults=False)
    pair = scenario.pair
    assert pair is not None

    def stand_still(machine: PairMachine) -> None:
        machine.lose_folder(2 * SECOND)
        machine.pause(2 * SECOND, True)

    def strike() -> None:
        if scenario.world.seconds() < 7:
            machine = serving(pair.machines)
            machine.disk.strike_at_commit(1, lambda: stand_still(machine))
            scenario.world.at(5 * SECOND // 2, strike)

    scenario.world.at(2 * SECOND, strike)
    return scenario


def group_with_slow_bodies(seed: int) -> Scenario:
    """A group without faults whose backups are slow to write large messages."""
    scenario = Scenario(seed, 1, 8.0, faults=False, grouped=True)
    [group] = scenario.groups
    for machine in group.backups:
        machine.large.job_min_ns, machine.large.job_max_ns = SECOND // 100, SECOND // 20
    return scenario


def groups_with_bodies(first: int, count: int) -> Iterator[int]:
    """Seeds from `first` on whose group has large messages."""
    return seeds_that(lambda seed: bool(Scenario(seed, 1, 8.0, faults=False, grouped=True).subjects), first, count)


def group_that_loses_power_at_deletions(seed: int) -> Scenario:
    """A group without other faults. When a machine has deleted a page file, all of them lose their power at once."""
    scenario = Scenario(seed, 1, 8.0, faults=False, grouped=True)
    [group] = scenario.groups
    world = scenario.world

    def lose_power() -> None:
        for machine in group.machines:
            if machine.up:
                machine.end_at_once(False)
                world.at(SECOND // 20, machine.start)

    def await_deletion(machine: ReplicaMachine, name: str, life: int) -> None:
        if machine.life != life or world.seconds() > 7:
            return
        if name in machine.disk.files:
            world.at(DELETION_LOOK_NS, lambda: await_deletion(machine, name, life))
        else:
            lose_power()

    def watch(machine: ReplicaMachine) -> None:
        delete = machine.disk.delete

        def note(name: str) -> None:
            delete(name)
            if page_number(name):
                await_deletion(machine, name, machine.life)

        machine.disk.delete = note  # type: ignore[method-assign]

    for machine in group.machines:
        watch(machine)
    return scenario


def pair_whose_started_processes_end(seed: int) -> Scenario:
    """A group without other faults. The process that was started on the active machine ends every two seconds, and the
    next one is started some time after: it waits for the folder. Violation if a member that could serve waits for the
    lease; its disk must be quick."""
    scenario = Scenario(seed, 1, 10.0, faults=False, grouped=True)
    [group] = scenario.groups
    world, members = scenario.world, group.members
    guards, draw = members.guards, world.random("kills")
    guards.share = 1.0
    guards.heal()
    members.register.heal()

    def restart(machine: ReplicaMachine) -> None:
        if machine.up:  # its broker has the folder
            world.at(LOOK_NS, lambda: restart(machine))
        else:
            machine.start()

    def look(epoch: int) -> None:
        if not any(machine.node is not None and machine.epoch > epoch for machine in group.machines):
            raise Violation(f"nobody serves after epoch {epoch}, though its end was seen")

    def kill() -> None:
        machine = next(each for each in group.machines if each is members.serving())
        if len(members.in_sync()) > 1 and machine.node is not None and machine.may_send():
            after_ns = draw.randint(1, SECOND // 2)
            machine.lose_started(after_ns)
            world.at(draw.randint(1, SECOND), lambda: restart(machine))
            epoch = machine.epoch
            world.at(after_ns + machine.terms.length_ns // 2, lambda: look(epoch))
        if world.seconds() < 9:
            world.at(2 * SECOND, kill)

    world.at(3 * SECOND, kill)
    return scenario


def pair_whose_connection_breaks(seed: int) -> Scenario:
    """A group of two machines without other faults, whose connection is reset again and again."""
    scenario = Scenario(seed, 1, 6.0, faults=False, grouped=True)
    [group] = scenario.groups
    network, world = scenario.network, scenario.world

    def cut() -> None:
        streams = network.streams
        for conn in sorted(streams):
            if {streams[conn].source, streams[conn].target} == set(group.machines):
                network.cut_connection(conn)
        if world.seconds() < 5:
            world.at(SECOND, cut)

    world.at(3 * SECOND, cut)
    return scenario
