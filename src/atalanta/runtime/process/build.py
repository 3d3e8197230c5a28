"""The build that runs, compiled by mypyc or interpreted, found by its files."""

from __future__ import annotations

import importlib.machinery
from pathlib import Path

from atalanta.message import message

EXTENSION_SUFFIXES = tuple(importlib.machinery.EXTENSION_SUFFIXES)


def compiled_modules() -> list[str]:
    """Returns the names of the compiled modules of this package, sorted; empty for an interpreted build.

    Python prefers an extension module to the source file of the same name, so these are the imported ones.
    """
    package = Path(__file__).resolve().parents[2]
    found: list[str] = []
    for path in package.rglob("*"):
        if not path.name.endswith(EXTENSION_SUFFIXES):
            continue
        module = path.relative_to(package).with_name(path.name.split(".", 1)[0])
        if path.with_name(f"{module.name}.py").exists():
            found.append(".".join(("atalanta", *module.parts)))
    return sorted(found)


def build_name() -> str:
    """Returns "compiled" or "interpreted".

    One module tells it, because mypyc compiles all of them or none: a start does not search the folders.
    """
    return "compiled" if message.__file__.endswith(EXTENSION_SUFFIXES) else "interpreted"
