"""Log-ins that fail are slowed down, by user and peer: who guesses a password does not lock out the user."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

FREE_FAILURES: Final = 4
FIRST_PAUSE_S: Final = 2.0
LONGEST_PAUSE_S: Final = 300.0
FORGET_S: Final = 900.0
# One peer that tries many names: as many failures, of all names together, before it has to wait.
FREE_FAILURES_OF_A_PEER: Final = 40
ENTRIES_MAX: Final = 10_000
EVERY_USER: Final = ""


class LoginFailures:
    """The failures in a row of one user and peer."""

    def __init__(self) -> None:
        self.count = 0
        self.last_s = 0.0
        self.until_s = 0.0


class LoginThrottle:
    """The pauses of log-ins. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[str, str], LoginFailures] = OrderedDict()

    def pause_s(self, user: str, peer: str, now_s: float) -> float:
        """Returns for how long this user of this peer has to wait; 0: a log-in is tried now."""
        until_s = 0.0
        for key in ((user, peer), (EVERY_USER, peer)):
            failures = self._failures.get(key)
            if failures is not None:
                until_s = max(until_s, failures.until_s)
        return max(0.0, until_s - now_s)

    def failed(self, user: str, peer: str, now_s: float) -> None:
        """Records a failure."""
        self._count((user, peer), FREE_FAILURES, now_s)
        self._count((EVERY_USER, peer), FREE_FAILURES_OF_A_PEER, now_s)

    def succeeded(self, user: str, peer: str) -> None:
        """Forgets the failures of the user at this peer."""
        self._failures.pop((user, peer), None)

    def _count(self, key: tuple[str, str], free: int, now_s: float) -> None:
        failures = self._failures.pop(key, None)
        if failures is None or now_s - failures.last_s > FORGET_S:
            failures = LoginFailures()
        failures.count += 1
        failures.last_s = now_s
        if failures.count > free:
            doublings = min(failures.count - free - 1, 16)
            failures.until_s = now_s + min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**doublings)
        self._failures[key] = failures
        while len(self._failures) > ENTRIES_MAX:
            self._failures.popitem(last=False)
