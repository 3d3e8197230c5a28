"""Style that a program can check: sizes, sets, dangerous calls, docstrings, paths, mirror."""

from __future__ import annotations

import ast
import re
import warnings

from tests.set_iteration import Finder, annotated_attributes
from tests.source_tree import (
    PROGRAMS,
    PURE,
    ROOT,
    SOURCE,
    SourceFile,
    below,
    everything,
    imports,
    product,
)

FILE_LINES_WARN = 500
FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 70

# Put together from pieces, so that this file does not match itself.
MACHINE_FOLDERS = ["/wo" + "rk/", "/ro" + "ot/", "/fa" + "rm/", "/ho" + r"me/\w"]
REGISTRIES = [
    "pypi" + r"\.org",
    "pythonhosted" + r"\.org",
    "repo1?" + r"\.maven",
    "npmjs" + r"\.org",
]
UNWANTED = re.compile("|".join(MACHINE_FOLDERS + REGISTRIES))
TEXT_SUFFIXES = {
    "", ".py", ".md", ".toml", ".txt", ".xml", ".properties", ".java", ".sh", ".json", ".jsonl",
    ".yml", ".yaml", ".ini", ".cfg", ".svg", ".html",
}  # fmt: skip

# Test folders that mirror no package.
OTHER_TEST_FOLDERS = {"namespaces", "golden", "interop", "examples", "fuzz", "stress"}
# Test folders of several packages: what clients see of options without effect.
SHARED_TEST_FOLDERS = {"config/harmless"}

# A name of two classes needs a reason.
PROTOCOL_FOLDERS = ("wire/core/", "wire/openwire/", "wire/stomp/", "wire/amqp/")
# The client's two faces: with asyncio, and the same names without (client/blocking*.py, client/log/).
CLIENT_FACES = {
    "Branch", "ClusterConsumer", "Connection", "ConnectionFactory", "Consumer", "LogView", "Management", "Producer",
    "Transaction", "XaResource",
}  # fmt: skip
# The client's message and the broker's: users of the client and transformers of bridges import them by that name.
TWO_MESSAGES = {"Message": ["client/message.py", "message/message.py"]}

DANGEROUS_CALLS = {"eval", "exec", "compile", "__import__"}
DANGEROUS_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "runpy", "importlib"}
# Asking about installed files imports nothing.
HARMLESS_IMPORTLIB = (
    "importlib.machinery",
    "importlib.metadata",
    "importlib.resources",
    "importlib.util",
)
# Functions that the operator names in atalanta.toml, and nobody else anywhere. selector/parser.py imports
# one module, by a literal name, that the compiler must not follow; face.py what the `__init__` names that calls it.
OPERATORS_OWN = {
    ("src/atalanta/face.py", "importlib.import_module"),
    ("src/atalanta/runtime/process/callables.py", "importlib"),
    ("src/atalanta/message/selector/parser.py", "importlib.import_module"),
}


def functions(source: SourceFile) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method of a file."""
    wanted = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in ast.walk(source.tree) if isinstance(node, wanted)]


def test_files_are_short() -> None:
    too_long = []
    for source in everything():
        lines = source.text.count("\n")
        if lines > FILE_LINES_MAX:
            too_long.append(f"{source.name}: {lines} lines, at most {FILE_LINES_MAX}")
        elif lines > FILE_LINES_WARN:
            warnings.warn(f"{source.name}: {lines} lines: look for a second noun", stacklevel=1)
    assert not too_long, "\n".join(too_long)


def test_functions_are_short() -> None:
    too_long = []
    for source in everything():
        for function in functions(source):
            lines = (function.end_lineno or function.lineno) - function.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                place = f"{source.name}:{function.lineno}"
                too_long.append(f"{place}: {function.name} has {lines} lines")
    assert not too_long, "\n".join(too_long)


def test_modules_say_what_they_are() -> None:
    silent = [
        source.name
        for source in everything()
        if source.text.strip() and not ast.get_docstring(source.tree)
    ]
    assert not silent, "no docstring at the top: " + ", ".join(silent)


def classes_outside_protocols() -> dict[str, list[str]]:
    """The files of each class name, below src/atalanta, without those of the protocols."""
    found: dict[str, list[str]] = {}
    for source in product():
        place = source.path.relative_to(SOURCE).as_posix()
        if not place.startswith(PROTOCOL_FOLDERS):
            for node in source.tree.body:
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append(place)
    return found


def test_a_class_name_is_unique_outside_a_protocols_folder() -> None:
    several = {name: places for name, places in classes_outside_protocols().items() if len(places) > 1}
    faces = {name for name, places in several.items() if all(place.startswith("client/") for place in places)}
    assert faces == CLIENT_FACES
    assert {name: places for name, places in several.items() if name not in faces} == TWO_MESSAGES


def test_pure_code_iterates_no_set() -> None:
    pure = [s for s in product() if s.part in PURE and s.module not in PROGRAMS]
    attributes = annotated_attributes(source.tree for source in pure)
    wrong = [
        f"{source.name}:{line}: the order of a set differs between runs"
        for source in pure
        for line in Finder(attributes).find(source.tree)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_set_finder_finds() -> None:
    code = """
class Box:
    def __init__(self, given: set[int]) -> None:
        self.members: set[str] = set()
        for a in given: pass
    def run(self, other: "Box") -> None:
        for b in other.members: pass
        local = {1, 2}
        x = [c for c in local]
        y = list(local | {3})
        z = self.members.pop()
        fine = sorted(local), len(self.members), 3 in local, max(local)
        for d in sorted(self.members): pass
        for e in [1]: pass
"""
    tree = ast.parse(code)
    assert Finder(annotated_attributes([tree])).find(tree) == [5, 7, 9, 10, 11]


def test_nothing_runs_data() -> None:
    wrong = []
    for source in product():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in DANGEROUS_CALLS:
                    wrong.append(f"{source.name}:{node.lineno}: {node.func.id}()")
        for line, name in imports(source):
            if name.startswith(HARMLESS_IMPORTLIB) or (source.name, name) in OPERATORS_OWN:
                continue
            if name.split(".", 1)[0] in DANGEROUS_MODULES:
                wrong.append(f"{source.name}:{line}: {name}")
    assert not wrong, "\n".join(wrong)


def test_no_machine_paths_and_no_registry_hosts() -> None:
    wrong = []
    for path in below(ROOT, "*"):
        if path.suffix not in TEXT_SUFFIXES or path.stat().st_size > 1_000_000:
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), 1):
            if UNWANTED.search(line):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not wrong, "\n".join(wrong)


def test_no_helper_is_imported_from_a_test_file() -> None:
    """Helpers that several test files use lie in a module beside them, such as paging_rig.py."""
    wrong = []
    for source in everything():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Import):
                names = [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{each.name}" for each in node.names]
            else:
                continue
            for name in names:
                parts = name.split(".")
                if parts[0] == "tests" and any(part.startswith("test_") for part in parts):
                    wrong.append(f"{source.name}:{node.lineno}: {name}")
    assert not wrong, "\n".join(wrong)


def test_tests_mirror_the_tree() -> None:
    tests = ROOT / "tests"
    packages = {path.parent.name for path in SOURCE.glob("*/*.py")}
    folders = {path.parent.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    with_tests = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}
    tops = {folder.split("/")[0] for folder in with_tests}
    untested = sorted(packages - tops)
    assert not untested, f"packages without tests/<package>/test_*.py: {untested}"
    strange = sorted(
        folder
        for folder in with_tests - folders - SHARED_TEST_FOLDERS - {"."}
        if folder.split("/")[0] not in OTHER_TEST_FOLDERS
    )
    assert not strange, f"test folders that mirror no folder of the package: {strange}"
