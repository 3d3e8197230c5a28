"""The clocks of a group: a node that takes over knows the last instant of the former clock, and adds no lease to it."""

from __future__ import annotations

import pytest

from atalanta.cluster.replication.passive.backup_config import TakenOver
from atalanta.ha.last_instant import NO_INSTANT
from tests.cluster.replication.machine_rig import Machine, Machines
from tests.cluster.replication.member_rig import MS


class Readings:
    """How far the clock of each node that takes over would begin from the clock that all machines of the test have."""

    def __init__(self, group: Machines) -> None:
        self.ahead_ns: list[int] = []
        self.unknown = 0
        for machine in group.machines.values():
            self._watch(machine)

    def _watch(self, machine: Machine) -> None:
        take_over = machine._take_over

        def taken_over(outcome: TakenOver) -> None:
            if outcome.last is NO_INSTANT:
                self.unknown += 1
            else:
                self.ahead_ns.append(outcome.last.at(machine.now) - machine.now)
            take_over(outcome)

        machine._take_over = taken_over  # type: ignore[method-assign]


@pytest.mark.parametrize("ends", ["killed", "handed over"])
def test_six_takeovers_in_a_row_leave_the_clock_where_it_is(ends: str) -> None:
    group = Machines()
    readings = Readings(group)
    group.follow()
    for _ in range(6):
        group.until(lambda: group.in_sync() == ["a", "b"], 20_000)
        group.run(300)
        active = group.active()
        assert active is not None
        other = group.machines["b" if active.name == "a" else "a"]
        if ends == "killed":
            active.crash()
        else:
            group.until(lambda: bool(active.hand_over()), 2_000)  # noqa: B023
        group.until(lambda: group.active() is other, 20_000)  # noqa: B023
        if ends == "killed":
            active.follow()
    assert readings.unknown == 1  # the primary has founded the group
    assert len(readings.ahead_ns) == 6
    # The message was under way for a moment, and that is all.
    assert all(-5 * MS < ahead_ns <= 0 for ahead_ns in readings.ahead_ns), readings.ahead_ns
