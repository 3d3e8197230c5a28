"""The memory of committed Spark batches."""

from __future__ import annotations

import pytest

from atalanta.kernel.transactions import sinks
from atalanta.kernel.transactions.sinks import Sinks


def test_the_newest_batch_of_each_query_and_partition_is_known() -> None:
    kept = Sinks()
    kept.put("query", 0, 7, 1)
    kept.put("query", 1, 8, 2)
    kept.put("query", 0, 9, 3)
    assert (kept.newest("query", 0), kept.newest("query", 1), kept.newest("other", 0)) == (9, 8, -1)
    assert kept.lsn_of("query", 0) == 3


def test_the_longest_unused_entry_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    if not sinks.__file__.endswith(".py"):
        return  # a constant of a compiled module cannot be replaced
    monkeypatch.setattr(sinks, "SINKS_MAX", 2)
    kept = Sinks()
    kept.put("first", 0, 1, 1)
    kept.put("second", 0, 1, 2)
    kept.put("first", 0, 2, 3)
    kept.put("third", 0, 1, 4)
    assert [kept.newest(name, 0) for name in ("first", "second", "third")] == [2, -1, 1]
