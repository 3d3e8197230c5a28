"""The register port of a running node: calls of the manager, one at a time, and their answers as inputs."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from atalanta.cluster.inputs import NodeInputs
from atalanta.ha.register import CompareAndSet, RegisterDamaged
from atalanta.ha.register_port import RegisterPort
from atalanta.ha.voter import Outcome
from atalanta.runtime.driver import Driver
from atalanta.runtime.ha.managers.manager import Manager, ManagerUnavailable
from atalanta.runtime.process.logs import log_event

log = logging.getLogger("atalanta.runtime")

# A manager has limits of its own; this one is for a folder that hangs.
TIMEOUT_S: Final = 10.0


class RegisterCalls(RegisterPort):
    """Calls a manager for one node. Each call is answered once; an answer that comes after the time-out is passed on
    as well, because it is true.

    A call that hangs is not cancelled: the next one waits for its end, or is answered without having begun. So a dead
    file system keeps one thread, not all of them.
    """

    def __init__(self, manager: Manager, driver: Driver, timeout_s: float = TIMEOUT_S) -> None:
        self._manager = manager
        self._driver = driver
        self._timeout_s = timeout_s
        self._requests: deque[CompareAndSet | None] = deque()  # None: a read
        self._task: asyncio.Task[None] | None = None
        self._call: asyncio.Task[None] | None = None
        self._closed = False

    def read(self) -> None:
        """Implements RegisterPort.read. A read that waits serves every later request."""
        if None not in self._requests:
            self._ask(None)

    def compare_and_set(self, request: CompareAndSet) -> None:
        """Implements RegisterPort.compare_and_set."""
        self._ask(request)

    async def close(self) -> None:
        """Ends all calls, without an answer: a write under way has an unknown outcome."""
        self._closed = True
        self._requests.clear()
        tasks = [each for each in (self._task, self._call) if each is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self, request: CompareAndSet | None) -> None:
        if self._closed:
            return
        self._requests.append(request)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while self._requests:
            request = self._requests.popleft()
            if self._call is not None and not self._call.done():
                await asyncio.wait([self._call], timeout=self._timeout_s)
                if not self._call.done():
                    self._uncertain("an earlier call of the manager has no answer yet")
                    continue
            self._call = asyncio.get_running_loop().create_task(self._answered(request))
            await asyncio.wait([self._call], timeout=self._timeout_s)
            if not self._call.done():
                self._uncertain(f"the manager has not answered for {self._timeout_s:g} s")

    async def _answered(self, request: CompareAndSet | None) -> None:
        """Calls the manager, and makes the input. Nothing is passed on after the close."""
        try:
            tell = await (self._read() if request is None else self._write(request))
        except (ManagerUnavailable, RegisterDamaged) as error:
            self._uncertain(str(error))
        except Exception as error:  # whatever it was, the register may have changed
            log_event(log, "register_call_failed", {"manager": type(self._manager).__name__}, error)
            self._uncertain(f"{type(error).__name__}: {error}")
        else:
            if not self._closed:
                tell()

    async def _read(self) -> Callable[[], None]:
        found = await self._manager.read()
        if found is None:
            return lambda: self._driver.post(NodeInputs.on_register, 0, None)
        return lambda: self._driver.post(NodeInputs.on_register, found.version, found.register)

    async def _write(self, request: CompareAndSet) -> Callable[[], None]:
        answer = await self._manager.compare_and_set(request)
        if answer.outcome is Outcome.DONE:
            return lambda: self._driver.post(NodeInputs.on_register, answer.version, request.value)
        if answer.outcome is Outcome.CONFLICT:
            return await self._read()
        return lambda: self._driver.post(NodeInputs.on_register_uncertain, answer.why)

    def _uncertain(self, why: str) -> None:
        if not self._closed:
            self._driver.post(NodeInputs.on_register_uncertain, why)
