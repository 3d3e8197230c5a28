"""The backlog of a simulated machine: connections that wait at its ports until its node runs.

The system accepts them and takes what they send, while the process is passive or reads its journal.
"""

from __future__ import annotations

from collections.abc import Callable

from atalanta.sim.host import Host


class Backlog:
    """The connections that wait, with the calls of each that the node will get. `waits` counts all that have waited."""

    def __init__(self, machine: Host) -> None:
        self.machine = machine
        self.waits = 0
        self.calls: dict[int, list[Callable[[], None]]] = {}

    def listen(self) -> None:
        """Lets connections wait."""
        machine = self.machine
        for port in machine.listeners:
            machine.network.listen(machine, machine.address, port)

    def add(self, conn: int, accept: Callable[[], None]) -> None:
        """Lets a new connection wait."""
        self.waits += 1
        self.calls[conn] = [accept]

    def takes(self, conn: int, call: Callable[[], None]) -> bool:
        """Keeps an input of a connection that waits. Returns False for another one."""
        calls = self.calls.get(conn)
        if calls is not None:
            calls.append(call)
        return calls is not None

    def clear(self) -> None:
        """Forgets all, because the machine has closed them or has ended."""
        self.calls.clear()

    def accept(self) -> None:
        """Gives everything that waits to the node, in the order of the connections."""
        waiting = list(self.calls.values())
        self.calls.clear()
        for calls in waiting:
            for call in calls:
                call()
