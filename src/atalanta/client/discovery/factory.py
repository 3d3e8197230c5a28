"""Shared state of the connections of one URL: options, balancing policy, and the members that the topology names.

The first connection goes to a server of the URL. As long as it is there, later ones go round the members of the cluster
(ServerLocatorImpl.selectNextConnectorPair), without a second login. What the last connection knew is used for
refreshTimeout after its end.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from atalanta.client.discovery.load_balancing import Balancing, RoundRobin, policy_given, select
from atalanta.client.options import ClientOptions, Server, parse_url
from atalanta.client.shells.reconnect import MILLISECOND_NS
from atalanta.client.shells.shell import ClientShell
from atalanta.client.shells.tls import use_tls

if TYPE_CHECKING:
    from ssl import SSLContext

TOPOLOGY_WAIT_S: Final = 2.0
TOPOLOGY_POLL_S: Final = 0.01


class UrlOptions:
    """A factory of `options()` for each connection of one URL. Several threads may use it."""

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
        elif self._options.balancing is None:
            self._options.balancing = RoundRobin()
        use_tls(self._options, ssl)
        self._lock = threading.Lock()
        self._shells: weakref.WeakSet[ClientShell] = weakref.WeakSet()
        self._last: ClientShell | None = None
        self._order: list[Server] = []  # of the members, as the policy counts them
        self._opening = False  # the first connection is being opened
        self._silent = False  # its broker names no members

    @property
    def balances(self) -> bool:
        """Returns True if later connections may go to members that the URL does not name."""
        options = self._options
        return options.use_topology_for_load_balancing is not False and not options.stay and not options.priority

    def options(self) -> ClientOptions:
        """Returns a new copy; policy and finder are shared. Its `members` begin with the one that the policy chose."""
        options = replace(self._options, servers=list(self._options.servers), members=[])
        if not self.balances:
            return options
        with self._lock:
            members = self._members()
            if len(members) > 1:  # a broker alone may announce an address that is not reached from here
                first = select(options.balancing or RoundRobin(), len(members))
                options.members = members[first:] + members[:first]
        return options

    def may_open(self, until_s: float) -> bool:
        """Returns True if a connection may be opened now: it is the first one, or the members are known.

        After `until_s` (of time.monotonic) it may in any case.
        """
        with self._lock:
            if not self.balances or self._silent:
                return True
            if self._source() is not None:
                return True
            connected = any(each.engine.connected for each in self._live())
            if not self._opening and not connected:
                self._opening = True
                return True
            if time.monotonic() < until_s:
                return False
            self._silent = connected
            return True

    def opened(self, shell: ClientShell | None) -> None:
        """Records a connection that is open now; None: it could not be opened."""
        with self._lock:
            self._opening = False
            if shell is not None:
                self._shells.add(shell)
                self._last = shell

    def shells(self) -> list[ClientShell]:
        """Returns the open connections."""
        with self._lock:
            return self._live()

    def _live(self) -> list[ClientShell]:
        return [each for each in self._shells if not each.closed]

    def _source(self) -> ClientShell | None:
        """Returns a connection that knows the members now, or knew them until a moment ago."""
        for shell in self._live():
            if shell.engine.connected and shell.engine.topology_complete:
                return shell
        last = self._last
        if last is None or not last.engine.topology_complete:
            return None
        fresh = time.monotonic_ns() - last.engine.now < self._options.refresh_timeout_ms * MILLISECOND_NS
        return last if fresh else None

    def _members(self) -> list[Server]:
        """Returns the members in an order that stays: first those of the URL, each at its place there.

        So a policy that goes round continues where the choice of the first server ended.
        """
        source = self._source()
        if source is None:
            self._order = []
            return []
        members = source.members()
        if not self._order:
            self._order = _placed(source, members)
        known = [each for each in self._order if each in members]
        self._order = known + [each for each in members if each not in known]
        return self._order


def _placed(shell: ClientShell, members: list[Server]) -> list[Server]:
    """Returns the members, each at the place that its server has in the URL, and the others in the places between."""
    own = shell.engine.topology.get(shell.engine.node_id or "")
    alias = {shell.dialled: Server(own.host, own.port)} if own and own.host is not None and own.port is not None else {}
    listed = [each if each in members else alias.get(each) for each in shell.options.servers]
    named = {each for each in listed if each is not None}
    others = iter(each for each in members if each not in named)
    placed = [each if each is not None else next(others, None) for each in listed]
    return list(dict.fromkeys(each for each in [*placed, *others] if each is not None))
