"""Each option of Artemis' and WildFly's files that is taken without a word is of a kind that no client can see, or has
its case in this folder."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from atalanta.kernel.unseen_options import KINDS
from tests.config.harmless.artemis_tables import FIXED, LOST, SILENT, ignored_options
from tests.config.harmless.cases import CASES
from tests.source_tree import ROOT, SOURCE

# Where an element is reported as harmless: (file, the expressions that say why).
SILENT_CALLS = {
    "src/atalanta/config/broker_xml.py": ["IN_PROCESS"],
    "src/atalanta/config/sections/jms.py": ["UNREAD"],
    "src/atalanta/config/wildfly/reader.py": [
        "tables.GROUPS_WITHOUT_EFFECT[silent]",
        "tables.WITHOUT_EFFECT[node.name]",
    ],
    "src/atalanta/config/wildfly/transports.py": ["SAME_LISTENER"],
    "src/atalanta/config/xml/reader.py": ["self.silent[node.name]"],
}


def unproven() -> Iterator[str]:
    """Yields the entries that are neither of a kind nor have a case."""
    for name, table in {**SILENT, **ignored_options()}.items():
        for entry, why in table.items():
            if why not in KINDS and (name, entry) not in CASES:
                yield f"{name}: {entry} ({why})"
    for name, values in FIXED.items():
        for entry in values:
            if (name, entry) not in CASES:
                yield f"{name}: {entry}, a value that holds here"


def test_each_entry_is_of_a_kind_that_no_client_sees_or_has_a_case() -> None:
    for file in Path(__file__).parent.glob("test_artemis_*.py"):
        importlib.import_module(f"tests.config.harmless.{file.stem}")
    assert sorted(unproven()) == []
    known = {name: [*table] for name, table in {**SILENT, **ignored_options()}.items()}
    for name, values in FIXED.items():
        known.setdefault(name, []).extend(values)
    assert {(table, entry) for table, entry in CASES if table in known and entry not in known[table]} == set()


def test_what_is_named_says_a_consequence() -> None:
    """A reason that only says why it cannot be is none: what a client or an operator misses is said."""
    for table in LOST:
        assert [name for name, why in table.items() if len(why) < 30 or why in KINDS] == []


def test_an_element_is_harmless_by_a_table_or_a_kind_alone() -> None:
    """A call of Report.without_effect that is not for a lost service says why by a name that is checked here."""
    found: dict[str, list[str]] = {}
    for path in sorted((SOURCE / "config").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if "/activemq/" in name:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                lost = len(node.args) > 4 or any(each.arg == "lost" for each in node.keywords)
                if node.func.attr == "without_effect" and not lost:
                    found.setdefault(name, []).append(ast.unparse(node.args[3]))
    assert {name: sorted(calls) for name, calls in found.items()} == SILENT_CALLS
