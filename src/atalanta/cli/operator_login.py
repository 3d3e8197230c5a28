"""The login of an operator: the password is asked for on a terminal."""

from __future__ import annotations

import sys

import typer

from atalanta.survey.broker_login import BrokerLogin


def operator_login(url: str, user: str | None, password: str | None) -> BrokerLogin:
    """Returns the broker at `url` with the credentials of the command line."""
    if user is not None and password is None and sys.stdin.isatty():
        password = str(typer.prompt(f"Password of {user}", hide_input=True, err=True))
    return BrokerLogin(url, user, password)
