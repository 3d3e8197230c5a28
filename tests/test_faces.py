"""What is to become a distribution of its own uses the rest through faces only, and the rest does not know it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import pytest

from atalanta.face import origins_of
from tests.source_tree import ROOT, SourceFile, parse, product


@dataclass(frozen=True)
class Separate:
    """Modules, with all below them, that leave together; `used_by` are the only files that may import them."""

    modules: tuple[str, ...]
    used_by: tuple[str, ...]

    def has(self, name: str) -> bool:
        return any(name == each or name.startswith(f"{each}.") for each in self.modules)


SEPARATE = {
    "simulator": Separate(
        ("atalanta.sim", "atalanta.cli.plan", "atalanta.cli.commands.files.plan"),
        ("src/atalanta/cli/application.py",),
    ),
    "Spark": Separate(
        ("atalanta.spark", "pyspark_atalanta", "atalanta.cli.pipeline", "atalanta.cli.commands.pipeline"),
        ("src/atalanta/cli/application.py",),
    ),
    "WildFly": Separate(
        ("atalanta.config.wildfly",),
        ("src/atalanta/config/broker_xml.py", "src/atalanta/config/xml/convert.py"),
    ),
}
# The API of programs outside: it loads what it lists, and a name needs no user here.
PUBLIC = {"atalanta.client", "atalanta.client.blocking", "atalanta.spark", "pyspark_atalanta"}


@dataclass(frozen=True)
class Use:
    """A name that a file takes from a module; `name` is "" for the module itself."""

    place: str
    module: str
    name: str


@cache
def sources() -> tuple[tuple[str, SourceFile], ...]:
    """The files of `src` with their dotted names."""
    inside = [(f"atalanta.{source.module}".rstrip("."), source) for source in product()]
    spark = parse(ROOT / "src" / "pyspark_atalanta" / "__init__.py")
    return (*inside, ("pyspark_atalanta", spark))


@cache
def uses(source: SourceFile) -> tuple[Use, ...]:
    return tuple(found_uses(source))


def found_uses(source: SourceFile) -> Iterator[Use]:
    """What a file imports of the project, and the attributes of modules that it imports whole."""
    whole: dict[str, str] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if module_is(f"{node.module}.{alias.name}") and alias.name not in face_of(node.module or ""):
                    whole[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                else:
                    yield Use(f"{source.name}:{node.lineno}", node.module or "", alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield Use(f"{source.name}:{node.lineno}", alias.name, "")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in whole:
            yield Use(f"{source.name}:{node.lineno}", whole[node.value.id], node.attr)


@cache
def modules() -> frozenset[str]:
    return frozenset(name for name, _ in sources())


def module_is(name: str) -> bool:
    return name in modules()


@cache
def faces() -> dict[str, SourceFile]:
    """The packages whose `__init__` lists names, and the modules of the public API."""
    return {
        name: source
        for name, source in sources()
        if name in PUBLIC or (source.path.name == "__init__.py" and "__all__" in source.text)
    }


@cache
def face_of(package: str) -> tuple[str, ...]:
    """The names that the `__init__` of a package lists, or a public module; none without a list."""
    if package not in faces():
        return ()
    for node in faces()[package].tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return tuple(ast.literal_eval(node.value))
    return ()


def of_the_rest(separate: Separate, source: SourceFile) -> Iterator[Use]:
    """What a file of a separate part takes from the rest of the project."""
    for use in uses(source):
        # How a face is made is no part of one: each distribution has a copy of these lines.
        ours = use.module.partition(".")[0] in {"atalanta", "pyspark_atalanta"} and use.module != "atalanta.face"
        if ours and not separate.has(use.module) and not separate.has(f"{use.module}.{use.name}"):
            yield use


@pytest.mark.parametrize("name", SEPARATE)
def test_a_separate_part_uses_names_of_faces(name: str) -> None:
    separate = SEPARATE[name]
    wrong = [
        f"{use.place}: {use.module} does not list {use.name or 'itself'}"
        for module, source in sources()
        if separate.has(module)
        for use in of_the_rest(separate, source)
        if use.name not in face_of(use.module)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", SEPARATE)
def test_nobody_else_imports_a_separate_part(name: str) -> None:
    separate = SEPARATE[name]
    users = {
        source.name
        for module, source in sources()
        if not separate.has(module)
        for use in uses(source)
        if separate.has(use.module) or separate.has(f"{use.module}.{use.name}")
    }
    assert users == set(separate.used_by)


def test_every_name_of_a_face_is_used() -> None:
    used = {
        (use.module, use.name)
        for separate in SEPARATE.values()
        for module, source in sources()
        if separate.has(module)
        for use in of_the_rest(separate, source)
    }
    idle = [
        f"{package}: {name}"
        for package in faces()
        if package not in PUBLIC
        for name in face_of(package)
        if (package, name) not in used
    ]
    assert not idle, "\n".join(idle)


@pytest.mark.parametrize("package", sorted(set(faces()) - PUBLIC))
def test_a_face_gives_what_it_lists(package: str) -> None:
    """Each name is imported under TYPE_CHECKING, once, from a module below; no module of the package has its name."""
    source = faces()[package]
    origins = origins_of(source.tree)
    assert sorted(face_of(package)) == sorted(origins)
    module = import_module(package)
    for name, (home, original) in origins.items():
        assert not module_is(f"{package}.{name}"), f"{name} is a module of {package}, too"
        assert getattr(module, name) is getattr(import_module(home), original)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing


def test_the_import_of_a_package_loads_nothing_else() -> None:
    code = "import sys, atalanta.kernel; print(*sorted(name for name in sys.modules if 'atalanta' in name))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["atalanta", "atalanta.face", "atalanta.kernel"]
