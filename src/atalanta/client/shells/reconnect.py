"""The reconnect policy: which server to connect to, and when. The policy has no side effects; time is an argument.

One attempt is one pass over the candidates. For a new connection the balancing policy chooses the first one; the
others follow in their order. After a loss the server of the last connection comes first. The others of the URL follow
in order (unless `stay`), then those of the topology if the URL says useTopologyForLoadBalancing=true. The pause between
passes is retryInterval, which grows by retryIntervalMultiplier up to maxRetryInterval
(ClientSessionFactoryImpl.getConnectionWithRetry). The first pass after a loss begins at once if the connection lasted
at least that long. When reconnectAttempts passes have failed, failoverAttempts passes over the members follow.

If the lost server is half of a pair, only the pair is tried for PAIR_NS, and these passes do not count. The pair has
the messages and their duplicate ids, the other servers have not. The other half comes first: a host that is lost or
frozen does not answer.
"""

from __future__ import annotations

import random

from atalanta.client.discovery.load_balancing import select
from atalanta.client.options import ClientOptions, Server
from atalanta.client.url_options import FOREVER

MILLISECOND_NS = 1_000_000
PAIR_NS = 5_000_000_000  # more than a backup needs to take over
PAIR_PAUSE_NS = 50_000_000
REDIRECTS_MAX = 10  # in a row: connection routers may redirect in a circle


class ReconnectPolicy:
    """The state of reconnecting. `next_dial` returns the next server; `connected`, `failed`, `lost` record results."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self.last_error: str = ""
        self.current: Server | None = None
        self.passes_failed = 0  # since the last answered login
        self._candidates: list[Server] = self._first_candidates()
        self._position = 0
        self._redirects = 0  # since the last answered login
        self._passes_left = options.initial_connect_attempts
        self._interval_ms = options.retry_interval_ms
        self._next_at_ns = 0
        self._given_up = self._passes_left == 0
        self._wants_servers = options.finder is not None and not options.members
        self._pair: list[Server] = []  # the lost server behind the other half of its pair
        self._pair_until_ns = 0
        self._others: list[Server] = []  # tried when the time of the pair is over
        self._failovers_left = 0
        self._members: list[Server] = []  # at the last loss

    @property
    def given_up(self) -> bool:
        """Returns True if no more attempts are allowed."""
        return self._given_up

    @property
    def wants_servers(self) -> bool:
        """Returns True if the next pass needs discovery. The caller then calls `found` or `found_none`."""
        return self._wants_servers and not self._given_up

    def found(self, servers: list[Server]) -> None:
        """Sets the discovered servers. The lost server comes last, since it could not be reached."""
        self._wants_servers = False
        self.options.servers = servers
        if self.current is None:
            self._candidates = self._ordered(servers)
        elif self.options.stay:
            self._candidates = list(self._pair)
        else:
            others = [server for server in self._ordered(servers) if server not in self._pair]
            self._candidates = [*others, *self._pair]

    def found_none(self, now: int, why: str) -> None:
        """Records a pass without discovered servers; only the lost server is tried."""
        if self.current is not None:
            self._wants_servers = False
            self._candidates = list(self._pair)
        else:
            self.last_error = why
            self._end_pass(now)

    def _first_candidates(self) -> list[Server]:
        options = self.options
        if options.members:  # the balancing policy has chosen already
            return list(dict.fromkeys([*options.members, *options.servers]))
        return self._ordered(options.servers)

    def _ordered(self, servers: list[Server]) -> list[Server]:
        """Returns the servers from the one that the policy chooses, those of priorityBackup first."""
        policy = self.options.balancing
        found = list(servers)
        if policy is not None and servers:
            first = select(policy, len(servers))
            found = servers[first:] + servers[:first]
        return sorted(found, key=lambda each: each not in self.options.priority)

    @property
    def next_at_ns(self) -> int:
        """Returns the earliest time of the next pass or attempt."""
        return self._next_at_ns

    def next_dial(self) -> tuple[Server, int] | None:
        """Returns the server and its earliest time (ns); None: give up. Not to be called while discovery is needed."""
        if self._given_up:
            return None
        return self._candidates[self._position], self._next_at_ns

    def connected(self, now: int, server: Server) -> None:
        """Records an answered login: the next loss begins a new series of attempts."""
        self.current = server
        self._pair = [server]
        self._pair_until_ns = 0
        self._interval_ms = self.options.retry_interval_ms
        self._redirects = 0
        self.passes_failed = 0
        self._next_at_ns = now + self._interval_ms * MILLISECOND_NS

    def redirected(self, target: Server) -> bool:
        """Records a redirect by the server of the login. Returns False after too many redirects, or with `stay`."""
        if self.options.stay or self._redirects >= REDIRECTS_MAX:
            return False
        self._redirects += 1
        others = [each for each in self._candidates[self._position :] if each != target]
        self._candidates = [target, *others]
        self._position = 0
        return True

    def failed(self, now: int, why: str) -> None:
        """Records that the server could not be reached."""
        self.last_error = f"{self._candidates[self._position]}: {why}"
        self._position += 1
        if self._position >= len(self._candidates):
            self._end_pass(now)

    def _end_pass(self, now: int) -> None:
        self._position = 0
        if self._pair_until_ns:
            if now < self._pair_until_ns:
                self._next_at_ns = now + PAIR_PAUSE_NS
                return
            self._pair_until_ns = 0
            if self._others:
                self._candidates = [*self._others, *self._pair]
                return
        if self.options.finder is not None:
            self.options.finder.forget()
            self._wants_servers = True
        self.passes_failed += 1
        if self._passes_left != FOREVER:
            self._passes_left -= 1
            if self._passes_left <= 0 and not self._fails_over():
                self._given_up = True
                return
        self._next_at_ns = now + self._interval_ms * MILLISECOND_NS
        grown = int(self._interval_ms * self.options.retry_interval_multiplier)
        most = max(self.options.max_retry_interval_ms, self.options.retry_interval_ms)
        self._interval_ms = min(grown, most)

    def _fails_over(self) -> bool:
        """Begins the passes over the other members. Returns False if there are none, or none are allowed."""
        members = [each for each in self._members if each not in self._pair]
        if self._failovers_left == 0 or not members:
            return False
        self._passes_left, self._failovers_left = self._failovers_left, 0
        random.shuffle(members)
        self._wants_servers = False
        self._candidates = list(dict.fromkeys([*members, *self._candidates]))
        return True

    def lost(
        self,
        now: int,
        why: str,
        members: list[Server],
        target: Server | None = None,
        other_half: Server | None = None,
    ) -> None:
        """Records the end of an established connection.

        `members` are those of the topology, `target` is the broker's redirect, `other_half` that of the server's pair.
        """
        options = self.options
        self.last_error = f"{self.current}: {why}" if self.current is not None else why
        pair = [each for each in (other_half, self.current) if each is not None]
        first = [target] if target is not None and not options.stay else []
        others: list[Server] = []
        self._members = [] if options.stay else members
        if not options.stay:
            others += options.servers
            if options.use_topology_for_load_balancing or options.reconnect_attempts == 0:
                others += members
            if options.shuffled:
                random.shuffle(others)
            others.sort(key=lambda each: each not in options.priority)
        self._pair = pair
        self._others = [each for each in dict.fromkeys(others) if each not in pair]
        self._pair_until_ns = now + PAIR_NS if other_half is not None else 0
        beyond = [] if other_half is not None else self._others
        self._candidates = list(dict.fromkeys([*first, *pair, *beyond])) or list(options.servers)
        self._position = 0
        self._wants_servers = False
        self._passes_left = options.reconnect_attempts or options.failover_attempts
        self._failovers_left = options.failover_attempts if options.reconnect_attempts else 0
        self._given_up = self._passes_left == 0
        # A server that ends every connection at once is retried only after a pause.
        self._next_at_ns = max(now, self._next_at_ns)
