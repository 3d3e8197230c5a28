"""`atalanta version`: version and build, for people and for bug reports."""

from __future__ import annotations

import platform

from atalanta import __version__
from atalanta.runtime.process.build import compiled_modules
from atalanta.runtime.process.event_loop import loop_name


def version_lines() -> list[str]:
    """Returns lines `name: value`, after a first line with the version."""
    compiled = len(compiled_modules())
    build = f"compiled by mypyc ({compiled} modules)" if compiled else "interpreted"
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return [
        f"atalanta {__version__}",
        f"build: {build}",
        f"loop: {loop_name()}",
        f"python: {python}",
        f"platform: {platform.platform()}",
    ]
