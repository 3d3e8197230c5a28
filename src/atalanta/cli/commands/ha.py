"""`atalanta ha`: what a highly available group needs besides its nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

# The modules that do the work are imported in the functions: `atalanta version` must work without them.
application = typer.Typer(help="High availability: voters of the register.", no_args_is_help=True)


@application.command(
    epilog="Exit status: 0 stopped; 2 wrong arguments; 65 no folder of a voter, damaged, or in use; 69 the address "
    "cannot be bound; 74 the folder cannot be read or written."
)
def witness(
    listen: Annotated[
        str, typer.Option(help="where brokers reach it", metavar="HOST:PORT", show_default=False)
    ],
    folder: Annotated[
        Path,
        typer.Option(help="the voter's folder, on a disk that survives a restart", metavar="DIR", show_default=False),
    ],
    password_file: Annotated[
        Path | None,
        typer.Option(
            help="its first line is the password of the group; without it only a loopback address is listened at",
            metavar="FILE",
        ),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="make a new voter in an empty folder: the first start, and only that")
    ] = False,
    copy_of: Annotated[
        list[Path] | None,
        typer.Option(
            help="with --new, in the place of a lost voter: a copy of another voter's folder, made while all brokers "
            "of the group are stopped; once for each other voter",
            metavar="DIR",
        ),
    ] = None,
) -> None:
    """Run one voter of the manager `quorum` in the foreground, until SIGTERM or SIGINT.

    A majority of the voters keeps the register that says which node of a group is active. A voter needs little memory
    and no broker; one serves any number of groups. It prints `ready` when it listens.

    \b
    atalanta ha witness --listen 127.0.0.1:5790 --folder /var/lib/atalanta-voter --new
    atalanta ha witness --listen 0.0.0.0:5790 --folder /var/lib/atalanta-voter --password-file /etc/atalanta/voters
    """
    import logging

    from atalanta.app.startup_error import StartupError
    from atalanta.app.witness import run_witness
    from atalanta.runtime.process.logs import configure_logging

    configure_logging(logging.INFO, False)
    try:
        password = "" if password_file is None else read_password(password_file)
        status = run_witness(listen, folder, new, copy_of or [], password, print_ready)
    except StartupError as error:
        for line in error.lines:
            typer.echo(line, err=True)
        status = error.status
    raise typer.Exit(status)


def print_ready(words: list[str]) -> None:
    """Prints the only line on stdout."""
    print(" ".join(["ready", *words]), flush=True)


def read_password(path: Path) -> str:
    """Returns the first line of the file. StartupError if there is none."""
    from atalanta.app.startup_error import StartupError
    from atalanta.runtime.process import exit_codes

    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise StartupError(exit_codes.USAGE, [f"--password-file {path}: {error}"]) from error
    if not lines or not lines[0]:
        raise StartupError(exit_codes.USAGE, [f"--password-file {path}: its first line is empty"])
    return lines[0]
