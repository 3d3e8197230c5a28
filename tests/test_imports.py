"""Import rules: packages, floors of folders, modules that pure code may not see, third parties."""

from __future__ import annotations

import ast
import sys

from tests.source_tree import FLOORS, PROGRAMS, PURE, SourceFile, imports, product

# A module of the left package may import from the packages on the right (and its own).
MAY_IMPORT: dict[str, set[str]] = {
    "face": set(),
    "message": set(),
    "kernel": {"message"},
    "management": {"kernel", "message"},
    "store": {"kernel", "message"},
    "ha": {"kernel", "store"},
    "wire": {"kernel", "message", "management"},
    "cluster": {"kernel", "message", "management", "wire", "store", "ha"},
    "node": {"kernel", "message", "management", "store", "wire", "cluster", "ha"},
    "files": {"message.encoding", "wire"},
    "config": {
        "files", "message", "kernel", "store", "ha", "wire", "cluster", "node", "runtime.network_check",
        "tls.password_codec",
    },
    "tls": {"files", "wire.tls_config"},
    "runtime": {"files", "ha", "message", "kernel", "store", "wire", "cluster", "node", "tls"},
    "sim": {"message", "kernel", "management", "store", "ha", "wire", "cluster", "node"},
    "client": {"files", "message", "wire", "tls"},
    "survey": {
        "client", "message.encoding", "wire.loopback", "wire.uri", "kernel.security", "ha", "store.tail_cut",
        "runtime.disk", "runtime.ha",
    },
    "spark": {"client", "message.dataclass", "message.encoding"},
    "web": {"management", "runtime.net.connections_by_host"},
    "console": {"client", "message", "survey", "web.connections", "wire.loopback", "wire.uri"},
}  # fmt: skip

# What a package may import under TYPE_CHECKING besides: a message knows who keeps it by type only.
MAY_IMPORT_TYPES = {"message": {"kernel"}}

# The composition root and the commands see everything; so do the package's entry points.
UNRESTRICTED = {"app", "cli", "__main__", ""}

IMPURE_MODULES = {
    "asyncio", "concurrent", "glob", "io", "logging", "multiprocessing", "os", "pathlib", "queue",
    "random", "resource", "sched", "secrets", "select", "selectors", "shutil", "signal", "socket",
    "socketserver", "ssl", "subprocess", "tempfile", "threading", "time", "uuid",
}  # fmt: skip
# What a part may nevertheless use, with the reason in words.
IMPURE_ALLOWED = {
    # random.Random(seed) is the simulator's subject; module-level functions are refused below.
    "sim": {"random"},
    # lxml keeps names until the end of a thread; message/selector/xpath.py waits for one that parses strange names.
    "message": {"threading"},
}

THIRD_PARTIES: dict[str, set[str]] = {
    "mypy_extensions": PURE | {"client", "runtime"},
    "librt": PURE | {"client"},
    "h11": {"wire"},
    "google_crc32c": {"store", "kernel", "client"},
    "cryptography": {"tls"},
    "dns": {"runtime", "client"},
    "lxml": {"config", "files", "message"},
    "rich": {"cli", "sim"},
    "tomlkit": {"config"},
    "typer": {"cli"},
    "aiohttp": {"web", "console"},
    "jinja2": {"console"},
    "markupsafe": {"console"},
    "uvloop": {"runtime", "client"},
    "kazoo": {"runtime"},
    "ldap3": {"runtime"},
    "pyspark": {"spark", "cli"},
    "py4j": {"spark", "cli"},
    "prometheus_client": {"spark"},
    "pydantic": {"spark"},
    "pydantic_core": {"spark"},
    "yaml": {"spark"},
    "pandas": {"spark"},
    "pyarrow": {"spark"},
}

CLOCK_CALLS = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
}


def place(source: SourceFile, line: int) -> str:
    """file:line, as editors jump to."""
    return f"{source.name}:{line}"


def allowed(source: SourceFile, imported: str) -> bool:
    """Whether the table lets `source` import the name `imported` (without "atalanta.")."""
    if imported.split(".", 1)[0] in {source.part, "__version__", "face"}:
        return True
    names = MAY_IMPORT[source.part]
    return any(imported == name or imported.startswith(f"{name}.") for name in names)


def test_layers() -> None:
    wrong = []
    for source in product():
        if source.part in UNRESTRICTED:
            continue
        assert source.part in MAY_IMPORT, f"{source.name}: name its part in MAY_IMPORT"
        for line, name in imports(source):
            imported = name.removeprefix("atalanta.")
            if imported == name or allowed(source, imported):
                continue
            types = MAY_IMPORT_TYPES.get(source.part, set())
            if imported.split(".", 1)[0] not in types or (line, name) in run_time_imports(source):
                wrong.append(f"{place(source, line)}: {source.part} may not import {name}")
    assert not wrong, "\n".join(wrong)


def run_time_imports(source: SourceFile) -> list[tuple[int, str]]:
    """The imports of a file (line, dotted name) without those under `if TYPE_CHECKING`."""
    hidden = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            hidden |= {inner.lineno for inner in ast.walk(node) if isinstance(inner, ast.stmt)}
    return [(line, name) for line, name in imports(source) if line not in hidden]


def test_folders_import_downwards_only() -> None:
    floor_of = {folder: floor for floor, folders in enumerate(FLOORS) for folder in folders}
    folder_of = {source.module: source.folder for source in product()}
    pure = {folder.split("/")[0] for folder in floor_of}
    wrong = []
    for source in product():
        if source.part not in pure:
            continue
        assert source.folder in floor_of, f"{source.name}: give its folder a floor in FLOORS"
        for line, name in run_time_imports(source):
            imported = name.removeprefix("atalanta.")
            folder = folder_of.get(imported) or folder_of.get(imported.rpartition(".")[0], "")
            if imported == name or folder not in floor_of or folder == source.folder:
                continue
            if floor_of[folder] >= floor_of[source.folder]:
                wrong.append(f"{place(source, line)}: {source.folder} is not above {folder}")
    assert not wrong, "\n".join(wrong)


def test_every_floor_is_there() -> None:
    folders = {source.folder for source in product()}
    gone = [folder for floor in FLOORS for folder in floor if folder not in folders]
    assert not gone, f"FLOORS names folders that do not exist: {gone}"


def test_only_app_and_cli_import_config() -> None:
    wrong = [
        f"{place(source, line)}: only app and cli import config"
        for source in product()
        if source.part not in {"app", "cli", "config"}
        for line, name in imports(source)
        if name.startswith("atalanta.config.")
    ]
    assert not wrong, "\n".join(wrong)


def test_pure_parts_see_no_world() -> None:
    wrong = []
    for source in product():
        if source.part not in PURE or source.module in PROGRAMS:
            continue
        forbidden = IMPURE_MODULES - IMPURE_ALLOWED.get(source.part, set())
        for line, name in imports(source):
            if name.split(".", 1)[0] in forbidden:
                wrong.append(f"{place(source, line)}: {name} in pure code")
    assert not wrong, "\n".join(wrong)


def test_pure_parts_read_no_clock_and_no_shared_randomness() -> None:
    wrong = []
    for source in product():
        if source.part not in PURE or source.module in PROGRAMS:
            continue
        for node in ast.walk(source.tree):
            if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
                continue
            owner, name = node.value.id, node.attr
            if (owner, name) in CLOCK_CALLS:
                wrong.append(f"{place(source, node.lineno)}: {owner}.{name} is a clock")
            if owner == "random" and name != "Random":
                wrong.append(f"{place(source, node.lineno)}: random.{name} has no seed of ours")
        for line, name in imports(source):
            if name.startswith("random.") and name != "random.Random":
                wrong.append(f"{place(source, line)}: {name} has no seed of ours")
    assert not wrong, "\n".join(wrong)


def test_third_parties_stay_where_they_belong() -> None:
    wrong = []
    for source in product():
        for line, name in imports(source):
            top = name.split(".", 1)[0]
            if top in sys.stdlib_module_names or top == "atalanta":
                continue
            if top not in THIRD_PARTIES:
                wrong.append(f"{place(source, line)}: {top} is not a declared dependency")
            elif source.part not in THIRD_PARTIES[top]:
                wrong.append(f"{place(source, line)}: {top} does not belong in {source.part}")
    assert not wrong, "\n".join(wrong)
