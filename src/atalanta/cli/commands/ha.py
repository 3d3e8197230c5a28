"""`atalanta ha`: pairs with a shared store. The work is in cli/ha/."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atalanta.cli.options import Json

STATUSES = (
    "Exit status: 0 done; 65 the folder is not one of a pair; 66 no such folder; 74 cannot be read; 75 the pair is in "
    "another state than the command needs, or did not answer in time."
)

application = typer.Typer(
    help="Show and change which process of a pair with a shared store serves.",
    no_args_is_help=True,
    epilog=STATUSES,
)

Place = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="a broker.xml of the pair, the folder of its instance, or the journal folder",
        show_default=False,
    ),
]
Wait = Annotated[float, typer.Option(min=0, help="seconds to wait for the answer", metavar="S")]


@application.command()
def status(place: Place, json_output: Json = False) -> None:
    """Which process serves, since when, and which ones wait.

    \b
    atalanta ha status broker
    """
    from atalanta.cli.ha.store import run_status

    run_status(place, json_output)


@application.command()
def handover(place: Place, wait: Wait = 30.0) -> None:
    """Let the active process stop, and a waiting one serve.

    \b
    atalanta ha handover broker
    """
    from atalanta.cli.ha.store import run_handover

    run_handover(place, wait)


@application.command()
def promote(place: Place, wait: Wait = 30.0) -> None:
    """Let a backup serve though the primary was stopped without a failover.

    \b
    atalanta ha promote broker
    """
    from atalanta.cli.ha.store import run_promote

    run_promote(place, wait)
