"""The interface of a manager: read, and compare-and-set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from atalanta.ha.register import CompareAndSet, Register
from atalanta.ha.voter import Outcome


class ManagerUnavailable(Exception):
    """The register cannot be read now. The text says why, for the log."""


@dataclass(frozen=True)
class Found:
    """A register that was read, and its version."""

    version: int
    register: Register


@dataclass(frozen=True)
class ManagerAnswer:
    """The outcome of a compare-and-set: `version` is the new one if it is DONE, `why` says what has failed if it is
    UNKNOWN."""

    outcome: Outcome
    version: int = 0
    why: str = ""


class Manager(Protocol):
    """A keeper of one register.

    A read is never older than a compare-and-set that was DONE before the read began.
    """

    async def read(self) -> Found | None:
        """Returns the register, None if it does not exist. Raises ManagerUnavailable, RegisterDamaged."""

    async def compare_and_set(self, request: CompareAndSet) -> ManagerAnswer:
        """Sets the register if its version is that of the request.

        Every failure whose outcome is not certain is UNKNOWN; also a cancelled call has an unknown outcome.
        """

    async def close(self) -> None:
        """Closes connections and ends threads."""
