"""Finds iteration over sets in a syntax tree: one seed must give one trace under every hash seed.

It sees set displays, comprehensions and set()/frozenset() calls, names and attributes annotated as
sets, and what was assigned from one. `sorted`, `len`, `min`, `max`, `sum`, `any`, `all`, set
algebra and membership tests do not depend on the order and are free.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterable, Iterator

ORDERED_BY_ARGUMENT = {"list", "tuple", "iter", "enumerate", "map", "filter", "zip", "reversed"}
SET_TYPES = {"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"}
SET_METHODS = {"union", "intersection", "difference", "symmetric_difference"}


def is_set_annotation(node: ast.expr | None) -> bool:
    """`set[int]`, `frozenset[str] | None`, also quoted."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return is_set_annotation(node.left) or is_set_annotation(node.right)
    if isinstance(node, ast.Subscript):
        node = node.value
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
    return name in SET_TYPES


def annotated_attributes(trees: Iterable[ast.Module]) -> set[str]:
    """Attribute names that are sets wherever the given trees annotate them."""
    sets: set[str] = set()
    others: set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for item in node.body:
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                        (sets if is_set_annotation(item.annotation) else others).add(item.target.id)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute):
                (sets if is_set_annotation(node.annotation) else others).add(node.target.attr)
    return sets - others


class Finder:
    """Collects the lines of one file where a set's order would show."""

    def __init__(self, attributes: set[str]) -> None:
        self.attributes = attributes
        self.lines: list[int] = []

    def find(self, tree: ast.Module) -> list[int]:
        """Line numbers, sorted."""
        self._scope(tree, frozenset())
        return sorted(set(self.lines))

    def _scope(self, scope: ast.AST, outer: frozenset[str]) -> None:
        """One function or module: first its names that are sets, then what it does with them."""
        names = set(outer)
        arguments = getattr(scope, "args", None)
        if isinstance(arguments, ast.arguments):
            for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                names.discard(argument.arg)
                if is_set_annotation(argument.annotation):
                    names.add(argument.arg)
        inside = list(self._own_nodes(scope))
        for node in inside:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                if is_set_annotation(node.annotation):
                    names.add(node.target.id)
            elif isinstance(node, ast.Assign) and self._is_set(node.value, names):
                names.update(t.id for t in node.targets if isinstance(t, ast.Name))
        for node in inside:
            self._check(node, names)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                self._scope(node, frozenset(names))

    def _own_nodes(self, scope: ast.AST) -> Iterator[ast.AST]:
        """Descendants of `scope` that belong to it, nested functions themselves but not inside."""
        waiting = deque(ast.iter_child_nodes(scope))
        while waiting:
            node = waiting.popleft()
            yield node
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                waiting.extend(ast.iter_child_nodes(node))

    def _is_set(self, node: ast.expr, names: set[str]) -> bool:
        if isinstance(node, ast.Set | ast.SetComp):
            return True
        if isinstance(node, ast.Name):
            return node.id in names
        if isinstance(node, ast.Attribute):
            return node.attr in self.attributes
        if isinstance(node, ast.BinOp) and isinstance(
            node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor
        ):
            return self._is_set(node.left, names)
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name):
                return function.id in {"set", "frozenset"}
            return isinstance(function, ast.Attribute) and (
                function.attr in SET_METHODS and self._is_set(function.value, names)
            )
        return False

    def _check(self, node: ast.AST, names: set[str]) -> None:
        looked_at: list[ast.expr] = []
        if isinstance(node, ast.For | ast.AsyncFor):
            looked_at.append(node.iter)
        elif isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
            looked_at += [part.iter for part in node.generators]
        elif isinstance(node, ast.Starred | ast.YieldFrom):
            looked_at.append(node.value)
        elif isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name) and function.id in ORDERED_BY_ARGUMENT:
                looked_at += node.args
            elif isinstance(function, ast.Attribute):
                if function.attr in {"join", "extend", "fromkeys"}:
                    looked_at += node.args
                elif function.attr == "pop" and not node.args:
                    looked_at.append(function.value)
        for expression in looked_at:
            if self._is_set(expression, names):
                self.lines.append(expression.lineno)
