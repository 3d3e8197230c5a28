"""Says whether the installed atalanta is compiled; exit status 0 yes, 1 it should be, 2 cannot be.

`make test` runs part of the suite against the compiled build. On a machine without a C compiler or
without Python's headers it says so and goes on (2); where both exist a missing build is a fault
(1).
"""

import importlib.machinery
import shutil
import sys
import sysconfig
from pathlib import Path

SUFFIXES = tuple(importlib.machinery.EXTENSION_SUFFIXES)


def main() -> int:
    """Looks at the files of the installed package; imports nothing of it."""
    package = Path(sysconfig.get_path("platlib")) / "atalanta"
    built = [path for path in package.rglob("*") if path.name.endswith(SUFFIXES)]
    if built:
        print(f"compiled: {len(built)} modules")
        return 0
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if compiler is None or not header.exists():
        missing = "no C compiler" if compiler is None else f"no {header}"
        print(f"not compiled: {missing} on this machine; the interpreted build is used")
        return 2
    print("not compiled although a C compiler is here; see why: make clean-build setup V=1")
    return 1


if __name__ == "__main__":
    sys.exit(main())
