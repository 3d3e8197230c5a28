"""Which broker a command talks to, and as whom."""

from __future__ import annotations

import sys
from urllib.parse import quote

import typer

from atalanta.client import Connecting, connect


class Target:
    """Where to connect, and as whom."""

    def __init__(self, url: str, user: str | None, password: str | None) -> None:
        self.url = url
        self.user = user
        self.password = password
        if user is not None and password is None and sys.stdin.isatty():
            self.password = str(typer.prompt(f"Password of {user}", hide_input=True, err=True))

    def connect(self, client_id: str | None = None) -> Connecting:
        """`async with target.connect() as connection:`. UriError for a URL that cannot be used."""
        url = self.url
        if client_id is not None:
            url += f"{'&' if '?' in url else '?'}clientID={quote(client_id, safe='')}"
        return connect(url, user=self.user, password=self.password)
