"""The files of the build agree with each other: pins with ranges, the compiled list with the tree."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.share import IN_ONE_BUILD, shares
from tests.source_tree import PURE, ROOT, SOURCE, compiled_paths, product


def pins() -> dict[str, str]:
    """Package name to version, from constraints.txt."""
    found: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            found[canonicalize_name(name)] = version
    return found


def test_every_dependency_is_pinned_within_its_range() -> None:
    command = [sys.executable, str(ROOT / "tools" / "dependencies.py"), "build", "demo", "dev"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    pinned = pins()
    wrong = []
    for requirement in (Requirement(line) for line in listed if line):
        version = pinned.get(canonicalize_name(requirement.name))
        if version is None or version not in requirement.specifier:
            wrong.append(f"{requirement}: constraints.txt has {version}")
    assert not wrong, "\n".join(wrong)


# Files of the shell that every event-loop iteration passes; the others stay interpreted.
COMPILED_SHELL = {
    f"runtime/{name}.py"
    for name in ("clock", "driver", "read_pause", "disk/commit_file", "disk/inline_commit", "net/tcp")
}


def test_only_pure_modules_and_the_path_of_every_iteration_are_compiled() -> None:
    lines = (ROOT / "compiled_modules.txt").read_text(encoding="utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    for pattern in patterns:
        relative = pattern.removeprefix("!")
        assert relative.split("/", 1)[0] in PURE | {"*"} or relative in COMPILED_SHELL, pattern
        assert list(SOURCE.glob(relative)), f"{pattern} matches nothing"


def files_read_by_the_compiler() -> dict[str, set[str]]:
    """The source files that mypyc reads, the compiled ones and all that these import, with their imports."""
    found: dict[str, set[str]] = {}
    compiled = compiled_paths()
    by_module = {f"atalanta.{source.module}": source for source in product()}
    waiting = [source for source in by_module.values() if source.path in compiled]
    while waiting:
        source = waiting.pop()
        if source.name not in found:
            found[source.name] = names = imported_names(source.tree)
            waiting += [by_module[name] for name in names if name in by_module]
    return found


def imported_names(tree: ast.Module) -> set[str]:
    """The dotted names of what a file imports: modules, and names that may be modules."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_the_build_requires_what_compiled_modules_import() -> None:
    """In an isolated build mypyc finds only the build requirements: without one of these, nothing is compiled."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build = {canonicalize_name(r.name): r for r in map(Requirement, document["build-system"]["requires"])}
    run = {canonicalize_name(r.name): r for r in map(Requirement, document["project"]["dependencies"])}
    packages = packages_distributions()
    wrong = []
    for file, names in files_read_by_the_compiler().items():
        for name in names:
            root = name.partition(".")[0]
            if root == "atalanta" or root in sys.stdlib_module_names:
                continue
            package = canonicalize_name(packages[root][0])
            if package not in build or build[package].specifier != run[package].specifier:
                wrong.append(f"{file}: {run[package]} is no build requirement")
    assert not wrong, "\n".join(sorted(set(wrong)))


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_an_isolated_build_is_compiled(tmp_path: Path) -> None:
    """`pip install .` with nothing but the build requirements makes extension modules. Needs a package index."""
    for name in ("pyproject.toml", "setup.py", "compiled_modules.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(SOURCE, tmp_path / "src" / "atalanta", ignore=shutil.ignore_patterns("*.so"))
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "made", "."],
        cwd=tmp_path,
        env=os.environ | {"ATALANTA_COMPILE": "1"},
        check=True,
    )
    (wheel,) = (tmp_path / "made").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert "atalanta/kernel/broker/broker" in {
            name.partition(".")[0] for name in archive.namelist() if name.endswith(".so")
        }


def test_bases_of_compiled_classes_are_compiled() -> None:
    """mypyc leaves out an interpreted class between two compiled ones: `super().__init__` calls the wrong one."""
    compiled = compiled_paths()
    wrong = []
    for source in product():
        if source.path not in compiled:
            continue
        origin: dict[str, str] = {}
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("atalanta."):
                for alias in node.names:
                    origin[alias.asname or alias.name] = node.module or ""
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.ClassDef):
                continue
            for base in node.bases:
                module = origin.get(base.id) if isinstance(base, ast.Name) else None
                if module is not None:
                    parts = module.split(".")[1:]
                    if SOURCE.joinpath(*parts).with_suffix(".py") not in compiled:
                        wrong.append(f"{source.name}:{node.lineno}: the base of {node.name} is not")
    assert not wrong, "\n".join(wrong)


def test_compiled_functions_give_each_exception_a_name_of_its_own() -> None:
    """mypyc gives a name one type in a function: a second `except … as error` would be a TypeError."""
    wrong = []
    for source in product():
        if source.part not in PURE:
            continue
        for function in ast.walk(source.tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            kinds: dict[str, str] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.ExceptHandler) and node.name and node.type is not None:
                    kind = ast.unparse(node.type)
                    if kinds.setdefault(node.name, kind) != kind:
                        wrong.append(f"{source.name}:{node.lineno}: {node.name} is also a {kind}")
    assert not wrong, "\n".join(wrong)


def test_ci_runs_the_whole_check() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"atalanta": "atalanta.cli.main:main"}


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_shared_runs_are_in_both_builds() -> None:
    """The interpreted build leaves most of them to the compiled one (tests/share.py)."""
    command = ["make", "-s", "--eval", "list:\n\t@echo $(COMPILED_TESTS)", "list"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    compiled = {path for name in listed for path in (ROOT / name, *(ROOT / name).rglob("test_*.py"))}
    shared = [path for path in (ROOT / "tests").rglob("test_*.py") if shares(path)]
    assert len(shared) > 5
    assert not [path.name for path in shared if path not in compiled and path != Path(__file__)]
    for name in IN_ONE_BUILD:
        files = set((ROOT / "tests" / name).rglob("test_*.py"))
        assert files and files <= compiled, name
        # The compiled half runs all that is in them.
        assert not any("compiled_modules" in path.read_text(encoding="utf-8") for path in files), name
    assert "not process and $(1)" not in (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_line_of_the_quick_tests_names_something() -> None:
    lines = (ROOT / "tests" / "quick.txt").read_text(encoding="utf-8").splitlines()
    folders = [line for line in lines if not line.startswith("--ignore-glob=")]
    assert folders
    files = [path for folder in folders for path in (ROOT / folder).rglob("test_*.py")]
    missing = [line for line in folders if not list((ROOT / line).rglob("test_*.py"))]
    for line in lines:
        pattern = line.removeprefix("--ignore-glob=")
        if pattern != line and not any(fnmatch(str(path), pattern) for path in files):
            missing.append(line)
    assert not missing, f"tests/quick.txt names {missing}, where no test file is"
