"""`atalanta user`: users and roles of one node, in Artemis' properties files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from atalanta.config.users.users_file import UserFiles, UserLine

# The modules that do the work are imported in the functions: `atalanta version` must work without them.
application = typer.Typer(
    help="Users and roles beside a broker.xml; a running node reads changes by itself.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="the user's name", show_default=False)]
Etc = Annotated[
    Path | None,
    typer.Option(
        "--etc", "--instance", help="the instance folder, or its etc  [default: .]", metavar="DIR"
    ),
]
Roles = Annotated[list[str] | None, typer.Option("--role", help="may be given several times")]
Password = Annotated[
    str | None, typer.Option(help="[default: asked for, or read from stdin]", metavar="TEXT")
]
Plain = Annotated[bool, typer.Option("--plain", help="write the password in plain text instead of its hash")]
MARKS = (b"<core", b"activemq")  # in a broker.xml of another name
CLASSIC = b"activemq.apache.org/schema/core"  # an activemq.xml has its own users, unless there is a login.config


def folder_of(etc: Path | None) -> Path:
    """Returns the folder of the broker.xml: the given one, or `etc` in it. Refused (66) if neither has one, because
    no broker would read users there."""
    from atalanta.cli.output.outcome import NOT_THERE, Refused

    given = Path(".") if etc is None else etc
    for folder in (given, given / "etc"):
        for path in sorted(folder.glob("*.xml")):
            text = path.read_bytes()
            if CLASSIC in text and not (folder / "login.config").exists():
                continue
            if path.name == "broker.xml" or any(mark in text for mark in MARKS):
                return path.resolve().parent  # a link's target, as `atalanta run`
    raise Refused(
        f"neither {given.resolve()} nor etc in it has a broker.xml: no broker would read users there; "
        "name the instance folder with --etc",
        NOT_THERE,
    )


def asked_password(password: str | None) -> str:
    """Returns the password from the option, the terminal (twice), or the first line of stdin."""
    from atalanta.cli.output.outcome import USAGE, Refused

    if password is None:
        if sys.stdin.isatty():
            password = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
        else:
            password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise Refused("an empty password is not allowed", USAGE)
    return password


def files(etc: Path | None) -> UserFiles:
    """Returns the two files of a node, with the names of its login.config."""
    from atalanta.config.users.users_file import open_user_files

    return open_user_files(folder_of(etc))


@application.command()
def add(
    name: Name,
    role: Roles = None,
    password: Password = None,
    plain: Plain = False,
    etc: Etc = None,
) -> None:
    """Add a user."""
    from atalanta.cli.output.outcome import USAGE, Refused, reported
    from atalanta.config.users.users_file import stored_password

    with reported():
        if not role:
            raise Refused("a user without a role may do nothing: name one with --role", USAGE)
        opened = files(etc)
        opened.add(name, stored_password(asked_password(password), plain), tuple(role))
    typer.echo(f"added {name} to {opened.users.path}")


@application.command()
def rm(name: Name, etc: Etc = None) -> None:
    """Remove a user."""
    from atalanta.cli.output.outcome import reported

    with reported():
        opened = files(etc)
        opened.remove(name)
    typer.echo(f"removed {name} from {opened.users.path}")


@application.command()
def reset(
    name: Name,
    role: Roles = None,
    password: Password = None,
    plain: Plain = False,
    etc: Etc = None,
) -> None:
    """Give a user another password, or with --role (and no --password) other roles."""
    from atalanta.cli.output.outcome import reported
    from atalanta.config.users.users_file import stored_password

    with reported():
        opened = files(etc)
        wanted = (
            None if role and password is None else stored_password(asked_password(password), plain)
        )
        opened.reset(name, wanted, tuple(role) if role else None)
    typer.echo(f"changed {name} in {opened.users.path}")


@application.command("list")
def list_users(
    json_output: Annotated[bool, typer.Option("--json", help="for programs")] = False,
    etc: Etc = None,
) -> None:
    """Show users and their roles; passwords are not shown."""
    from atalanta.cli.output.outcome import reported

    with reported():
        found = files(etc).listed()
    if json_output:
        typer.echo(json.dumps([_described(user) for user in found], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("user", "roles", "password")
    for user in found:
        table.add_row(user.name, ", ".join(user.roles), "hashed" if user.hashed else "plain text")
    Console().print(table)


def _described(user: UserLine) -> dict[str, object]:
    return {"user": user.name, "roles": list(user.roles), "hashed": user.hashed}
