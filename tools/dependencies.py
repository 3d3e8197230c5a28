"""Prints what pyproject.toml asks for, one requirement a line: `dependencies.py build demo dev`.

The Makefile installs dependencies and package in two steps, so that a changed source file costs
no dependency resolution. "build" means the build requirements; other words are extras.
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT_FILE = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(groups: list[str]) -> list[str]:
    """The requirements of the package itself and of `groups`, extras of ours unfolded."""
    document = tomllib.loads(PROJECT_FILE.read_text(encoding="utf-8"))
    project = document["project"]
    wanted: list[str] = list(project["dependencies"])
    waiting = list(groups)
    while waiting:
        group = waiting.pop(0)
        if group == "build":
            wanted += document["build-system"]["requires"]
            continue
        for requirement in project["optional-dependencies"][group]:
            own = re.fullmatch(rf"{project['name']}\[([\w,-]+)\]", requirement)
            if own:
                waiting += own.group(1).split(",")
            else:
                wanted.append(requirement)
    return list(dict.fromkeys(wanted))


if __name__ == "__main__":
    print("\n".join(requirements(sys.argv[1:])))
