"""`atalanta topology`: its arguments. The work is in cli/cluster/topology.py and cli/cluster/svg.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atalanta.cli.commands.doctor import Nodes
from atalanta.cli.options import Json, Password, User

Wait = Annotated[
    float,
    typer.Option(min=0, help="seconds over which the flow is measured; 0: no flow", metavar="S"),
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="repeat until Ctrl-C")]
Svg = Annotated[Path | None, typer.Option(help="also write the picture to this file", metavar="FILE")]


def topology(
    nodes: Nodes,
    user: User = None,
    password: Password = None,
    wait: Wait = 2.0,
    watch: Watch = False,
    svg: Svg = None,
    json_output: Json = False,
) -> None:
    """Draw a running cluster: its nodes, what waits where, what flows between them.

    \b
    atalanta topology localhost:61616
    atalanta topology broker1 --watch
    atalanta topology broker1 --svg cluster.svg --json
    """
    from atalanta.cli.cluster.topology import run_topology

    run_topology(nodes, user, password, wait, watch, svg, json_output)
