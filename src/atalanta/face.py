"""The face of a package: the names of its `__init__` that other distributions may use.

An `__init__` imports them under TYPE_CHECKING, for type checkers, and takes its `__getattr__` from here. So a name is
loaded when it is first used, and the import of a package loads nothing more than the package
(docs/internals/faces.md).
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable
from importlib import import_module


def face(package: str) -> Callable[[str], object]:
    """Returns the `__getattr__` of a package whose `__init__` calls this."""
    origins: dict[str, tuple[str, str]] = {}

    def load(name: str) -> object:
        module = sys.modules[package]
        if name not in module.__all__:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if not origins:
            origins.update(origins_of(ast.parse(inspect.getsource(module))))
        home, original = origins[name]
        value: object = getattr(import_module(home), original)
        setattr(module, name, value)  # the next use does not come here
        return value

    return load


def origins_of(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Returns module and name there of each name that an `__init__` imports under TYPE_CHECKING."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
