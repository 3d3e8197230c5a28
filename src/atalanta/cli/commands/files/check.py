"""`atalanta check`: broker.xml files, one by one and together."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE…", help="broker.xml or activemq.xml files, or folders with etc/broker.xml; - is stdin"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="for programs")]
Alone = Annotated[bool, typer.Option("--alone", help="as of `run`: an activemq.xml that says so has no others")]
Strict = Annotated[bool, typer.Option("--strict", help="warnings count as errors")]


def check(files: Files, json_output: Json = False, strict: Strict = False, alone: Alone = False) -> None:
    """Check one or several broker.xml; several are checked as nodes of one cluster, too."""
    # Imported here: `atalanta version` must work even if a module of the broker cannot be imported.
    from atalanta.cli.instance.check import check_files, show
    from atalanta.cli.output.outcome import status_of_files
    from atalanta.config.checks.findings import ERROR, WARNING

    paths = [path / "etc" / "broker.xml" if path.is_dir() else path for path in files]
    found = check_files(paths, alone)
    if json_output:
        typer.echo(json.dumps({"files": len(paths), "findings": [asdict(each) for each in found]}))
    else:
        show(found, len(paths))
    bad = (ERROR, WARNING) if strict else (ERROR,)
    if any(each.level in bad for each in found):
        raise typer.Exit(status_of_files(paths))
