"""`atalanta console`: its arguments. The work is in cli/console.py and the package `console`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Nodes = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NODE…]",
        help="host, host:port or a URL of a node; the others are found by their topology  [default: localhost:61616]",
        show_default=False,
    ),
]
Listen = Annotated[str, typer.Option(help="where browsers find it", metavar="HOST:PORT")]
Below = Annotated[
    str, typer.Option("--path", help="the path below which a reverse proxy serves it", metavar="/PATH")
]
Origins = Annotated[
    list[str] | None,
    typer.Option(
        "--origin",
        help="the address that browsers have for it behind a reverse proxy: https://ops.example.org. May be repeated",
        metavar="URL",
    ),
]
Certificate = Annotated[
    Path | None,
    typer.Option(help="TLS: the certificate, and those above it, in PEM form", metavar="FILE"),
]
Key = Annotated[Path | None, typer.Option(help="TLS: the certificate's key, in PEM form", metavar="FILE")]
Plain = Annotated[
    bool,
    typer.Option("--plain", help="no TLS though it listens on other addresses than those of this machine"),
]
ReadOnly = Annotated[bool, typer.Option("--read-only", help="nothing can be changed, whoever logs in")]


def console(
    nodes: Nodes = None,
    listen: Listen = "127.0.0.1:8161",
    path: Below = "",
    origin: Origins = None,
    tls_certificate: Certificate = None,
    tls_key: Key = None,
    plain: Plain = False,
    read_only: ReadOnly = False,
) -> None:
    """Serve pages of the whole cluster to browsers: nodes, queues, messages, clients.

    Users log in with their names and passwords of the brokers, and do what these let them do.

    \b
    atalanta console
    atalanta console broker1:61616 broker2:61616
    atalanta console --listen 0.0.0.0:8161 --tls-certificate console.pem --tls-key console.key
    """
    from atalanta.cli.console import run_console

    run_console(nodes or [], listen, path, origin or [], tls_certificate, tls_key, plain, read_only)
