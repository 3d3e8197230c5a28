"""Shared state of the connections of one URL: options, balancing policy, discovered servers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ssl import SSLContext

from atalanta.client.discovery.load_balancing import Balancing, Random, policy_given, select
from atalanta.client.options import ClientOptions, Server, parse_url
from atalanta.client.shells.shell import ClientShell
from atalanta.client.shells.tls import use_tls


class UrlOptions:
    """A factory of `options()` for each connection of one URL."""

    def __init__(
        self,
        url: str,
        user: str | None,
        password: str | None,
        ssl: SSLContext | None,
        balancing: Balancing | Callable[[int], int] | None,
    ) -> None:
        self._options = parse_url(url, user, password)
        if balancing is not None:
            self._options.balancing = policy_given(balancing)
        use_tls(self._options, ssl)

    def options(self) -> ClientOptions:
        """Returns a new copy; policy and finder are shared."""
        return replace(self._options, servers=list(self._options.servers))


def chosen_member(shell: ClientShell) -> Server | None:
    """Returns the policy's choice (default Random) from the topology; None keeps the current server."""
    members = shell.members()
    if not members:
        return None
    chosen = members[select(shell.options.balancing or Random(), len(members))]
    return None if chosen == shell.server else chosen
