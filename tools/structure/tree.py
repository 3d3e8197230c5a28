"""The modules of a package, parsed: folders, sizes, names, imports and import circles."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

LINES_WARN = 500
LINES_MAX = 800
FUNCTION_LINES_MAX = 70

# Module and folder names that end like a gerund or participle and are nouns of the field, or no verb forms.
NOUNS = {
    "balancing", "binding", "embed", "encoding", "feed", "grouping", "heading", "king", "listing",
    "logging", "mapping", "need", "paging", "ping", "red", "ring", "routing", "scheduled", "seed",
    "setting", "shed", "speed", "spring", "string", "thing", "timing", "warning", "wing",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Module:
    """One file. `name` is dotted below the package, `path` relative to it, `folder` "" at the top."""

    name: str
    path: str
    folder: str
    lines: int
    tree: ast.Module
    is_package: bool

    @property
    def stem(self) -> str:
        return self.path.rsplit("/", 1)[-1].removesuffix(".py")


@dataclass
class Tree:
    """Every module of the package by its dotted name, in the order of the paths."""

    package: str
    modules: dict[str, Module] = field(default_factory=dict)

    def folders(self) -> list[str]:
        """Every folder with modules in it or below it, sorted; "" is the package itself."""
        found = {""}
        for module in self.modules.values():
            parts = module.folder.split("/") if module.folder else []
            found.update("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        return sorted(found)

    def below(self, folder: str) -> list[Module]:
        """The modules in the folder and in all folders below it."""
        return [each for each in self.modules.values() if inside(each.folder, folder)]


def inside(folder: str, outer: str) -> bool:
    """Returns true for the folder itself and for every folder below it."""
    return not outer or folder == outer or folder.startswith(f"{outer}/")


def read(root: Path) -> Tree:
    """The tree of the package whose folder is `root`; a syntax error is raised with its file name."""
    tree = Tree(root.name)
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        parts = list(relative.with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text(encoding="utf-8")
        folder = "/".join(relative.parts[:-1])
        parsed = ast.parse(text, filename=str(path))
        tree.modules[name] = Module(
            name, relative.as_posix(), folder, text.count("\n"), parsed, is_package
        )
    return tree


# -- folders and names ---------------------------------------------------------------------------
def entries(tree: Tree) -> dict[str, int]:
    """Modules and subfolders directly in each folder, without `__init__.py`."""
    counts = dict.fromkeys(tree.folders(), 0)
    for module in tree.modules.values():
        if not module.is_package:
            counts[module.folder] += 1
    for folder in counts:
        if folder:
            counts[folder.rpartition("/")[0]] += 1
    return counts


def sizes(tree: Tree) -> dict[str, tuple[int, int, int]]:
    """Files, lines and median lines a file of each folder, folders below it included."""
    found = {}
    for folder in tree.folders():
        lines = [each.lines for each in tree.below(folder)]
        found[folder] = (len(lines), sum(lines), round(median(lines)))
    return found


@dataclass(frozen=True)
class FunctionSize:
    """The place and the lines of one function or method, without its decorators."""

    name: str
    place: str
    lines: int


def functions(tree: Tree) -> list[FunctionSize]:
    """Returns every function, methods and nested ones too."""
    return [
        FunctionSize(node.name, f"{module.path}:{node.lineno}", (node.end_lineno or node.lineno) - node.lineno + 1)
        for module in tree.modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def verb_names(tree: Tree) -> dict[str, list[str]]:
    """Names of modules and folders whose last word is a gerund or participle, with their paths."""
    found: dict[str, list[str]] = {}
    for folder in tree.folders():
        _add_name(found, folder.rpartition("/")[2], folder)
    for module in tree.modules.values():
        _add_name(found, module.stem, module.path)
    return found


def _add_name(found: dict[str, list[str]], name: str, path: str) -> None:
    word = name.rpartition("_")[2]
    if word.endswith(("ing", "ed")) and word not in NOUNS:
        found.setdefault(name, []).append(path)


# -- imports -------------------------------------------------------------------------------------
def imports(tree: Tree, module: Module, type_checking: bool) -> set[str]:
    """The modules of the package that this one imports at module level or within functions.

    With `type_checking` the imports under `if TYPE_CHECKING:` count as well; without, only those
    count that run when the module is loaded: imports in functions are left out, too.
    """
    finder = _Imports(tree, module, type_checking)
    finder.visit(module.tree)
    return finder.found - {module.name}


class _Imports(ast.NodeVisitor):
    def __init__(self, tree: Tree, module: Module, type_checking: bool) -> None:
        self.tree = tree
        self.module = module
        self.type_checking = type_checking
        self.found: set[str] = set()

    def visit_If(self, node: ast.If) -> None:
        if is_type_checking(node.test) and not self.type_checking:
            for each in node.orelse:
                self.visit(each)
        else:
            self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if self.type_checking:
            self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        if self.type_checking:
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._add(alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for _, full in imported_names(self.tree, self.module, node):
            self._add(full)

    def _add(self, full: str) -> None:
        name = full.removeprefix(f"{self.tree.package}.")
        if name == full:
            return
        while name and name not in self.tree.modules:
            name = name.rpartition(".")[0]
        # An empty __init__.py is no part of a circle; what runs first is the module itself.
        if name:
            self.found.add(name)


def imported_names(tree: Tree, module: Module, node: ast.ImportFrom) -> list[tuple[str, str]]:
    """(local name, full dotted name) of every name of a `from … import`, relative ones resolved."""
    base = node.module or ""
    if node.level:
        above = [tree.package, *(module.folder.split("/") if module.folder else [])]
        above = above[: len(above) - node.level + 1]
        base = ".".join([*above, base] if base else above)
    return [(alias.asname or alias.name, f"{base}.{alias.name}") for alias in node.names]


def is_type_checking(test: ast.expr) -> bool:
    """Returns true for `TYPE_CHECKING` and `typing.TYPE_CHECKING`."""
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def circles(tree: Tree, type_checking: bool) -> list[list[str]]:
    """The import circles (strongly connected components of at least two modules), largest first."""
    graph = {
        name: sorted(imports(tree, module, type_checking)) for name, module in tree.modules.items()
    }
    found = [sorted(each) for each in components(graph) if len(each) > 1]
    return sorted(found, key=lambda each: (-len(each), each))


def components(graph: dict[str, list[str]]) -> list[list[str]]:
    """Strongly connected components (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(graph[start]))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            name, targets = work[-1]
            target = next(targets, None)
            if target is not None:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                elif target in on_stack:
                    low[name] = min(low[name], index[target])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[name])
            if low[name] == index[name]:
                cut = stack.index(name)
                found.append(stack[cut:])
                on_stack.difference_update(stack[cut:])
                del stack[cut:]
    return found
