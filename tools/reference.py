"""Writes the generated pages of docs/reference: cli.md, exit-codes.md and activemq-xml.md (tools/classic_names.py).

    PYTHONPATH=src python -m tools.reference

cli.md lists every command with its arguments, options and examples, as `--help` shows them.
exit-codes.md lists the exit statuses with the comments beside their constants. config.md and
events.md have generators of their own (`atalanta.config.docs`, tools/events.py).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import typer

from atalanta.cli.application import application
from atalanta.cli.output import outcome
from atalanta.runtime.process import exit_codes
from tools.classic_names import classic_page

FOLDER: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"
CONSTANT: Final = re.compile(r"^([A-Z_]+): Final = (\d+)(?:  # (.*))?$", re.MULTILINE)
# What the statuses of runtime/process/exit_codes.py mean for the other commands.
COMMON: Final[dict[int, str]] = {
    exit_codes.STOPPED: "done",
    exit_codes.USAGE: "wrong arguments",
    exit_codes.MESSAGES_LEFT: "`drain`: messages are left",
    exit_codes.BAD_DATA: "damaged data",
    exit_codes.UNAVAILABLE: "no connection",
    exit_codes.DISK_FAILED: "a disk failed",
    exit_codes.FOLDER_TAKEN: "`data`: a node uses the folder",
    exit_codes.BAD_CONFIGURATION: "`convert`: errors in the file",
    exit_codes.INTERRUPTED: "Ctrl-C",
}
# Marks a paragraph that typer must not wrap: the examples.
VERBATIM: Final = "\b\n"

CLI_HEAD: Final = """# Commands

This page is generated from the commands (`tools/reference.py`). `atalanta COMMAND --help` shows the same.
[The command line](../guide/command-line.md) has examples with their output, and says how destinations and
properties are written. Exit statuses are in [exit-codes.md](exit-codes.md).
"""

EXIT_HEAD: Final = """# Exit statuses

This page is generated from the source (`tools/reference.py`). Numbers are those of sysexits.h where it has one.
"""


def cli_page() -> str:
    """Returns the text of docs/reference/cli.md."""
    root = typer.main.get_command(application)
    context = typer.Context(root, info_name="atalanta")
    parts = [CLI_HEAD]
    parts += [_command(each, command) for each, command in _commands(context, root)]
    return "\n".join(parts)


def _commands(context: typer.Context, group: Any) -> Iterator[tuple[typer.Context, Any]]:
    """Yields every command that can be run, with its context; those of a group follow each other."""
    for name, command in sorted(group.commands.items()):
        below = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "commands"):
            yield from _commands(below, command)
        else:
            yield below, command


def _command(context: typer.Context, command: Any) -> str:
    """Returns the section of one command: usage, description, examples, parameters."""
    usage = command.get_usage(context).removeprefix("Usage: ")
    text, _, examples = (command.help or "").partition(VERBATIM)
    lines = [f"## `{context.command_path}`", "", f"    {' '.join(usage.split())}", ""]
    lines += [" ".join(text.split()), ""]
    if examples:
        lines += [f"    {line}".rstrip() for line in examples.splitlines()] + [""]
    rows = [record for each in command.params if (record := each.get_help_record(context))]
    if rows:
        lines += ["| argument or option | meaning |", "|---|---|"]
        lines += [f"| `{_cell(name)}` | {_cell(meaning)} |" for name, meaning in rows] + [""]
    if command.epilog:
        lines += [command.epilog, ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Returns text for a table cell."""
    return " ".join(text.replace("|", "\\|").split())


def exit_page() -> str:
    """Returns the text of docs/reference/exit-codes.md."""
    of_run = _statuses(exit_codes)
    of_others = _statuses(outcome)
    for number, text in COMMON.items():
        of_others[number] = "; ".join(filter(None, (of_others.get(number), text)))
    rows = [
        f"| {number} | {of_run.get(number, '')} | {of_others.get(number, '')} |\n"
        for number in sorted({*of_run, *of_others})
    ]
    head = "| status | `atalanta run` | all other commands |\n|---|---|---|\n"
    return f"{EXIT_HEAD}\n{head}{''.join(rows)}"


def _statuses(module: ModuleType) -> dict[int, str]:
    """Returns the meanings of the constants of one module, by number."""
    return {
        int(number): text for _, number, text in CONSTANT.findall(inspect.getsource(module))
    }


PAGES: Final = {"cli.md": cli_page, "exit-codes.md": exit_page, "activemq-xml.md": classic_page}


if __name__ == "__main__":
    for name, text in PAGES.items():
        (FOLDER / name).write_text(text(), encoding="utf-8")
