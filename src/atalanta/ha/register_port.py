"""The port of the register: how pure code reads and changes it; a shell implements it with a manager."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atalanta.ha.register import CompareAndSet


class RegisterPort:
    """The register of one group. Calls return at once; each has one answer, as an input of its own.

    `on_register(now, version, register)` is the answer to a read, and to a write that has succeeded; a register that
    does not exist is version 0 and None. `on_register_uncertain(now, why)` is everything else: a conflict, an error,
    no answer in time. The caller has one request at a time.
    """

    def read(self) -> None:
        """Reads the register."""
        raise NotImplementedError

    def compare_and_set(self, request: CompareAndSet) -> None:
        """Writes the register, if its version is that of the request."""
        raise NotImplementedError
