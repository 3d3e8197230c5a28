"""The manager of a simulated group: its register, with requests that are late or lost, and answers that are lost.

The register is linearizable: a request takes effect at one instant, if at all. A request that its sender has given up
may still take effect, up to LATE_NS after it was sent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from atalanta.ha import CompareAndSet, Register, RegisterPort, decode_register, encode_register
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.world.world import SECOND, World

STEP_NS: Final = (100_000, 20_000_000)  # of a request, and of its answer
TIMEOUT_NS: Final = SECOND  # until the sender gives up
LATE_NS: Final = (SECOND, 6 * SECOND)  # of a late request


class RegisterUser(Protocol):
    """A machine that asks. `life` counts its runs."""

    name: str
    life: int

    def register_answer(self, version: int, value: Register | None) -> None: ...

    def register_uncertain(self, why: str) -> None: ...


class _Request:
    """A request under way. `wanted` is None for a read."""

    def __init__(self, port: SimRegisterPort, wanted: CompareAndSet | None) -> None:
        self.port = port
        self.machine = port.machine
        self.wanted = wanted
        self.done = False  # the sender knows the outcome, or has given up
        self.void = False  # it never takes effect: its sender's machine is gone


class SimRegisterPort(RegisterPort):
    """The register as one run of a machine reaches it: one request at a time."""

    def __init__(self, register: SimRegister, machine: RegisterUser) -> None:
        self.register = register
        self.machine = machine
        self.life = 0  # of the machine at the request
        self.asked = False

    def read(self) -> None:
        self._ask(None)

    def compare_and_set(self, request: CompareAndSet) -> None:
        self._ask(request)

    def _ask(self, wanted: CompareAndSet | None) -> None:
        if self.asked:
            raise AssertionError(f"{self.machine.name} has a request to the register under way")
        self.asked = True
        self.life = self.machine.life
        self.register.send(_Request(self, wanted))

    def answered(self) -> bool:
        """Ends the request. Returns False if its run has ended."""
        self.asked = False
        return self.machine.life == self.life


class SimRegister:
    """The register. `lost_share` of the requests and of the answers get lost, `late_share` of the requests are late.

    A machine in `no_requests` cannot send, one in `no_answers` hears nothing. A manager that is `away` does nothing.
    """

    def __init__(self, world: World, name: str, check_order: Callable[[str], None]) -> None:
        """`check_order` gets the active member of each new epoch, and may raise Violation."""
        self.world = world
        self.name = name
        self.check_order = check_order
        self.draw = world.random(f"register/{name}")
        self.version = 0
        self._value: Register | None = None
        self.lost_share = self.draw.choice((0.0, 0.02, 0.1))
        self.late_share = self.draw.choice((0.0, 0.02, 0.1))
        self.no_requests: dict[str, bool] = {}
        self.no_answers: dict[str, bool] = {}
        self.away = False
        self.epochs: dict[int, str] = {}  # the active member by epoch
        self._under_way: list[_Request] = []

    def value(self) -> Register | None:
        """Returns the register as it is, None before it was founded."""
        return self._value

    def void_requests_of(self, machine: RegisterUser) -> None:
        """Lets no request of the machine that is under way take effect."""
        for request in self._under_way:
            if request.machine is machine:
                request.void = True

    def leave(self) -> None:
        """Lets the manager do nothing until `come_back`."""
        self.away = True

    def come_back(self) -> None:
        """Lets the manager work again."""
        self.away = False

    def heal(self) -> None:
        """Ends all faults. Late requests still take effect."""
        self.lost_share = self.late_share = 0.0
        self.no_requests.clear()
        self.no_answers.clear()
        self.away = False

    # -- a request ------------------------------------------------------------------------------
    def send(self, request: _Request) -> None:
        draw = self.draw
        self._under_way.append(request)
        self.world.at(TIMEOUT_NS, lambda: self._give_up(request))
        delay_ns = draw.randint(*STEP_NS)
        if draw.random() < self.late_share:
            delay_ns += draw.randint(*LATE_NS)
        self.world.at(delay_ns, lambda: self._arrive(request))

    def _arrive(self, request: _Request) -> None:
        self._under_way.remove(request)
        machine = request.machine
        lost = self.draw.random() < self.lost_share or machine.name in self.no_requests
        if self.away or lost or request.void:
            return
        wanted = request.wanted
        why = ""
        if wanted is not None and not self._set(machine, wanted):
            why = f"the version is {self.version}, not {wanted.version}"
        if self.draw.random() < self.lost_share or machine.name in self.no_answers:
            return
        version, value = self.version, self.value()
        delay_ns = self.draw.randint(*STEP_NS)
        self.world.at(delay_ns, lambda: self._answer(request, version, value, why))

    def _set(self, machine: RegisterUser, wanted: CompareAndSet) -> bool:
        if wanted.version != self.version:
            return False
        before, after = self.value(), wanted.value
        if after.epoch and self.epochs.setdefault(after.epoch, after.active) != after.active:
            raise Violation(f"{self.name}: epoch {after.epoch} has two active members")
        if before is not None and after.epoch not in (before.epoch, before.epoch + 1):
            raise Violation(f"{self.name}: epoch {after.epoch} follows {before.epoch}")
        if before is None or before.epoch != after.epoch:
            self.check_order(after.active)
        self.version += 1
        self._value = decode_register(encode_register(after))
        self.world.note(
            f"{self.name} version {self.version}: epoch {after.epoch} of {after.active or 'nobody'},"
            f" in sync {' '.join(after.in_sync)}, by {machine.name}"
        )
        return True

    def _answer(self, request: _Request, version: int, value: Register | None, why: str) -> None:
        if not request.done:
            request.done = True
            if request.port.answered():
                if why:
                    request.machine.register_uncertain(why)
                else:
                    request.machine.register_answer(version, value)

    def _give_up(self, request: _Request) -> None:
        if not request.done:
            request.done = True
            if request.port.answered():
                request.machine.register_uncertain("no answer")
