"""The structure check finds planted faults, and says what has changed (tools/structure); `make check` runs it here."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.source_tree import ROOT
from tools.structure.__main__ import main
from tools.structure.tree import read, verb_names

RECORDED = ROOT / "tools" / "structure_figures.toml"

MODEL = """
from __future__ import annotations

class Queue:
    def __init__(self, name: str) -> None:
        self.name = name
        self.paused: bool = False
        self.added = 0

    def pause(self) -> None:
        self.paused = True

    def size(self) -> int:
        return 1

    def merge(self, other: Queue) -> None:
        other.added += 1
"""


def checkout(folder: Path, files: dict[str, str]) -> Path:
    """A checkout with these files below src/atalanta."""
    for name, text in files.items():
        path = folder / "src" / "atalanta" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def recorded_of(folder: Path) -> Path:
    """Today's figures of that checkout."""
    path = folder / "figures.toml"
    assert main(["--root", str(folder), "--write", str(path)]) == 0
    return path


def lines_of(folder: Path, recorded: Path, capsys: pytest.CaptureFixture[str], status: int = 0) -> list[str]:
    """The lines that the check prints, but the last one; it ends with that exit status."""
    capsys.readouterr()
    assert main(["--root", str(folder), "--check", str(recorded)]) == status
    return capsys.readouterr().out.splitlines()[:-1]


def test_a_clean_tree_prints_no_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = checkout(tmp_path, {"__init__.py": "", "kernel/queue/queue.py": MODEL})
    assert lines_of(folder, recorded_of(folder), capsys) == []


FAULTS: list[tuple[dict[str, str], str]] = [
    ({"kernel/long.py": "x = 1\n" * 801}, "lines_of_the_longest_file: 801, at most 800: kernel/long.py:801"),
    (
        {"kernel/long.py": "x = 1\n\ndef f():\n" + "    g()\n" * 70},
        "lines_of_the_longest_function: 71, at most 70: kernel/long.py:3:f",
    ),
    (
        {"kernel/a.py": "from atalanta.kernel import b\n", "kernel/b.py": "from atalanta.kernel.a import x\n"},
        "import_circles_at_run_time: 1, at most 0: kernel.a kernel.b",
    ),
]
TYPES_ONLY = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..a import A\n"
CHANGES: list[tuple[dict[str, str], str]] = [
    ({f"kernel/a{n}.py": "" for n in range(16)}, "changed: entries kernel: 15 -> 17"),
    ({"kernel/deep/er/holding.py": ""}, "changed: names holding: 0 -> 1: kernel/deep/er/holding.py"),
    (
        {"kernel/a.py": "from atalanta.kernel.deep.b import B\n", "kernel/deep/b.py": TYPES_ONLY},
        "changed: circle_modules_max: 0 -> 2: kernel.a kernel.deep.b",
    ),
    (
        {"kernel/a.py": "def f(self, x):\n    return x.one.two.three.four\n"},
        "changed: attribute_chains_of_4_links: 0 -> 1",
    ),
    (
        {"kernel/a.py": "def f(broker: 'Broker | None') -> None: ...\n"},
        "changed: functions_with_argument_of_type_Broker: 0 -> 1",
    ),
]


@pytest.mark.parametrize(("files", "line"), FAULTS)
def test_a_planted_fault_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], line: str
) -> None:
    folder = checkout(tmp_path, {"__init__.py": "", "kernel/queue/queue.py": MODEL})
    recorded = recorded_of(folder)
    checkout(folder, files)
    assert lines_of(folder, recorded, capsys, status=1)[0] == line


@pytest.mark.parametrize(("files", "line"), CHANGES)
def test_another_figure_is_a_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], line: str
) -> None:
    folder = checkout(tmp_path, {"__init__.py": "", "kernel/queue/queue.py": MODEL})
    recorded = recorded_of(folder)
    checkout(folder, files)
    assert line in lines_of(folder, recorded, capsys)


def test_what_became_less_is_told_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = checkout(tmp_path, {f"kernel/a{n}.py": "" for n in range(16)})
    recorded = recorded_of(folder)
    (folder / "src" / "atalanta" / "kernel" / "a3.py").unlink()
    assert "changed: entries kernel: 16 -> 15" in lines_of(folder, recorded, capsys)


@pytest.mark.parametrize(
    "code",
    [
        "def f(other: Queue) -> None:\n    other.paused = True\n",
        "def f(others: list[Queue] | None) -> None:\n    for each in others:\n        each.added += 1\n",
        "def f(others: dict[str, Queue]) -> None:\n    others['a'].paused = True\n",
        "def f() -> None:\n    made = Queue('a')\n    made.paused, x = True, 1\n",
        "def g() -> Queue: ...\ndef f() -> None:\n    g().paused = True\n",
        "class Box:\n    def __init__(self, inner: Queue) -> None:\n        self.inner = inner\n"
        "    def f(self) -> None:\n        self.inner.paused = True\n",
        "def f(queue) -> None:\n    queue.paused = True\n",  # by the variable's name
    ],
)
def test_an_assignment_to_a_queue_from_another_package_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    folder = checkout(tmp_path, {"kernel/queue/queue.py": MODEL})
    recorded = recorded_of(folder)
    text = f"from atalanta.kernel.queue.queue import Queue\n{code}"
    checkout(folder, {"cluster/links/link.py": text, "kernel/queue/delivery/turn.py": text})
    line = code[: code.index("paused" if "paused" in code else "added")].count("\n") + 2
    (found,) = [each for each in lines_of(folder, recorded, capsys) if "queue_assigned" in each]
    assert found == f"changed: queue_assigned_outside_its_package: 0 -> 1: cluster/links/link.py:{line}"


def test_names_that_are_nouns_of_the_field_pass(tmp_path: Path) -> None:
    folder = checkout(
        tmp_path, {"routing/paging.py": "", "a/message_grouping.py": "", "a/dialed.py": ""}
    )
    assert verb_names(read(folder / "src" / "atalanta")) == {"dialed": ["a/dialed.py"]}


def test_the_figures_of_this_tree_are_recorded() -> None:
    recorded = tomllib.loads(RECORDED.read_text(encoding="utf-8"))
    assert recorded["totals"]["import_circles_at_run_time"] == 0
    assert {"one_node", "two_nodes"} <= recorded["trace"].keys()
