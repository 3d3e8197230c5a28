"""An option of a file is read by the program, or says that it has no effect."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.source_tree import product

# Read by the name of the field, which is put together: cluster/networks/hello.py tells a neighbour of them.
BY_NAME = {"sync_durable_subs"}


def option_fields(tree: ast.Module) -> Iterator[str]:
    """Returns the names of the fields that are options with an effect."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call) and isinstance(node.target, ast.Name):
            if isinstance(node.value.func, ast.Name) and node.value.func.id == "option":
                yield node.target.id


def test_options_are_read_or_have_no_effect() -> None:
    """`ignored` instead of `option` names the consequence at the start, in `check` and in config.md."""
    found: dict[str, str] = {}
    read: set[str] = set()
    for source in product():
        found.update(dict.fromkeys(option_fields(source.tree), source.name))
        read.update(node.attr for node in ast.walk(source.tree) if isinstance(node, ast.Attribute))
    assert len(found) > 300
    assert {name: place for name, place in found.items() if name not in read} == dict.fromkeys(
        sorted(BY_NAME), "src/atalanta/cluster/networks/config.py"
    )
