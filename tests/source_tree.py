"""The project's own source files, parsed: what the tests of imports and style look at."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "atalanta"
# No asyncio, socket, clock or randomness in these: time is an argument, the world is behind ports.
PURE = {"message", "kernel", "management", "wire", "store", "ha", "cluster", "sim", "node"}
# Programs around pure code: they print, read arguments and measure wall time.
PROGRAMS = {"sim.__main__"}
# Written by tools, or by whoever works in the checkout; never part of the project.
GENERATED = {".git", ".venv", ".cache", "__pycache__", "build", "dist", "demo-out", "target"} | {
    ".ruff_cache", ".pytest_cache", ".mypy_cache", ".hypothesis", "spark-warehouse",
}  # fmt: skip


# The folders of the pure packages, from the ground up. A module may import from lower floors and from
# its own folder, never from the same floor or a higher one. Imports under TYPE_CHECKING are free.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("kernel", "message/encoding", "message/selector"),
    ("message",),
    ("store", "kernel/journal", "kernel/memory"),
    ("kernel/queue", "ha"),
    ("kernel/queue/paging", "kernel/routing", "ha/replication"),
    ("kernel/queue/delivery", "kernel/security"),
    ("kernel/registry", "kernel/settings"),
    ("kernel/publish",),
    ("kernel/log", "kernel/transactions"),
    ("kernel/sessions",),
    ("kernel/broker",),
    ("management/request", "management/resources"),
    ("management/operations",),
    ("management/controls",),
    ("management",),
    ("wire",),
    ("wire/core", "wire/jgroups", "wire/openwire/encoding"),
    ("wire/core/packets", "wire/amqp", "wire/stomp", "wire/openwire/commands"),
    ("wire/core/server/requests", "wire/openwire"),
    ("wire/core/client", "wire/core/server", "wire/openwire/conversion"),
    ("wire/openwire/server/advisories",),
    ("wire/openwire/server/sessions",),
    ("wire/openwire/server/requests",),
    ("wire/openwire/server/bridge",),
    ("wire/openwire/server",),
    ("cluster",),
    ("cluster/topology", "cluster/replication"),
    ("cluster/replication/active", "cluster/replication/passive"),
    ("cluster/discovery", "cluster/links"),
    ("cluster/core_bridges", "cluster/store_and_forward", "cluster/connection_routers", "cluster/networks"),
    ("cluster/balancing", "cluster/grouping"),
    ("cluster/connection",),
    ("cluster/scale_down",),
    ("node",),
)


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One Python file; `name` is its path below the root, for messages."""

    path: Path
    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed text; a syntax error fails the caller's test with its place."""
        return ast.parse(self.text, filename=self.name)

    @property
    def module(self) -> str:
        """The dotted name below atalanta: "kernel.queue", "app", "" for the package itself."""
        parts = list(self.path.relative_to(SOURCE).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def folder(self) -> str:
        """The folder below src/atalanta: "kernel/queue"; "" for modules of the package itself."""
        folder = self.path.relative_to(SOURCE).parent.as_posix()
        return "" if folder == "." else folder

    @property
    def part(self) -> str:
        """The first word of `module`: the package, or the top-level module, it belongs to."""
        return self.module.split(".", 1)[0]


@cache
def parse(path: Path) -> SourceFile:
    """One file."""
    return SourceFile(path, path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))


def below(folder: Path, pattern: str) -> Iterator[Path]:
    """Files of the project under `folder`, sorted, without anything generated (.venv is not even looked into)."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in GENERATED]
        found += [
            Path(place, name)
            for name in names
            if name not in GENERATED and fnmatch(name, pattern)
        ]
    for path in sorted(found):
        if path.is_file():
            yield path


@cache
def product() -> tuple[SourceFile, ...]:
    """Every module of the package."""
    return tuple(parse(path) for path in below(SOURCE, "*.py"))


@cache
def everything() -> tuple[SourceFile, ...]:
    """Every Python file of the project: package, tests, tools, examples."""
    return tuple(parse(path) for path in below(ROOT, "*.py"))


@cache
def imports(source: SourceFile) -> list[tuple[int, str]]:
    """(line, dotted name) of every import; `from a import b` gives "a.b", also relative."""
    package = ["atalanta", *source.path.relative_to(SOURCE).parts[:-1]]
    found = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package[: len(package) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return found


def compiled_paths() -> set[Path]:
    """The source files that compiled_modules.txt names."""
    found: set[Path] = set()
    for line in (ROOT / "compiled_modules.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("!"):
            found -= set(SOURCE.glob(line[1:]))
        elif line and not line.startswith("#"):
            found |= set(SOURCE.glob(line))
    return found
