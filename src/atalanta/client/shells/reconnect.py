"""When to dial which server: the first connection and the ones after a loss. Pure; time is an argument.

One attempt is one pass over the candidates. Of a new connection the balancing policy chooses the first one, the others
follow in their order; after a loss the server of the last connection comes first, then (unless
`stay`) the others of the URL in order, then those of the topology where
useTopologyForLoadBalancing says so. Between passes retryInterval, growing by
retryIntervalMultiplier up to maxRetryInterval (ClientSessionFactoryImpl.getConnectionWithRetry);
the first pass after a loss begins at once if the connection had lasted that long.
"""

from __future__ import annotations

from atalanta.client.discovery.load_balancing import select
from atalanta.client.options import FOREVER, ClientOptions, Server

MILLISECOND_NS = 1_000_000
REDIRECTS_MAX = 10  # in a row: connection routers may send in a circle


class ReconnectPolicy:
    """`next_dial` says whom to dial and when; `connected`, `failed` and `lost` say what happened."""

    def __init__(self, options: ClientOptions) -> None:
        self.options = options
        self.last_error: str = ""
        self.current: Server | None = None
        self._candidates: list[Server] = self._ordered(options.servers)
        self._position = 0
        self._redirects = 0  # since a login was answered
        self._passes_left = options.initial_connect_attempts
        self._interval_ms = options.retry_interval_ms
        self._next_at_ns = 0
        self._given_up = self._passes_left == 0
        self._wants_servers = options.finder is not None

    @property
    def given_up(self) -> bool:
        """No more attempts are allowed."""
        return self._given_up

    @property
    def wants_servers(self) -> bool:
        """A pass begins that needs them: whoever discovers servers calls `found` or `found_none` now."""
        return self._wants_servers and not self._given_up

    def found(self, servers: list[Server]) -> None:
        """These are the servers now; the lost one comes last, as it could not be reached."""
        self._wants_servers = False
        self.options.servers = servers
        if self.current is None:
            self._candidates = self._ordered(servers)
        elif self.options.stay:
            self._candidates = [self.current]
        else:
            others = [server for server in self._ordered(servers) if server != self.current]
            self._candidates = [*others, self.current]

    def found_none(self, now: int, why: str) -> None:
        """That pass has nobody to dial, but for the server that was lost."""
        if self.current is not None:
            self._wants_servers = False
            self._candidates = [self.current]
        else:
            self.last_error = why
            self._end_pass(now)

    def _ordered(self, servers: list[Server]) -> list[Server]:
        policy = self.options.balancing
        if policy is None or len(servers) < 2:
            return list(servers)
        first = select(policy, len(servers))
        return servers[first:] + servers[:first]

    @property
    def next_at_ns(self) -> int:
        """When the next pass or dial may begin."""
        return self._next_at_ns

    def next_dial(self) -> tuple[Server, int] | None:
        """The server to dial and the time (ns) not before which; None: give up. Not while it wants servers."""
        if self._given_up:
            return None
        return self._candidates[self._position], self._next_at_ns

    def connected(self, now: int, server: Server) -> None:
        """The connection stands (the login was answered): the next loss begins a new series."""
        self.current = server
        self._interval_ms = self.options.retry_interval_ms
        self._redirects = 0
        self._next_at_ns = now + self._interval_ms * MILLISECOND_NS

    def redirected(self, target: Server) -> bool:
        """The server that was to log us in names another, which is dialled next; not for ever, and not with `stay`."""
        if self.options.stay or self._redirects >= REDIRECTS_MAX:
            return False
        self._redirects += 1
        others = [each for each in self._candidates[self._position :] if each != target]
        self._candidates = [target, *others]
        self._position = 0
        return True

    def failed(self, now: int, why: str) -> None:
        """The dialled server could not be reached."""
        self.last_error = f"{self._candidates[self._position]}: {why}"
        self._position += 1
        if self._position >= len(self._candidates):
            self._end_pass(now)

    def _end_pass(self, now: int) -> None:
        self._position = 0
        if self.options.finder is not None:
            self.options.finder.forget()
            self._wants_servers = True
        if self._passes_left != FOREVER:
            self._passes_left -= 1
            if self._passes_left <= 0:
                self._given_up = True
                return
        self._next_at_ns = now + self._interval_ms * MILLISECOND_NS
        grown = int(self._interval_ms * self.options.retry_interval_multiplier)
        most = max(self.options.max_retry_interval_ms, self.options.retry_interval_ms)
        self._interval_ms = min(grown, most)

    def lost(
        self, now: int, why: str, members: list[Server], target: Server | None = None
    ) -> None:
        """An established connection ended. `members`: the topology; `target`: where the broker sends us."""
        options = self.options
        self.last_error = f"{self.current}: {why}" if self.current is not None else why
        candidates: list[Server] = []
        if target is not None and not options.stay:
            candidates.append(target)
        if self.current is not None:
            candidates.append(self.current)
        if not options.stay:
            candidates += options.servers
            if options.use_topology_for_load_balancing:
                candidates += members
        self._candidates = list(dict.fromkeys(candidates)) or list(options.servers)
        self._position = 0
        self._wants_servers = False
        self._passes_left = options.reconnect_attempts
        self._given_up = self._passes_left == 0
        # A server that ends every connection at once is not dialled without a pause.
        self._next_at_ns = max(now, self._next_at_ns)
