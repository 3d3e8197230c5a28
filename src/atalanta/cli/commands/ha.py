"""`atalanta ha`: pairs with a shared store, members of replicated groups, and voters of a register.

The work is in cli/cluster/shared_store.py, cli/cluster/replicated_group.py and app/witness.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atalanta.cli.options import Json

if TYPE_CHECKING:
    from atalanta.config.configuration import Configuration

STATUSES = (
    "Exit status: 0 done; 65 the folder is not one of a pair or a group; 66 no such folder; 74 cannot be read; 75 the "
    "pair is in another state than the command needs, or did not answer in time."
)

application = typer.Typer(
    help="Show and change which process of a pair, or of a replicated group, serves.",
    no_args_is_help=True,
    epilog=STATUSES,
)

Place = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="a broker.xml of the pair or group, the folder of its instance, or the journal folder of a shared store",
        show_default=False,
    ),
]
Wait = Annotated[float, typer.Option(min=0, help="seconds to wait for the answer", metavar="S")]


@application.command()
def status(place: Place, json_output: Json = False) -> None:
    """Show which process serves, in which epoch, and which ones wait.

    \b
    atalanta ha status broker
    """
    from atalanta.cli.cluster import replicated_group, shared_store

    group = _group_of(place)
    if group is None:
        shared_store.run_status(place, json_output)
    else:
        replicated_group.run_status(group, json_output)


@application.command()
def handover(place: Place, wait: Wait = 30.0) -> None:
    """Let the active process stop, and a waiting one serve.

    FOLDER is that of the active member in a replicated group.

    \b
    atalanta ha handover broker
    """
    from atalanta.cli.cluster import replicated_group, shared_store

    group = _group_of(place)
    if group is None:
        shared_store.run_handover(place, wait)
    else:
        replicated_group.run_handover(group, wait)


@application.command()
def demote(place: Place, wait: Wait = 30.0) -> None:
    """Let the process of FOLDER become passive: a waiting one serves.

    Nothing happens if it is passive already. It refuses if no other process could serve.

    \b
    atalanta ha demote broker
    """
    from atalanta.cli.cluster import replicated_group, shared_store

    group = _group_of(place)
    if group is None:
        shared_store.run_demote(place, wait)
    else:
        replicated_group.run_demote(group, wait)


@application.command()
def promote(
    place: Place,
    wait: Wait = 30.0,
    lossy: Annotated[
        bool, typer.Option("--lossy", help="at once, also a member of a replicated group that lacks confirmed messages")
    ] = False,
) -> None:
    """Let a backup serve though the primary was stopped without a failover.

    In a replicated group: let the member of FOLDER serve. The active member that it follows hands over to it, and
    nothing is lost; without one, it serves if it is in sync. With --lossy it serves at once, whatever it lacks: be sure
    that no other member serves.

    \b
    atalanta ha promote broker
    """
    from atalanta.cli.cluster import replicated_group, shared_store

    group = _group_of(place)
    if group is None:
        shared_store.run_promote(place, wait)
    else:
        replicated_group.run_promote(group, wait, lossy)


def _group_of(place: Path) -> Configuration | None:
    """Returns the configuration of a member of a replicated group, None for everything else."""
    from atalanta.cli.cluster.replicated_group import group_of
    from atalanta.cli.output.outcome import reported

    with reported():
        return group_of(place)


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
    from atalanta.cli.run import open_streams, print_ready
    from atalanta.runtime.process.logs import configure_logging

    open_streams()
    configure_logging(logging.INFO, False)
    try:
        password = "" if password_file is None else read_password(password_file)
        status = run_witness(listen, folder, new, copy_of or [], password, print_ready)
    except StartupError as error:
        for line in error.lines:
            typer.echo(line, err=True)
        status = error.status
    raise typer.Exit(status)


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
