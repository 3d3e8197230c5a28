"""The broker that a command connects to, and the credentials."""

from __future__ import annotations

import sys
import tempfile
from typing import Final
from urllib.parse import quote

import typer

from atalanta.client import Connecting, connect

FOLDER: Final = "largeMessagesFolder"


class BrokerLogin:
    """A broker URL with user and password."""

    def __init__(self, url: str, user: str | None, password: str | None) -> None:
        self.url = url
        self.user = user
        self.password = password
        if user is not None and password is None and sys.stdin.isatty():
            self.password = str(typer.prompt(f"Password of {user}", hide_input=True, err=True))

    def at(self, place: str) -> BrokerLogin:
        """Returns another broker, host:port or a URL, with the same credentials; host:port gets the same options."""
        _, mark, options = self.url.partition("?")
        url = place if "://" in place else f"tcp://{place}{mark}{options}"
        return BrokerLogin(url, self.user, self.password)

    def connect(self, client_id: str | None = None, large_files: bool = False) -> Connecting:
        """Connects: `async with target.connect() as connection:`. UriError for an invalid URL.

        With `large_files`, received large bodies are kept in the system's folder for temporary files, unless the
        URL names another.
        """
        url = self.url
        if client_id is not None:
            url = with_option(url, "clientID", client_id)
        if large_files and FOLDER not in url:
            url = with_option(url, FOLDER, tempfile.gettempdir())
        return connect(url, user=self.user, password=self.password)


def with_option(url: str, name: str, value: str) -> str:
    """Returns the URL with a further option. In a list `(…,…)` the options of all brokers are behind the list."""
    after = url[url.rfind(")") :] if url.lstrip().startswith("(") else url
    return f"{url}{'&' if '?' in after else '?'}{name}={quote(value, safe='')}"
