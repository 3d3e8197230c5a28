"""Blocking code in the simulation: threads of which only one runs at a time, on virtual time.

A fiber runs until it waits: for an answer of a node, for a time, a lock, or the end of another fiber. Then the
simulation goes on. So the driver's code of atalanta.spark.read, its thread of leases and its thread of acknowledgements
take their own steps, in an order that the seed determines. `install` gives that code this module's `VirtualTime` and
`VirtualThreading` in the place of Python's modules.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import pytest

from atalanta.sim.world.world import SECOND, World
from atalanta.spark.read import leases, members, partition_reader, stream_reader

Wake = Callable[..., None]


class Killed(BaseException):
    """The end of a fiber whose process was killed."""


class Fiber:
    """A thread of a simulated process."""

    current: ClassVar[Fiber | None] = None

    def __init__(self, process: SimProcess, body: Callable[[], None]) -> None:
        self.process = process
        self.body = body
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.turn = threading.Semaphore(0)
        self.back = threading.Semaphore(0)
        self.begun = False
        self.ended = False
        self.number = 0  # of its last wait: a call for an earlier one is void
        self.value: object = None
        self.error: BaseException | None = None
        self.joining: list[Wake] = []

    def wake(self) -> Wake:
        """Returns the call that ends the next `wait`, at the next instant."""
        self.number += 1
        number = self.number

        def call(value: object = None) -> None:
            self.process.world.at(0, partial(self._go_on, number, value))

        return call

    def wait(self) -> Any:
        """Gives the turn to the simulation. Returns the value of the call that ends the wait."""
        if self.process.killed:
            raise Killed
        self.back.release()
        self.turn.acquire()
        if self.process.killed:
            raise Killed
        return self.value

    def _go_on(self, number: int, value: object) -> None:
        process = self.process
        if number != self.number or self.ended or process.killed:
            return
        if process.paused_until > process.world.now:
            process.world.at_time(process.paused_until, partial(self._go_on, number, value))
            return
        self.value = value
        self.switch()

    def switch(self) -> None:
        """Runs the thread until it waits or ends. Raises the error that ended it."""
        before, Fiber.current = Fiber.current, self
        self.number += 1
        if self.begun:
            self.turn.release()
        else:
            self.begun = True
            self.thread.start()
        self.back.acquire()
        Fiber.current = before
        error, self.error = self.error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        try:
            self.body()
        except Killed:
            pass
        except BaseException as error:
            self.error = error
        self.ended = True
        if not self.process.killed:
            for wake in self.joining:
                wake()
        self.back.release()


class SimProcess:
    """A process: its fibers end with it. While it is paused none of them runs."""

    running: ClassVar[list[SimProcess]] = []

    def __init__(self, world: World) -> None:
        self.world = world
        self.fibers: list[Fiber] = []
        self.killed = False
        self.paused_until = 0
        self.running.append(self)

    def start(self, body: Callable[[], None]) -> Fiber:
        fiber = Fiber(self, body)
        self.fibers.append(fiber)
        fiber.wake()()
        return fiber

    def kill(self) -> None:
        """Ends every fiber that waits. It must not be called by one of them."""
        if self.killed:
            return
        self.killed = True
        self.running.remove(self)
        for fiber in self.fibers:
            if fiber.begun and not fiber.ended:
                fiber.switch()


def here() -> Fiber:
    assert Fiber.current is not None
    return Fiber.current


def sleep(seconds: float) -> None:
    fiber = here()
    fiber.process.world.at(int(seconds * SECOND), fiber.wake())
    fiber.wait()


def die() -> None:
    """Kills the own process."""
    fiber = here()
    fiber.process.world.at(0, fiber.process.kill)
    fiber.wake()
    fiber.wait()


class VirtualTime:
    """The functions of `time` that the source uses."""

    def monotonic(self) -> float:
        return here().process.world.now / SECOND

    def sleep(self, seconds: float) -> None:
        sleep(seconds)


class VirtualEvent:
    def __init__(self) -> None:
        self.flag = False
        self.waiting: list[Wake] = []

    def is_set(self) -> bool:
        return self.flag

    def set(self) -> None:
        self.flag = True
        for wake in self.waiting:
            wake()
        self.waiting = []

    def wait(self, timeout: float) -> bool:
        fiber = here()
        if not self.flag:
            wake = fiber.wake()
            self.waiting.append(wake)
            fiber.process.world.at(int(timeout * SECOND), wake)
            fiber.wait()
        return self.flag


class VirtualLock:
    """A lock, which its owner may take again."""

    def __init__(self) -> None:
        self.owner: Fiber | None = None
        self.depth = 0
        self.waiting: list[Wake] = []

    def __enter__(self) -> None:
        fiber = here()
        while self.owner not in (None, fiber):
            self.waiting.append(fiber.wake())
            fiber.wait()
        self.owner = fiber
        self.depth += 1

    def __exit__(self, *failure: object) -> None:
        self.depth -= 1
        if not self.depth:
            self.owner = None
            if self.waiting:
                self.waiting.pop(0)()


class VirtualThread:
    def __init__(
        self, target: Callable[..., None], args: Sequence[object] = (), daemon: bool = False
    ) -> None:
        self.body = partial(target, *args)
        self.name = ""
        self.fiber: Fiber | None = None

    def start(self) -> None:
        self.fiber = here().process.start(self.body)

    def join(self) -> None:
        fiber, started = here(), self.fiber
        if started is not None and not started.ended:
            started.joining.append(fiber.wake())
            fiber.wait()


class VirtualThreading:
    """The classes of `threading` that the source uses."""

    Event = VirtualEvent
    Lock = VirtualLock
    RLock = VirtualLock
    Thread = VirtualThread


def install(patch: pytest.MonkeyPatch) -> None:
    """Puts the source's code on virtual time, until the patch is undone."""
    for module in (leases, members, partition_reader):
        patch.setattr(module, "time", VirtualTime())
    for threaded in (leases, members, stream_reader):
        patch.setattr(threaded, "threading", VirtualThreading)


def end_all() -> None:
    """Ends the processes of an earlier simulation."""
    for process in list(SimProcess.running):
        process.kill()
