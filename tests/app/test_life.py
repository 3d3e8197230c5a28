"""The life of a node in its process: which start may fail, and what is told of it."""

from __future__ import annotations

import asyncio
import logging
from typing import cast

import pytest

from atalanta.app.life import ActiveRun, Life
from atalanta.app.startup_error import StartupError
from atalanta.config.configuration import Configuration
from atalanta.kernel.security.security import Security
from atalanta.runtime.network_check.network_watch import NetworkWatch
from atalanta.runtime.process import exit_codes

TAKEN = StartupError(exit_codes.UNAVAILABLE, ["cannot listen on 127.0.0.1:1"])
DAMAGED = StartupError(exit_codes.BAD_DATA, ["the journal cannot be read"])


class Served:
    """A run that ends; the process goes on after it if `ends` is False."""

    status = 5

    def __init__(self, ends: bool) -> None:
        self.ends = ends

    async def run(self) -> bool:
        return self.ends


class Steps:
    """An activation that does one thing after the other."""

    def __init__(self, *steps: StartupError | ActiveRun | int | None) -> None:
        self.steps = list(steps)

    async def become_active(self, life: Life) -> ActiveRun | int | None:
        step = self.steps.pop(0)
        if isinstance(step, StartupError):
            raise step
        return step

    async def close(self) -> None:
        """There is nothing to close."""


def outcomes(*steps: StartupError | ActiveRun | int | None) -> list[int | None]:
    """What the watch of the network gets, call by call."""
    activation = Steps(*steps)

    async def play() -> list[int | None]:
        life = Life(
            cast(Configuration, None), cast(Security, None), lambda words: None, None, cast(NetworkWatch, None)
        )
        found = []
        while activation.steps:
            found.append(await life.next(activation))
        return found

    return asyncio.run(play())


def test_it_serves_again_until_a_run_ends_the_process() -> None:
    assert outcomes(Served(False), Served(False), Served(True)) == [5]


def test_the_first_start_must_succeed_and_a_later_one_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(StartupError, match="cannot listen"):
        outcomes(TAKEN)
    caplog.set_level(logging.INFO)
    assert outcomes(None, TAKEN, TAKEN, Served(True)) == [None, None, None, 5]
    assert [getattr(each, "event", "") for each in caplog.records] == ["network_start_failed"]
    with pytest.raises(StartupError, match="journal"):
        outcomes(None, DAMAGED)
