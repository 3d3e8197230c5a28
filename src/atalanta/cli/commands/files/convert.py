"""`atalanta convert`: WildFly's standalone.xml as broker.xml."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

File = Annotated[Path, typer.Argument(metavar="FILE", help="a standalone.xml; - is stdin", show_default=False)]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="where to write it [default: the terminal]")
]
Force = Annotated[bool, typer.Option("--force", help="overwrite OUTPUT")]


def convert(file: File, output: Output = None, force: Force = False) -> None:
    """Write a WildFly standalone.xml as broker.xml; name what is left out."""
    from atalanta.cli.output.outcome import CANNOT_WRITE, status_of_files
    from atalanta.config.problems import ConfigError
    from atalanta.config.wildfly.convert import convert_file
    from atalanta.runtime.process.exit_codes import BAD_CONFIGURATION

    if output is not None and output.exists() and not force:
        typer.echo(f"{output} exists; --force overwrites it", err=True)
        raise typer.Exit(CANNOT_WRITE)
    try:
        converted = convert_file(file, dict(os.environ), from_command_line=True)
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        raise typer.Exit(status_of_files([file], BAD_CONFIGURATION)) from error
    if output is None:
        typer.echo(converted.text, nl=False)
        for name in converted.stacks:
            typer.echo(f"the file names the JGroups stack {name}: --output writes it, too", err=True)
    else:
        output.write_text(converted.text, encoding="utf-8")
        typer.echo(f"{output}: a broker.xml", err=True)
        for name, text in converted.stacks.items():
            beside = output.with_name(name)
            if beside.exists() and not force:
                typer.echo(f"{beside} exists, and is left as it is; --force overwrites it", err=True)
                continue
            beside.write_text(text, encoding="utf-8")
            typer.echo(f"{beside}: the JGroups stack that it names", err=True)
    for line in converted.left_out:
        typer.echo(f"left out: {line}", err=True)
