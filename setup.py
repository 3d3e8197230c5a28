"""The compiled part of the build: mypyc over the modules named in compiled_modules.txt.

ATALANTA_COMPILE=0 builds without it, ATALANTA_COMPILE=1 makes a failure to compile an error, and
otherwise (the default) a failure leaves an interpreted installation behind, with a warning.
"""

from __future__ import annotations

import fnmatch
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError

ROOT = Path(__file__).resolve().parent
PACKAGE = Path("src") / "atalanta"
MODE = os.environ.get("ATALANTA_COMPILE", "auto")


def compiled_modules() -> list[str]:
    """The existing source files that compiled_modules.txt names, sorted, relative to the root."""
    chosen: list[str] = []
    lines = (ROOT / "compiled_modules.txt").read_text(encoding="utf-8").splitlines()
    for line in (raw.strip() for raw in lines):
        if not line or line.startswith("#"):
            continue
        if line.startswith("!"):
            out = str(PACKAGE / line[1:])
            chosen = [path for path in chosen if not fnmatch.fnmatch(path, out)]
        else:
            found = sorted((ROOT / PACKAGE).glob(line))
            chosen += [str(path.relative_to(ROOT)) for path in found]
    return sorted(dict.fromkeys(chosen))


def extensions() -> list[Extension]:
    """The mypyc extensions, or none where they are switched off or cannot be generated."""
    modules = compiled_modules()
    if MODE == "0" or not modules:
        return []
    os.chdir(ROOT)
    try:
        from mypyc.build import mypycify

        # A cache of its own: `make test` checks types at the same time.
        options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", ".cache/mypyc"]
        made = list(mypycify([*options, *modules], opt_level="2", debug_level="0", multi_file=True))
    except (ImportError, SystemExit) as error:
        return fall_back(f"mypyc did not accept the sources ({error})")
    for extension in made:
        # A compiler we have not met may warn about something harmless.
        extension.extra_compile_args = [
            word for word in extension.extra_compile_args if word != "-Werror"
        ]
        # Calls between modules need no lookup by name: a start resolves thousands of names fewer.
        if sys.platform != "win32":
            extension.extra_compile_args.append("-fvisibility=hidden")
    return made


def fall_back(why: str) -> list[Extension]:
    """No extensions, said aloud; an error where compiling was demanded."""
    if MODE == "1":
        raise SystemExit(f"atalanta: ATALANTA_COMPILE=1, but {why}")
    print(f"atalanta: WARNING: installing interpreted: {why}", file=sys.stderr)
    return []


class BuildAllOrNone(build_ext):
    """Compiles every module or none: half of one shared library would fail at import."""

    def run(self) -> None:
        """Builds the extensions; removes what an earlier build left and this one lacks."""
        self._remove_stale()
        try:
            super().run()
        except (BaseError, OSError) as error:
            for output in self.get_outputs():
                Path(output).unlink(missing_ok=True)
            self.extensions = fall_back(f"the C compiler failed ({error})")

    def build_extensions(self) -> None:
        """One file of C and a small library for each module, and all cores at work on them."""
        self.parallel = self.parallel or os.cpu_count()
        compile_serially = self.compiler.compile

        def compile_files(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                objects = list(pool.map(lambda one: compile_serially([one], **options), sources))
            return [name for names in objects for name in names]

        self.compiler.compile = compile_files
        super().build_extensions()

    def _remove_stale(self) -> None:
        built = Path(self.build_lib)
        current = {str(Path(output)) for output in self.get_outputs()}
        for path in sorted(built.rglob("*.so")) + sorted(built.rglob("*.pyd")):
            if str(path) not in current:
                path.unlink()
        for path in sorted(built.rglob("*.py")):
            if not (ROOT / "src" / path.relative_to(built)).exists():
                path.unlink()


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildAllOrNone})
