"""`atalanta convert`: files of WildFly, of ActiveMQ Classic and of Artemis 1.x as broker.xml."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="standalone.xml, activemq.xml, or broker.xml of version 1; - is stdin", show_default=False
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="where to write it [default: the terminal]")
]
Force = Annotated[bool, typer.Option("--force", help="overwrite OUTPUT")]

Alone = Annotated[
    bool, typer.Option("--alone", help="also an activemq.xml that says in a way not known here that there are others")
]


def convert(file: File, output: Output = None, force: Force = False, alone: Alone = False) -> None:
    """Write a file of WildFly, of ActiveMQ Classic or of Artemis 1.x as broker.xml; name what is left out."""
    from atalanta.cli.output.outcome import CANNOT_WRITE, status_of_files
    from atalanta.config.problems import ConfigError
    from atalanta.config.xml.convert import convert_file
    from atalanta.runtime.process.exit_codes import BAD_CONFIGURATION

    if output is not None and output.exists() and not force:
        typer.echo(f"{output} exists; --force overwrites it", err=True)
        raise typer.Exit(CANNOT_WRITE)
    try:
        converted = convert_file(file, dict(os.environ), from_command_line=True, alone=alone)
    except ConfigError as error:
        for problem in error.problems:
            typer.echo(str(problem), err=True)
        raise typer.Exit(status_of_files([file], BAD_CONFIGURATION)) from error
    if output is None:
        typer.echo(converted.text, nl=False)
        for each in converted.beside:
            typer.echo(f"{each.name} belongs beside it ({each.what}): --output writes it, too", err=True)
    else:
        write(output, converted.text, True)  # it has a generated password
        typer.echo(f"{output}: a broker.xml", err=True)
        for each in converted.beside:
            beside = output.with_name(each.name)
            if beside.exists() and not force:
                typer.echo(f"{beside} exists, and is left as it is; --force overwrites it", err=True)
                continue
            write(beside, each.text, each.private)
            typer.echo(f"{beside}: {each.what}", err=True)
    for line in converted.left_out:
        typer.echo(f"left out: {line}", err=True)


def write(path: Path, text: str, private: bool) -> None:
    """Writes a file; a private one holds passwords, and only its owner can read it."""
    from atalanta.cli.output.outcome import CANNOT_WRITE, ended

    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600 if private else 0o666)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise ended(f"{path} cannot be written: {error.strerror or error}", CANNOT_WRITE) from error
