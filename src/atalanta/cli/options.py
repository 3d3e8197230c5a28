"""The options that the client commands share. Imports no client module: `atalanta version` must not need it."""

from __future__ import annotations

from typing import Annotated, Final

import typer

DEFAULT_URL: Final = "tcp://localhost:61616"

# The exit statuses of cli/output/outcome.py, for the end of every command's help.
STATUSES: Final = (
    "Exit status: 0 done; 1 the broker refused, or fewer messages came than --count; 2 wrong arguments; "
    "66 no such queue, address or file; 69 no connection; 75 no answer in time; 77 wrong user or password, "
    "or not allowed; 130 interrupted."
)

Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="ATALANTA_URL",
        help="URL of one or more brokers, in Artemis' form",
        metavar="URL",
    ),
]
User = Annotated[
    str | None, typer.Option("--user", envvar="ATALANTA_USER", help="user name", metavar="NAME")
]
Password = Annotated[
    str | None,
    typer.Option(
        "--password",
        envvar="ATALANTA_PASSWORD",
        show_envvar=True,
        help="other users can see the command line: better set the variable; asked for on a terminal",
        metavar="TEXT",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="for programs")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="do not ask; needed without a terminal")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress bar, no summary")]
Selector = Annotated[
    str | None,
    typer.Option(help='only messages that match this JMS selector: "price > 5"', metavar="SQL"),
]
DestinationName = Annotated[
    str,
    typer.Argument(
        metavar="DESTINATION",
        help="queue://name, topic://name, fqqn://address::queue, or a plain name",
        show_default=False,
    ),
]
