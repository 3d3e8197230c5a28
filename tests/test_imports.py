"""Who may import whom (design §2): the layers, the modules pure code may not see, third parties."""

from __future__ import annotations

import ast
import sys

from tests.source_tree import SourceFile, imports, product

# No asyncio, socket, clock or randomness in these: time is an argument, the world is behind ports.
PURE = {"kernel", "wire", "store", "cluster", "ha", "sim", "node"}

# A module of the left part may import from the parts on the right (and its own).
MAY_IMPORT: dict[str, set[str]] = {
    "kernel": set(),
    "store": {"kernel"},
    "wire": {"kernel"},
    "cluster": {
        "kernel", "wire.base", "wire.core", "wire.http_upgrade", "wire.meeting", "wire.uri",
    },
    "ha": {"kernel", "store", "cluster"},
    "node": {"kernel", "store", "wire", "cluster", "ha"},
    "files": set(),
    "xml_root": set(),
    "jgroups": {"files", "kernel.digits", "wire", "xml_root"},
    "config": {
        "files", "jgroups", "kernel", "store", "wire", "cluster", "ha", "node", "runtime.config",
        "tls.masked", "xml_root",
    },
    "tls": {"files", "wire.tls"},
    "runtime": {"files", "kernel", "store", "wire", "cluster", "ha", "node", "tls"},
    "sim": {"kernel", "store", "wire", "cluster", "ha", "node"},
    "client": {"files", "kernel", "wire", "tls", "jgroups"},
    "spark": {"client", "kernel.digits"},
    "web": {"kernel.management"},
    "build": set(),
}
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
}
# Programs around pure code: they print, read arguments and measure wall time.
PROGRAMS = {"sim.__main__"}

THIRD_PARTIES: dict[str, set[str]] = {
    "mypy_extensions": PURE | {"client"},
    "librt": PURE | {"client"},
    "h11": {"wire"},
    "google_crc32c": {"store"},
    "cryptography": {"tls"},
    "dns": {"runtime", "client"},
    "lxml": {"config", "jgroups", "xml_root"},
    "rich": {"cli", "sim"},
    "typer": {"cli"},
    "aiohttp": {"web"},
    "uvloop": {"runtime", "client"},
    "pyspark": {"spark"},
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
    if imported.split(".", 1)[0] in {source.part, "__version__"}:
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
            if imported != name and not allowed(source, imported):
                wrong.append(f"{place(source, line)}: {source.part} may not import {name}")
    assert not wrong, "\n".join(wrong)


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
                wrong.append(f"{place(source, line)}: {top} is no declared dependency")
            elif source.part not in THIRD_PARTIES[top]:
                wrong.append(f"{place(source, line)}: {top} does not belong in {source.part}")
    assert not wrong, "\n".join(wrong)
