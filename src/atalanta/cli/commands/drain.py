"""`atalanta drain`: its arguments. The work is in cli/cluster/drain.py."""

from __future__ import annotations

from typing import Annotated

import typer

from atalanta.cli.options import Json, Password, Quiet, User

Node = Annotated[
    str,
    typer.Argument(
        help="the node to stop, as host:port or a URL", metavar="NODE", show_default=False
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to",
        help="the node that gets the messages: a connector in the node's broker.xml; also host:port for a real Artemis",
        metavar="TARGET",
    ),
]


def drain(
    node: Node,
    to: To = None,
    user: User = None,
    password: Password = None,
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Let a node give all its messages to another member of its cluster, and end.

    Its clients go there too. Without --to it takes the target that <scale-down> of its broker.xml names, else any
    member. The user needs the permission `manage`.

    \b
    atalanta drain broker2:61616 --user admin
    atalanta drain broker2:61616 --to broker1-connector --json
    atalanta drain artemis2:61616 --to broker1:61616

    A real Artemis is asked by its management. First the queues that it has are made at the target. Senders have to
    pause until its log says AMQ221002: it reports no progress, and its JVM stays.

    Exit status 3: the node ended (or could not leave) with messages left; they are still in its journal.
    """
    from atalanta.cli.cluster.drain import run_drain

    run_drain(node, to, user, password, json_output, quiet)
