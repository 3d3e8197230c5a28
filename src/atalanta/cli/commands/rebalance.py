"""`atalanta rebalance`: its arguments. The work is in cli/cluster/rebalance.py, by management messages to every
member."""

from __future__ import annotations

from typing import Annotated

import typer

from atalanta.cli.options import Json, Password, User

Node = Annotated[
    str,
    typer.Argument(help="a member of the cluster: host, host:port or a URL", metavar="[NODE]"),
]
DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="only show which clients would move where")]
Seconds = Annotated[
    int, typer.Option(min=1, help="longest time to wait for the end", metavar="SECONDS")
]


def rebalance(
    node: Node = "localhost:61616",
    dry_run: DryRun = False,
    seconds: Seconds = 60,
    user: User = None,
    password: Password = None,
    json_output: Json = False,
) -> None:
    """Spread the clients evenly over the members of a cluster, now.

    Nodes do so by themselves unless `rebalance = false` stands in their atalanta.toml; this does it at once and without
    a tolerance. Only clients that come to no harm are sent elsewhere; why others stay is shown. Members that are no
    Atalanta nodes take no part.

    \b
    atalanta rebalance node-a:61616 --dry-run
    """
    from atalanta.cli.cluster.rebalance import run_rebalance

    run_rebalance((node, user, password), dry_run, seconds, json_output)
