"""`atalanta plan` and `atalanta rehearse`: the cluster that files would form, at rest and under load."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

Files = Annotated[
    list[Path],
    typer.Argument(metavar="FILE…", help="broker.xml or activemq.xml files, or folders with etc/broker.xml"),
]
Json = Annotated[bool, typer.Option("--json", help="for programs")]
Svg = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", help="also write the drawing to this file")
]
LOAD_HELP = (
    "messages from a node to consumers [default: 10/s for each configured queue, from the first node to the last]"
)
LoadTexts = Annotated[
    list[str] | None,
    typer.Option("--load", metavar="'QUEUE FROM->TO,TO [N/s]'", help=LOAD_HELP),
]  # fmt: skip
Kills = Annotated[list[str] | None, typer.Option("--kill", metavar="NODE@SECONDS", help="as kill -9")]
Stops = Annotated[list[str] | None, typer.Option("--stop", metavar="NODE@SECONDS", help="as SIGTERM")]
Starts = Annotated[list[str] | None, typer.Option("--start", metavar="NODE@SECONDS", help="again")]
Joins = Annotated[list[str] | None, typer.Option("--join", metavar="FILE@SECONDS", help="a further node")]
Cuts = Annotated[
    list[str] | None, typer.Option("--cut", metavar="NODE/NODE@SECONDS", help="no data passes between the two")
]
Heals = Annotated[list[str] | None, typer.Option("--heal", metavar="SECONDS", help="ends all cuts")]
Seconds = Annotated[float, typer.Option(min=1, max=36_000, help="virtual seconds under load")]
Seed = Annotated[int, typer.Option(help="seed of the latencies and the order of events")]


def plan(files: Files, json_output: Json = False, svg: Svg = None) -> None:
    """Draw the cluster these files would form: who finds whom and how, what reaches what, what is one-way or
    unreachable, which node the others cannot do without. The nodes run for half a virtual minute; nothing is opened."""
    from atalanta.cli.output import FAILED, status_of_files
    from atalanta.cli.plan.file_nodes import broker_file
    from atalanta.cli.plan.plan import as_json, find, make_plan, show
    from atalanta.config import ConfigError
    from atalanta.config.checks import ERROR

    try:
        made, pairs = make_plan(files)
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        raise typer.Exit(status_of_files([broker_file(path) for path in files])) from error
    found = find(files, made)
    if svg is not None:
        from atalanta.cli.plan.svg import svg_of

        svg.write_text(svg_of(made, pairs.backings()), encoding="utf-8")
    if json_output:
        typer.echo(json.dumps(as_json(made, pairs, found)))
    else:
        show(made, pairs, found)
        if svg is not None:
            typer.echo(f"drawn into {svg}", err=True)
    if any(each.level == ERROR for each in found):
        raise typer.Exit(FAILED)


def rehearse(
    files: Files,
    load: LoadTexts = None,
    kill: Kills = None,
    stop: Stops = None,
    start: Starts = None,
    join: Joins = None,
    cut: Cuts = None,
    heal: Heals = None,
    seconds: Seconds = 120.0,
    seed: Seed = 1,
    json_output: Json = False,
) -> None:
    """Run exactly these files in the simulator and report who got what, and what got stuck where, for how long.

    NODE is the short name that `atalanta plan` shows. Nothing is opened or written; a minute takes about a second.
    """
    from atalanta.cli.output import FAILED, USAGE, status_of_files
    from atalanta.cli.plan.file_nodes import broker_file
    from atalanta.cli.plan.rehearse import (
        BadOption,
        as_json,
        events_of,
        group_events,
        rehearsed_files,
        run,
        show,
    )
    from atalanta.config import ConfigError

    texts = {"kill": kill, "stop": stop, "start": start, "join": join, "cut": cut, "heal": heal}
    try:
        taking_part, notes = rehearsed_files(files)
        events = events_of({what: each or [] for what, each in texts.items()}, taking_part)
        if not events:
            events = [each for each in group_events(taking_part) if each.at_s <= seconds]
        report = run(taking_part, load or [], events, seconds, seed)
    except BadOption as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(USAGE) from error
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        raise typer.Exit(status_of_files([broker_file(path) for path in files])) from error
    if json_output:
        typer.echo(json.dumps(as_json(report, notes)))
    else:
        show(report, notes)
    if any(report.lost(tally) for tally in report.tallies) or report.ended:
        raise typer.Exit(FAILED)
