"""`atalanta plan`: the cluster that files would form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE…", help="broker.xml files, or folders with etc/broker.xml"),
]
Json = Annotated[bool, typer.Option("--json", help="for programs")]
Svg = Annotated[Path | None, typer.Option("--svg", metavar="FILE", help="also write the drawing to this file")]


def plan(files: Files, json_output: Json = False, svg: Svg = None) -> None:
    """Draw the cluster these files would form: who finds whom and how, what reaches what, what is one-way or
    unreachable, which node the others cannot do without. The nodes run for half a virtual minute; nothing is opened."""
    from atalanta.cli.plan.plan import as_json, find, make_plan, show
    from atalanta.config.checks.findings import ERROR
    from atalanta.config.problems import ConfigError

    try:
        made = make_plan(files)
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        raise typer.Exit(1) from error
    found = find(files, made)
    if svg is not None:
        from atalanta.cli.plan.svg import svg_of

        svg.write_text(svg_of(made), encoding="utf-8")
    if json_output:
        typer.echo(json.dumps(as_json(made, found)))
    else:
        show(made, found)
        if svg is not None:
            typer.echo(f"drawn into {svg}", err=True)
    if any(each.level == ERROR for each in found):
        raise typer.Exit(1)
