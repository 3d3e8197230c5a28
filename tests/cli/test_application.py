"""The command as a whole: its help, its version, completion, and its exit statuses against their page."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from atalanta import __version__
from atalanta.cli.application import application
from atalanta.cli.output import outcome
from atalanta.runtime.process import exit_codes
from tests.source_tree import ROOT, SOURCE

PAGE = ROOT / "docs" / "reference" / "exit-codes.md"
ROW = re.compile(r"^\| (\d+) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)


def test_the_version_is_an_option_too() -> None:
    done = CliRunner().invoke(application, ["--version"])
    assert done.exit_code == 0 and done.output == CliRunner().invoke(application, ["version"]).output
    assert __version__ in done.output


def test_help_has_panels() -> None:
    shown = CliRunner().invoke(application, ["--help"]).output
    order = ["A node and its files", "rehearse", "Messages and queues", "browse", "A running cluster"]
    places = [shown.index(words) for words in order]
    assert places == sorted(places)
    assert not re.search(r"─ Commands ─", shown)


def test_a_shell_completes_commands() -> None:
    environment = {
        **os.environ,
        "_ATALANTA_COMPLETE": "complete_bash",
        "COMP_WORDS": "atalanta re",
        "COMP_CWORD": "1",
    }
    code = "import sys; sys.argv = ['atalanta']; from atalanta.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["rehearse", "rebalance"], done.stderr


@pytest.mark.parametrize(
    "command", ["check", "plan", "rehearse", "convert", "data show", "data verify", "user list --etc"]
)
def test_a_file_that_does_not_exist_is_66(command: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(application, [*command.split(), str(tmp_path / "none.xml")])
    assert done.exit_code == 66 and "none.xml" in done.output and "Traceback" not in done.output


def statuses(column: int) -> set[int]:
    """The statuses that the page has a meaning for: column 2 is `atalanta run`, 3 the other commands."""
    found = ROW.finditer(PAGE.read_text(encoding="utf-8"))
    return {int(row[1]) for row in found if row[column].strip()}


def test_every_exit_status_is_a_name_in_the_one_table() -> None:
    """No command ends with a bare number, and each name that a command uses has its row."""
    names = {**vars(exit_codes), **vars(outcome)}
    used: dict[str, set[int]] = {}
    for path in sorted((SOURCE / "cli").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and called == "typer.Exit":
                assert not any(isinstance(each, ast.Constant) for each in node.args), path
            if isinstance(node, ast.Name) and isinstance(names.get(node.id), int) and node.id.isupper():
                used.setdefault(path.name, set()).add(names[node.id])
    assert set().union(*used.values()) <= statuses(3)
    numbers = {value for name, value in vars(exit_codes).items() if name.isupper()}
    assert numbers == statuses(2)


def test_the_end_of_each_help_names_statuses_of_the_table() -> None:
    root = typer.main.get_command(application)
    ends = [command.epilog for command in root.commands.values() if command.epilog]  # type: ignore[attr-defined]
    assert ends
    for end in ends:
        assert {int(number) for number in re.findall(r"\b(\d+) ", end)} <= statuses(3)
