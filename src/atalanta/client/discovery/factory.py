"""What the connections of one URL share: its options, its balancing policy, and what was discovered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from ssl import SSLContext

from atalanta.client.discovery.load_balancing import Balancing, Random, policy_given, select
from atalanta.client.options import ClientOptions, Server, parse_url
from atalanta.client.shells.shell import Shell
from atalanta.client.shells.tls import use_tls


class UrlOptions:
    """`options()` of the next connection."""

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
        """A copy of its own; policy and finder are shared."""
        return replace(self._options, servers=list(self._options.servers))


def chosen_member(shell: Shell) -> Server | None:
    """Where the policy (Random, if none is given) sends a connection that knows the topology; None: it stays."""
    members = shell.members()
    if not members:
        return None
    chosen = members[select(shell.options.balancing or Random(), len(members))]
    return None if chosen == shell.server else chosen
