"""The collector of a passive process: garbage of attempts to connect goes, and what was replayed is not looked at."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from atalanta.runtime.process.event_loop import YOUNG_MAX, collect_young_only


class Circle:
    """An object that only a collection frees."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture(autouse=True)
def same_collector() -> Iterator[None]:
    """Leaves the collector as it was."""
    enabled, thresholds = gc.isenabled(), gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    if not enabled:
        gc.disable()


def test_garbage_goes_though_nobody_asks() -> None:
    gc.disable()
    collect_young_only()
    lost = weakref.ref(Circle())
    kept = [Circle() for _ in range(2 * YOUNG_MAX)]
    assert lost() is None
    del kept
    gc.collect()


def test_only_new_objects_are_looked_at() -> None:
    looked_at: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            looked_at.append(info["generation"])

    collect_young_only()
    gc.callbacks.append(note)
    try:
        kept = [Circle() for _ in range(20 * YOUNG_MAX)]
    finally:
        gc.callbacks.remove(note)
    assert len(looked_at) > 5
    assert set(looked_at) == {0}
    del kept
    gc.collect()
