"""The ids that the operating system's random numbers make."""

from __future__ import annotations

import time
import uuid

import pytest

from atalanta.runtime.ids import SystemIds


def test_a_node_id_is_a_time_based_uuid_of_now() -> None:
    before = time.time_ns()
    made = uuid.UUID(bytes=SystemIds().uuid())
    after = time.time_ns()
    assert made.version == 1
    assert made.variant == uuid.RFC_4122
    at_ns = (made.time - uuid.UUID("13814000-1dd2-11b2-8000-000000000000").time) * 100
    assert before - 100 <= at_ns <= after
    assert made.node >> 40 & 1  # no network card has this number


def test_ids_differ_also_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = SystemIds()
    made = {ids.uuid() for _ in range(1_000)}
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000_000)
    made |= {ids.uuid() for _ in range(1_000)}
    assert len(made) == 2_000


def test_two_nodes_of_one_instant_have_different_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_000_000_000)
    assert SystemIds().uuid() != SystemIds().uuid()
