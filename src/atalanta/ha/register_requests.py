"""The requests of one member to its group's register: one at a time, until each has a certain outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.ha.register import CompareAndSet

if TYPE_CHECKING:
    from atalanta.ha.register_port import RegisterPort
    from atalanta.kernel.ports import Timers, Trace

REGISTER_TIMER: Final = "register.again"
# A register whose state is uncertain is read again after this time.
READ_AGAIN_NS: Final = 200_000_000
WHAT_TO_DO: Final = (
    "see that the manager of the group runs and can be reached: meanwhile nobody takes over, enters or leaves"
)


class RegisterRequests:
    """The requests without an answer yet. An uncertain outcome is followed by a read, as often as needed."""

    def __init__(self, port: RegisterPort, timers: Timers, trace: Trace, timer: str = REGISTER_TIMER) -> None:
        """`timer` is the key of the timer after which the caller reads again."""
        self._timer = timer
        self._port = port
        self._timers = timers
        self._trace = trace
        self._busy = False
        self._read_wanted = False
        self._write_wanted: CompareAndSet | None = None
        self._told = ""
        self._check_wanted = False
        self._checking = False  # the request under way is the read that `check` wants
        # The outcome of the last check: why the register cannot be read, "" if it was, None until it is known.
        self.checked: str | None = None

    @property
    def problem(self) -> str:
        """Returns why the outcome of the last request is unknown, "" if it is known."""
        return self._told

    def read(self) -> None:
        """Reads the register, once for all that ask meanwhile."""
        self._read_wanted = True
        self._next()

    def check(self) -> None:
        """Reads the register, with a request that begins later than this call: `checked` says how that went."""
        self.checked = None
        self._check_wanted = True
        self.read()

    def write(self, request: CompareAndSet) -> None:
        """Writes the register."""
        self._write_wanted = request
        self._next()

    def read_later(self, now: int) -> None:
        """Reads the register a little later."""
        self._timers.set(self._timer, now + READ_AGAIN_NS)

    def on_answer(self, settled: bool) -> None:
        """Records an answer. `settled`: no write has an unknown outcome any more."""
        if settled:
            self._told = ""
        self._end("")
        self._next()

    def on_uncertain(self, now: int, why: str, again: bool = True) -> None:
        """Records that the outcome of the request is unknown, and reads a little later if `again`."""
        if why != self._told:
            self._told = why
            self._trace.event("register_uncertain", {"why": why, "what_to_do": WHAT_TO_DO})
        self._end(why)
        if again:
            self.read_later(now)
        self._next()

    def _end(self, problem: str) -> None:
        """Ends the request under way."""
        self._busy = False
        if self._checking:
            self._checking = False
            self.checked = problem

    def _next(self) -> None:
        if self._busy:
            return
        request = self._write_wanted
        if request is not None:
            self._busy = True
            self._write_wanted = None
            self._port.compare_and_set(request)
        elif self._read_wanted:
            self._busy = True
            self._read_wanted = False
            self._checking, self._check_wanted = self._check_wanted, False
            self._port.read()
