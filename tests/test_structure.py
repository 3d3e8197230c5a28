"""The structure check finds planted faults (tools/structure); `make check` runs it on this tree."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.source_tree import ROOT
from tools.structure.__main__ import main
from tools.structure.tree import read, verb_names

LIMITS = ROOT / "tools" / "structure_limits.toml"

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


def limits_of(folder: Path) -> Path:
    """Today's figures of that checkout, recorded as its limits."""
    path = folder / "limits.toml"
    assert main(["--root", str(folder), "--write", str(path)]) == 0
    return path


def findings(
    folder: Path, limits: Path, capsys: pytest.CaptureFixture[str], status: int = 1
) -> list[str]:
    """The lines that the check prints; it ends with that exit status."""
    capsys.readouterr()
    assert main(["--root", str(folder), "--check", str(limits)]) == status
    return capsys.readouterr().out.splitlines()


def test_a_clean_tree_passes_its_own_limits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = checkout(tmp_path, {"__init__.py": "", "kernel/queue/queue.py": MODEL})
    findings(folder, limits_of(folder), capsys, status=0)


@pytest.mark.parametrize(
    ("files", "finding"),
    [
        ({f"kernel/a{n}.py": "" for n in range(16)}, "entries kernel: 17, at most 15"),
        ({"kernel/long.py": "x = 1\n" * 801}, "lines_of_the_longest_file: 801, at most 800: kernel/long.py:801"),
        ({"kernel/deep/er/holding.py": ""}, "names holding: 1, at most 0: kernel/deep/er/holding.py"),
        (
            {
                "kernel/a.py": "from atalanta.kernel import b\n",
                "kernel/b.py": "from atalanta.kernel.a import x\n",
            },
            "import_circles_at_run_time: 1, at most 0: kernel.a kernel.b",
        ),
        (
            {
                "kernel/a.py": "from atalanta.kernel.deep.b import B\n",
                "kernel/deep/b.py": (
                    "from typing import TYPE_CHECKING\n"
                    "if TYPE_CHECKING:\n    from ..a import A\n"
                ),
            },
            "circle_modules_max: 2, at most 0: kernel.a kernel.deep.b",
        ),
        (
            {"kernel/a.py": "def f(self, x):\n    return x.one.two.three.four\n"},
            "attribute_chains_of_4_links: 1, at most 0",
        ),
        (
            {"kernel/a.py": "def f(broker: 'Broker | None') -> None: ...\n"},
            "functions_with_argument_of_type_Broker: 1, at most 0",
        ),
    ],
)  # fmt: skip
def test_a_planted_fault_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], files: dict[str, str], finding: str
) -> None:
    folder = checkout(tmp_path, {"__init__.py": "", "kernel/queue/queue.py": MODEL})
    limits = limits_of(folder)
    checkout(folder, files)
    assert finding in "\n".join(findings(folder, limits, capsys))


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
    limits = limits_of(folder)
    text = f"from atalanta.kernel.queue.queue import Queue\n{code}"
    checkout(folder, {"cluster/links/link.py": text, "kernel/queue/delivery/turn.py": text})
    line = code[: code.index("paused" if "paused" in code else "added")].count("\n") + 2
    (found,) = [
        each for each in findings(folder, limits, capsys) if each.startswith("queue_assigned")
    ]
    assert found == (
        f"queue_assigned_outside_its_package: 1, at most 0: cluster/links/link.py:{line}"
    )


def test_names_that_are_nouns_of_the_field_pass(tmp_path: Path) -> None:
    folder = checkout(
        tmp_path, {"routing/paging.py": "", "a/message_grouping.py": "", "a/dialed.py": ""}
    )
    assert verb_names(read(folder / "src" / "atalanta")) == {"dialed": ["a/dialed.py"]}


def test_every_limit_is_recorded() -> None:
    recorded = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    assert recorded["totals"]["import_circles_at_run_time"] == 0
    assert {"one_node", "two_nodes"} <= recorded["trace"].keys()
