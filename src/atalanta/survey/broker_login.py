"""The broker that a command connects to, and the credentials."""

from __future__ import annotations

import re
import tempfile
from typing import Final
from urllib.parse import quote

from atalanta.client import Connecting, FirstElement, connect

FOLDER: Final = "largeMessagesFolder"
POLICY: Final = "connectionLoadBalancingPolicyClassName"
# The beginning of a list: `(…)`, or a form of Classic such as `failover:(…)`.
OF_LISTS: Final = re.compile(r"\s{0,9}((?:[a-z]{1,20}:(?://)?)?)\(")


class BrokerLogin:
    """A broker URL with user and password."""

    def __init__(self, url: str, user: str | None, password: str | None) -> None:
        self.url = url
        self.user = user
        self.password = password

    def at(self, place: str) -> BrokerLogin:
        """Returns another broker, host:port or a URL, with the same credentials; host:port gets the same options."""
        if "://" in place:
            return BrokerLogin(place, self.user, self.password)
        found = OF_LISTS.match(self.url)
        if found is None:
            _, mark, options = self.url.partition("?")
            return BrokerLogin(f"tcp://{place}{mark}{options}", self.user, self.password)
        # Options of a form of Classic have a meaning only there.
        options = self.url[self.url.rfind(")") + 1 :]
        return BrokerLogin(f"{found.group(1)}(tcp://{place}){options}", self.user, self.password)

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
        if POLICY not in url:
            # A command goes to the broker that is named: of a list, to the first one that is there.
            return connect(url, user=self.user, password=self.password, balancing=FirstElement())
        return connect(url, user=self.user, password=self.password)


def with_option(url: str, name: str, value: str) -> str:
    """Returns the URL with a further option. In a list `(…,…)` the options of all brokers are behind the list."""
    after = url[url.rfind(")") :] if OF_LISTS.match(url) else url
    return f"{url}{'&' if '?' in after else '?'}{name}={quote(value, safe='')}"
