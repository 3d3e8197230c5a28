"""`atalanta address`: addresses of a broker, by management messages."""

from __future__ import annotations

from typing import Annotated

import typer

from atalanta.cli.options import DEFAULT_URL, STATUSES, Json, Password, Url, User, Yes

application = typer.Typer(
    help="Addresses of a broker: show, create, delete.", no_args_is_help=True, epilog=STATUSES
)

Name = Annotated[str, typer.Argument(help="the address", show_default=False)]
Part = Annotated[
    str | None, typer.Argument(help="only addresses with this in their name", show_default=False)
]
Anycast = Annotated[bool, typer.Option("--anycast", help="each message to one of its queues")]
Multicast = Annotated[bool, typer.Option("--multicast", help="each message to all its queues")]
Force = Annotated[bool, typer.Option("--force", help="with its queues and their messages")]


@application.command()
def show(
    part: Part = None,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
    json_output: Json = False,
) -> None:
    """All addresses, with their routing types and queues."""
    from atalanta.cli.admin.addresses import run_show

    run_show((url, user, password), part, json_output)


@application.command()
def create(
    name: Name,
    anycast: Anycast = False,
    multicast: Multicast = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
) -> None:
    """Create an address; multicast if nothing else is said.

    \b
    atalanta address create news --multicast
    """
    from atalanta.cli.admin.addresses import run_create

    types = [name for name, wanted in (("ANYCAST", anycast), ("MULTICAST", multicast)) if wanted]
    run_create((url, user, password), name, types or ["MULTICAST"])


@application.command()
def delete(
    name: Name,
    force: Force = False,
    yes: Yes = False,
    url: Url = DEFAULT_URL,
    user: User = None,
    password: Password = None,
) -> None:
    """Delete an address; refused while it has queues, unless forced."""
    from atalanta.cli.admin.addresses import run_delete

    run_delete((url, user, password), name, force, yes)
