"""`atalanta user`: users and roles of one node, in Artemis' properties files."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from atalanta.config.users.users_file import UserFiles, UserLine

# The modules that do the work are imported in the functions: `atalanta version` must work without them.
USERS_FILE = "artemis-users.properties"
application = typer.Typer(
    help="Users and roles beside a broker.xml; a running node reads changes by itself.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="the user's name", show_default=False)]
Etc = Annotated[
    Path | None,
    typer.Option(help="the folder with the .properties files  [default: ./etc or .]", metavar="DIR"),
]
Roles = Annotated[list[str] | None, typer.Option("--role", help="may be given several times")]
Password = Annotated[
    str | None, typer.Option(help="[default: asked for, or read from stdin]", metavar="TEXT")
]
Plain = Annotated[bool, typer.Option("--plain", help="write the password in plain text instead of its hash")]
SALT_BYTES = 32  # as Artemis


def folder_of(etc: Path | None) -> Path:
    """Returns ./etc if it has users, else the current folder."""
    if etc is not None:
        return etc
    inner = Path("etc")
    return inner if inner.is_dir() and not Path(USERS_FILE).exists() else Path(".")


def stored_password(password: str, plain: bool) -> str:
    """Returns the stored_password form of a password; a plain password must not look like a hash."""
    from atalanta.config.users.users_file import UsersError
    from atalanta.kernel.security.password import hash_password

    if not plain:
        return hash_password(password, secrets.token_bytes(SALT_BYTES))
    if password.startswith("ENC("):
        raise UsersError("a plain password cannot begin with 'ENC('")
    return password


def asked_password(password: str | None) -> str:
    """Returns the password from the option, the terminal (twice), or the first line of stdin."""
    from atalanta.config.users.users_file import UsersError

    if password is None:
        if sys.stdin.isatty():
            password = str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
        else:
            password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UsersError("an empty password is not allowed")
    return password


def files(etc: Path | None) -> UserFiles:
    """Returns the two files of a node."""
    from atalanta.config.users.users_file import UserFiles, UsersError

    folder = folder_of(etc)
    if not folder.is_dir():
        raise UsersError(f"there is no folder {folder}")
    return UserFiles(folder)


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Turns an error into a line on stderr and exit status 1."""
    from atalanta.config.users.users_file import UsersError

    try:
        yield
    except UsersError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


@application.command()
def add(
    name: Name,
    role: Roles = None,
    password: Password = None,
    plain: Plain = False,
    etc: Etc = None,
) -> None:
    """Add a user."""
    if not role:
        typer.echo("a user without a role may do nothing: name one with --role", err=True)
        raise typer.Exit(1)
    with reported():
        opened = files(etc)
        opened.add(name, stored_password(asked_password(password), plain), tuple(role))
    typer.echo(f"added {name} to {opened.users.path}")


@application.command()
def rm(name: Name, etc: Etc = None) -> None:
    """Remove a user."""
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
