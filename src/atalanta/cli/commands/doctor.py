"""`atalanta doctor`: its arguments. The work is in cli/cluster/diagnose.py, by management messages to any CORE
broker."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from atalanta.cli.options import Json, Password, User

STATUSES: Final = (
    "Exit status: 0 nothing but notes; 1 something is wrong; 2 wrong arguments; 69 no node can be reached; "
    "75 no answer in time; 77 wrong user or password, or not allowed to manage; 130 interrupted."
)
Nodes = Annotated[
    list[str],
    typer.Argument(
        metavar="NODE…",
        help="host, host:port or a URL of one node; the others are discovered. Or the folder of a member of a "
        "replicated group, on this host",
        show_default=False,
    ),
]
Wait = Annotated[
    float, typer.Option(min=0, help="seconds between the two samples; 0: one sample", metavar="S")
]


def doctor(
    nodes: Nodes,
    user: User = None,
    password: Password = None,
    wait: Wait = 3.0,
    json_output: Json = False,
) -> None:
    """Find what is wrong in a running cluster, and the line that mends it.

    \b
    atalanta doctor localhost:61616
    atalanta doctor broker1 broker2 --user admin --json
    atalanta doctor /var/lib/broker
    """
    from atalanta.cli.cluster.diagnose import run_doctor

    run_doctor(nodes, user, password, wait, json_output)
