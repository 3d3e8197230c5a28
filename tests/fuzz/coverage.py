"""Which branches of our code an input takes, cheap enough to look at every input.

Modules get a mark at the beginning of every block when they are imported (`install`): a function's body, both ways of
a condition, a loop's body and its end, a handler, the later operands of `and` and `or`. A mark is a byte set to 1 and
never set back, so that asking for news is one comparison of a few KiB. Compiled modules have no marks: there nothing
is ever new.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

MARKS = "__marks__"
MARK = "__mark__"
PACKAGE = "atalanta"


class Branches:
    """`hits`: one byte for every place that was marked."""

    def __init__(self) -> None:
        self.hits = bytearray()
        self._before = b""

    def place(self) -> int:
        self.hits.append(0)
        return len(self.hits) - 1

    def news(self) -> bool:
        """Whether a place was reached since the last call that never was before."""
        if self.hits == self._before:
            return False
        before, self._before = self._before, bytes(self.hits)
        # Modules imported meanwhile only add places.
        return self._before.rstrip(b"\0") != before.rstrip(b"\0")

    def forget(self) -> None:
        """Nothing was reached yet."""
        self.hits[:] = bytes(len(self.hits))
        self._before = bytes(self.hits)

    @property
    def reached(self) -> int:
        return self.hits.count(1)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Code that is reached within does not count."""
        before = bytes(self.hits)
        try:
            yield
        finally:
            self.hits[: len(before)] = before


class Marking(ast.NodeTransformer):
    """Marks the blocks of functions; what runs at import stays as it is."""

    def __init__(self, branches: Branches) -> None:
        self.branches = branches
        self.depth = 0

    def _mark(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        mark = ast.parse(f"{MARKS}[{self.branches.place()}] = 1").body
        return [*mark, *body]

    def _marked(self, value: ast.expr) -> ast.expr:
        """`value`, and a mark when it is asked for."""
        test = ast.parse(f"{MARK}({self.branches.place()}, 1) is None", mode="eval").body
        return ast.IfExp(test, value, ast.Constant(None))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self.depth += 1
        self.generic_visit(node)
        self.depth -= 1
        told = 1 if ast.get_docstring(node, clean=False) is not None else 0
        node.body = [*node.body[:told], *self._mark(node.body[told:])]
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if not self.depth:
            return node
        if isinstance(node, ast.If | ast.For | ast.AsyncFor | ast.While):
            node.body = self._mark(node.body)
            node.orelse = self._mark(node.orelse)
        elif isinstance(node, ast.ExceptHandler | ast.match_case):
            node.body = self._mark(node.body)
        elif isinstance(node, ast.Try):
            node.orelse = self._mark(node.orelse) if node.orelse else []
        elif isinstance(node, ast.IfExp):
            node.body = self._marked(node.body)
            node.orelse = self._marked(node.orelse)
        elif isinstance(node, ast.BoolOp):
            node.values = [node.values[0], *map(self._marked, node.values[1:])]
        elif isinstance(node, ast.Lambda):
            node.body = self._marked(node.body)
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            node.elt = self._marked(node.elt)
        elif isinstance(node, ast.DictComp):
            node.value = self._marked(node.value)
        return node


class MarkedLoader(SourceFileLoader):
    """From the source, never from a cached file, which knows no marks."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def source_to_code(self, data: object, path: object, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        assert isinstance(data, bytes) and isinstance(path, str)
        tree = ast.fix_missing_locations(Marking(BRANCHES).visit(ast.parse(data, path)))
        code = compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)
        assert isinstance(code, CodeType)
        return code

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[MARKS] = BRANCHES.hits
        vars(module)[MARK] = BRANCHES.hits.__setitem__
        super().exec_module(module)


class MarkingFinder(MetaPathFinder):
    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.package and not fullname.startswith(self.package + "."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = MarkedLoader(spec.loader.name, spec.loader.path)
        return spec


BRANCHES = Branches()


def install(package: str = PACKAGE) -> None:
    """Modules of the package are marked from now on; none of them may be there yet."""
    here = [name for name in sys.modules if name == package or name.startswith(package + ".")]
    if here:
        raise RuntimeError(f"imported before they could be marked: {', '.join(sorted(here))}")
    sys.meta_path.insert(0, MarkingFinder(package))
