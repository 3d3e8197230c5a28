"""Nothing leaves a node before the ids in it are reserved."""

from __future__ import annotations

from tests.node.machine_rig import Machine


def test_output_waits_until_the_ids_of_this_life_are_reserved() -> None:
    machine = Machine()
    assert machine.node.may_send(machine.now)
    machine.disk.crash()
    machine.calls.clear()
    work, machine.work = machine.work, lambda: None  # type: ignore[method-assign]
    machine.start()
    assert not machine.node.may_send(machine.now)
    work()
    assert machine.node.may_send(machine.now)
