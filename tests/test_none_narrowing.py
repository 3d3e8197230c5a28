"""Compiled code does not read an attribute again that mypy takes for None since before a call.

After `if self.x is None` or `self.x = None` mypy keeps the type None for `self.x`, also behind a call that sets it.
mypyc believes that and raises `TypeError: None object expected` at the next read. A local variable helps, or a method
that returns the value.
"""

from __future__ import annotations

import ast

import pytest

from tests.source_tree import SOURCE, compiled_paths

# Calls that cannot set an attribute of an object of ours.
PURE_CALLS = {"len", "min", "max", "int", "str", "bytes", "isinstance", "range", "i64", "cast"}
ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Narrowings:
    """The attributes that are None at one place of a function: True once a call came between."""

    def __init__(self, called: dict[str, bool] | None = None, ended: bool = False) -> None:
        self.called = dict(called or {})
        self.ended = ended

    def copy(self) -> Narrowings:
        return Narrowings(self.called, self.ended)

    def with_none(self, names: set[str]) -> Narrowings:
        return Narrowings({**self.called, **dict.fromkeys(names, False)}, self.ended)

    def assign(self, name: str) -> None:
        for known in list(self.called):
            if known == name or known.startswith(name + "."):
                del self.called[known]

    def keep_calls(self, inside: Narrowings) -> None:
        """Takes over what a part of an expression has called."""
        for name in self.called:
            self.called[name] = self.called[name] or inside.called[name]

    def join(self, other: Narrowings) -> Narrowings:
        """Returns what holds whichever way was taken."""
        if self.ended or other.ended:
            return self.copy() if other.ended else other.copy()
        both = self.called.keys() & other.called.keys()
        return Narrowings({name: self.called[name] or other.called[name] for name in both})


class Reads:
    """Walks a function in the order of its execution and keeps the reads that mypyc gets wrong."""

    def __init__(self) -> None:
        self.wrong: dict[int, str] = {}

    def block(self, statements: list[ast.stmt], at: Narrowings) -> Narrowings:
        for statement in statements:
            at = self.statement(statement, at)
        return at

    def statement(self, node: ast.stmt, at: Narrowings) -> Narrowings:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return at
        if isinstance(node, ast.If):
            self.expression(node.test, at)
            return self.block(node.body, at.with_none(none_if(node.test, True))).join(
                self.block(node.orelse, at.with_none(none_if(node.test, False)))
            )
        if isinstance(node, ast.While | ast.For | ast.AsyncFor):
            return self.loop(node, at)
        if isinstance(node, ast.Try):
            return self.attempt(node, at)
        if isinstance(node, ast.Match):
            self.expression(node.subject, at)
            after = at.copy()
            for case in node.cases:
                after = after.join(self.block(case.body, at.copy()))
            return after
        at = at.copy()
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                self.expression(item.context_expr, at)
            return self.block(node.body, at)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            if node.value is not None:
                self.expression(node.value, at)
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                self.assign(target, node.value, at)
            return at
        for child in ast.iter_child_nodes(node):
            self.expression(child, at)
        if isinstance(node, ast.Assert):
            return at.with_none(none_if(node.test, True))
        at.ended = at.ended or isinstance(node, ENDS)
        return at

    def loop(self, node: ast.While | ast.For | ast.AsyncFor, at: Narrowings) -> Narrowings:
        """A loop twice: its second round begins with what the first one left."""
        test = node.test if isinstance(node, ast.While) else node.iter
        head = at
        for _ in range(2):
            head = head.copy()
            self.expression(test, head)
            inside = head.copy()
            if isinstance(node, ast.While):
                inside = head.with_none(none_if(test, True))
            else:
                self.assign(node.target, None, inside)
                inside.called.pop(ast.unparse(node.target), None)
            end = self.block(node.body, inside)
            head = at.join(end)
        self.expression(test, head)
        if isinstance(node, ast.While):
            if not any(isinstance(each, ast.Break) for each in ast.walk(node)):
                head = head.with_none(none_if(test, False))
        return self.block(node.orelse, head)

    def attempt(self, node: ast.Try, at: Narrowings) -> Narrowings:
        inside = self.block([*node.body, *node.orelse], at.copy())
        after = inside
        for handler in node.handlers:
            start = Narrowings(dict.fromkeys(at.called, True))
            after = after.join(self.block(handler.body, start))
        return self.block(node.finalbody, after)

    def assign(self, target: ast.expr, value: ast.expr | None, at: Narrowings) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self.assign(each, None, at)
            return
        at.assign(ast.unparse(target))
        if isinstance(target, ast.Attribute) and is_none(value):
            at.called[ast.unparse(target)] = False

    def expression(self, node: ast.AST, at: Narrowings) -> None:
        """Marks reads and calls in an expression, operands first."""
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.BoolOp):
            inside = at
            for value in node.values:
                self.expression(value, inside)
                inside = inside.with_none(none_if(value, isinstance(node.op, ast.And)))
            at.keep_calls(inside)
            return
        if isinstance(node, ast.IfExp):
            self.expression(node.test, at)
            for part, outcome in ((node.body, True), (node.orelse, False)):
                inside = at.with_none(none_if(node.test, outcome))
                self.expression(part, inside)
                at.keep_calls(inside)
            return
        for child in ast.iter_child_nodes(node):
            self.expression(child, at)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            name = ast.unparse(node)
            if at.called.get(name, False):
                self.wrong[node.lineno] = name
        is_pure = isinstance(node, ast.Call) and ast.unparse(node.func) in PURE_CALLS
        if isinstance(node, ast.Call | ast.Await | ast.Yield | ast.YieldFrom) and not is_pure:
            at.called.update(dict.fromkeys(at.called, True))


def is_none(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def none_if(test: ast.expr, outcome: bool) -> set[str]:
    """The attributes that are None if the test has that outcome."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return none_if(test.operand, not outcome)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == outcome:
        return {name for value in test.values for name in none_if(value, outcome)}
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and is_none(test.comparators[0]):
        wanted = ast.Is if outcome else ast.IsNot
        if isinstance(test.left, ast.Attribute) and isinstance(test.ops[0], wanted):
            return {ast.unparse(test.left)}
    return set()


def wrong_reads(source: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            reads = Reads()
            reads.block(node.body, Narrowings())
            found.update(reads.wrong)
    return found


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("if self.x is not None:\n  return\n call()\n print(self.x)", 5),
        ("if self.x is None:\n  call()\n  return self.x", 4),
        ("self.x = None\n call()\n return self.x", 4),
        ("if self.x is not None:\n  return\n while self.x is None:\n  call()", 4),
        ("while self.x is None:\n  call()\n  print(self.x)", 4),
        ("return self.x is None and call() and self.x", 2),
        ("while self.x is None:\n  call()", 0),
        ("if self.x is None:\n  self.x = call()\n return self.x", 0),
        ("if self.x is None:\n  call()\n return self.x", 0),
        ("self.x = None\n if call():\n  self.x = other()\n  return self.x", 0),
        ("call()\n if self.x is None:\n  return self.x", 0),
    ],
)
def test_the_check_finds_the_pattern(body: str, line: int) -> None:
    found = wrong_reads(f"def method(self):\n {body}\n")
    assert list(found)[:1] == ([line] if line else [])


def test_no_compiled_module_reads_an_attribute_that_mypy_takes_for_none() -> None:
    wrong = []
    for path in sorted(compiled_paths()):
        for line, name in wrong_reads(path.read_text(encoding="utf-8")).items():
            wrong.append(f"{path.relative_to(SOURCE)}:{line}: {name}")
    assert not wrong, "\n".join(wrong)
