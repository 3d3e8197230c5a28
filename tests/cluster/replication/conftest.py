"""Every input of every passive member in these tests leads to a state that may follow."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from atalanta.cluster.inputs import NodeInputs
from atalanta.cluster.replication.passive.backup import Backup
from atalanta.cluster.replication.passive.state import TRANSITIONS

INPUTS = [name for name in vars(NodeInputs) if name.startswith("on_") or name in ("recover", "start", "stop", "flush")]


@pytest.fixture(autouse=True)
def transitions(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], int]:
    """How often each transition was made in this test."""
    made: dict[tuple[str, str], int] = {}

    def watched(call: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(call)
        def watching(self: Backup, *given: Any, **named: Any) -> None:
            before = self.state
            call(self, *given, **named)
            after = self.state
            if after != before:
                made[before, after] = made.get((before, after), 0) + 1
                assert after in TRANSITIONS[before], f"{call.__name__}: a member that is {before} becomes {after}"

        return watching

    for name in [*INPUTS, "promote", "on_process_ended"]:
        monkeypatch.setattr(Backup, name, watched(getattr(Backup, name)))
    return made
