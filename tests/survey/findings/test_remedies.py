"""A remedy never deletes data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from atalanta.survey.findings.alarms import TEXTS
from atalanta.survey.findings.events import FINDINGS
from atalanta.survey.model.health import AlarmView
from tests.source_tree import SourceFile, product

DELETING = re.compile(r"\b(delet|remov|purg|destroy|wip|empty|format)\w*", re.IGNORECASE)
# What holds no messages.
HARMLESS = ("delete its store-and-forward queues when they are empty", "delete the file node-id in its data folder")
REMEDY = 4  # the argument of ClusterFinding


def remedies(source: SourceFile) -> Iterator[str]:
    """The texts in the remedies of the findings of a file: of arguments, of variables and of constants."""
    constants = {
        target.id: node.value
        for node in source.tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(target := node.target, ast.Name) and node.value is not None
    }
    places: list[ast.expr] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ClusterFinding":
            places += node.args[REMEDY : REMEDY + 1]
        elif isinstance(node, ast.Assign) and "remedy" in ast.unparse(node.targets[0]):
            places.append(node.value)
    for place in places:
        for inner in ast.walk(place):
            if isinstance(inner, ast.Name) and inner.id in constants:
                yield from texts(constants[inner.id])
        yield from texts(place)


def texts(place: ast.expr) -> Iterator[str]:
    for node in ast.walk(place):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_remedies_delete_nothing() -> None:
    found = [each.remedy for each in FINDINGS.values()]
    found += [shown(AlarmView(name, "orders"))[2] for name, shown in TEXTS.items()]
    for source in product():
        if source.module.startswith("survey.findings."):
            found += remedies(source)
    assert len(found) > 50
    wrong = [each for each in found if DELETING.search(each) and not any(text in each for text in HARMLESS)]
    assert wrong == []
