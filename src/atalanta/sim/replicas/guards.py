"""The guards of a simulated group: a process beside the broker tells those who watch it that the broker has ended.

The proof may come late, or not at all. A guard that is lost with its machine, or ends before its broker, proves
nothing. One that has seen the end stays for a while, for those who have no connection to it yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from atalanta.cluster.replication import SALT_SIZE, Guard
from atalanta.ha import GuardPort
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import SECOND, World

PORT: Final = 7
STEP_NS: Final = (100_000, 20_000_000)  # of a connection, and of a proof
LATE_NS: Final = (SECOND // 2, 6 * SECOND)  # of a late proof
AGAIN_NS: Final = SECOND // 4  # until a watch without a connection tries again
STAY_NS: Final = SECOND  # of a guard whose broker has ended


class WatchOwner(Protocol):
    """A machine whose passive run watches. `life` counts its runs."""

    name: str
    life: int

    def process_ended(self, epoch: int) -> None: ...


class SimGuard:
    """The guard of one process of machine `name`. `epoch` and `salt` are what the process has told last."""

    def __init__(self, guards: Guards, name: str) -> None:
        self.guards = guards
        self.name = name
        self.epoch = 0
        self.salt = b""
        self.ended = False  # the broker has
        self.gone = False
        self._watches: list[tuple[SimGuardWatch, int]] = []

    def begin(self, epoch: int) -> Guard:
        """Learns the epoch of the process. Returns what its followers are told."""
        self.epoch = epoch
        self.salt = self.guards.draw.randbytes(SALT_SIZE)
        return Guard(epoch, PORT, self.salt)

    def connect(self, watch: SimGuardWatch, serial: int) -> None:
        """Takes up the connection of a watch."""
        self._watches.append((watch, serial))
        if self.ended:
            self._tell(watch, serial)

    def prove(self) -> None:
        """Tells all watches that the broker has ended."""
        self.ended = True
        for watch, serial in self._watches:
            self._tell(watch, serial)
        self.guards.world.at(STAY_NS, self.lose)

    def lose(self) -> None:
        """Ends the guard."""
        self.gone = True

    def _tell(self, watch: SimGuardWatch, serial: int) -> None:
        if (watch.epoch, watch.salt) == (self.epoch, self.salt):
            self.guards.send(self.name, watch, lambda: watch.on_proof(serial))


class Guards:
    """The guards of a group, by machine. `lost_share` of the proofs get lost, `late_share` come late."""

    def __init__(self, world: World, network: Network, name: str) -> None:
        self.world = world
        self.network = network
        self.draw = world.random(f"guards/{name}")
        self.share: float = self.draw.choice((0.0, 0.6, 1.0, 1.0))  # of the processes that have one
        self.lost_share: float = self.draw.choice((0.0, 0.1, 0.5))
        self.late_share: float = self.draw.choice((0.0, 0.1, 0.5))
        self.by_machine: dict[str, SimGuard] = {}
        self.proofs = 0  # that have come

    def begin(self, name: str) -> SimGuard | None:
        """Begins the guard of a process that starts, if it has one."""
        self.by_machine.pop(name, None)
        if self.draw.random() >= self.share:
            return None
        guard = self.by_machine[name] = SimGuard(self, name)
        return guard

    def note_proof(self) -> None:
        """Records that a proof has come."""
        self.proofs += 1

    def heal(self) -> None:
        """Ends all faults."""
        self.lost_share = self.late_share = 0.0

    def send(self, source: str, watch: SimGuardWatch, arrive: Callable[[], None]) -> None:
        """Sends the proof of the guard of machine `source`."""
        if (source, watch.machine.name) in self.network.blocked or self.draw.random() < self.lost_share:
            return
        late = self.draw.random() < self.late_share
        self.world.at(self.draw.randint(*(LATE_NS if late else STEP_NS)), arrive)


class SimGuardWatch(GuardPort):
    """The watch of one passive run of a machine."""

    def __init__(self, guards: Guards, machine: WatchOwner) -> None:
        self.guards = guards
        self.machine = machine
        self.life = machine.life
        self.epoch = 0
        self.salt = b""
        self._serial = 0  # of the guard that is watched

    def watch(self, host: str, port: int, salt: bytes, epoch: int) -> None:
        self._serial += 1
        self.epoch, self.salt = epoch, salt
        self._connect_later(host, self._serial, self.guards.draw.randint(*STEP_NS))

    def close(self) -> None:
        self._serial += 1

    def _connect_later(self, host: str, serial: int, delay_ns: int) -> None:
        self.guards.world.at(delay_ns, lambda: self._connect(host, serial))

    def _connect(self, host: str, serial: int) -> None:
        if not self._watches(serial):
            return
        guard = self.guards.by_machine.get(host)
        name, blocked = self.machine.name, self.guards.network.blocked
        if guard is None or guard.gone or (name, host) in blocked or (host, name) in blocked:
            self._connect_later(host, serial, AGAIN_NS)
        else:
            guard.connect(self, serial)

    def _watches(self, serial: int) -> bool:
        return self._serial == serial and self.machine.life == self.life

    def on_proof(self, serial: int) -> None:
        """Tells the run that the process which it watches has ended."""
        if self._watches(serial):
            self.guards.note_proof()
            self.machine.process_ended(self.epoch)
