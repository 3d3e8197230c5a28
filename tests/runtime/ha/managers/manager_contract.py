"""What every manager must do, and writers that count in a register while its keepers fail."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from atalanta.ha.register import TOKEN_SIZE, CompareAndSet, Register
from atalanta.ha.voter import Outcome
from atalanta.runtime.ha.managers.manager import Found, Manager, ManagerUnavailable


def register(epoch: int, active: str = "a") -> Register:
    """Returns a register with a token that no other has."""
    return Register(epoch, active, (active, "member"), 0, os.urandom(TOKEN_SIZE))


async def check_contract(first: Manager, second: Manager) -> None:
    """Checks read and compare-and-set of a register that does not exist yet, by two processes."""
    assert await first.read() is None
    refused = await first.compare_and_set(CompareAndSet(7, register(1)))
    assert refused.outcome is Outcome.CONFLICT
    assert await second.read() is None

    one = register(1)
    made = await first.compare_and_set(CompareAndSet(0, one))
    assert made.outcome is Outcome.DONE, made
    for manager in (first, second):
        assert await manager.read() == Found(made.version, one)
    assert (await second.compare_and_set(CompareAndSet(0, register(9)))).outcome is Outcome.CONFLICT

    two = register(2, "b")
    changed = await second.compare_and_set(CompareAndSet(made.version, two))
    assert changed.outcome is Outcome.DONE and changed.version > made.version
    late = await first.compare_and_set(CompareAndSet(made.version, register(3)))
    assert late.outcome is Outcome.CONFLICT
    for manager in (first, second):
        assert await manager.read() == Found(changed.version, two)


class Counting:
    """Writers that raise the epoch of one register by one, and what they were told.

    An unknown outcome is settled by reading until the version is higher.
    """

    def __init__(self) -> None:
        self.confirmed: dict[int, Register] = {}
        self.unknown: dict[int, list[Register]] = {}
        self.seen: dict[int, Register] = {}
        self.conflicts = 0
        self.whys: list[str] = []

    async def write(self, manager: Manager, name: str, over: Callable[[], bool]) -> None:
        """Counts until `over` says so."""
        while not over():
            try:
                found = await manager.read()
            except ManagerUnavailable as error:
                self.whys.append(str(error))
                await asyncio.sleep(0.02)
                continue
            await self._count(manager, name, found)

    async def _count(self, manager: Manager, name: str, found: Found | None) -> None:
        version, epoch = (found.version, found.register.epoch) if found is not None else (0, 0)
        if found is not None:
            self.see(found.register)
        value = register(epoch + 1, name)
        answer = await manager.compare_and_set(CompareAndSet(version, value))
        if answer.outcome is Outcome.DONE:
            assert value.epoch not in self.confirmed, f"epoch {value.epoch} was confirmed twice"
            self.confirmed[value.epoch] = value
            self.see(value)
        elif answer.outcome is Outcome.UNKNOWN:
            assert answer.why
            self.whys.append(answer.why)
            self.unknown.setdefault(value.epoch, []).append(value)
        else:
            self.conflicts += 1

    def see(self, value: Register) -> None:
        """Records a value that the register had. An epoch has one value."""
        known = self.seen.setdefault(value.epoch, value)
        assert known == value, f"epoch {value.epoch} had two values: {known} and {value}"

    def check(self, last: Found | None) -> None:
        """Checks that the register has every confirmed step, and none that nobody tried."""
        assert last is not None
        self.see(last.register)
        assert max(self.confirmed, default=0) <= last.register.epoch, "a confirmed value is lost"
        settled = set()
        for epoch in range(1, last.register.epoch + 1):
            if epoch not in self.confirmed:
                assert epoch in self.unknown, f"nobody wrote epoch {epoch}"
                settled.add(epoch)
                if epoch in self.seen:
                    assert self.seen[epoch] in self.unknown[epoch]
        assert last.register.epoch == len(self.confirmed) + len(settled)
