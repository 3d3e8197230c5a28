"""Each option that is taken without a word is of a kind that no client can see, or has its case in this folder."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from atalanta.config.activemq import tables as activemq
from atalanta.kernel.unseen_options import KINDS
from tests.config.harmless.cases import CASES

# Tables of entries that are harmless; what is LOST is told by name.
TABLES: Mapping[str, Mapping[str, object]] = {
    **{name: table for name, table in vars(activemq).items() if name.endswith(("_SILENT", "_FIXED"))},
}


def unproven() -> Iterator[str]:
    """Yields the entries that are neither of a kind nor have a case."""
    for name, table in TABLES.items():
        for entry, why in table.items():
            if why not in KINDS and (name, entry) not in CASES:
                yield f"{name}: {entry} ({why})"


def test_each_entry_is_of_a_kind_that_no_client_sees_or_has_a_case() -> None:
    for file in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"tests.config.harmless.{file.stem}")
    assert sorted(unproven()) == []
    assert {(table, entry) for table, entry in CASES if entry not in TABLES.get(table, [entry])} == set()
