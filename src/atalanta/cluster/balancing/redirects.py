"""Redirects of clients to other members of the cluster.

A client is redirected right behind an answer, or when it has been silent for a second; in both cases only when nothing
of it is unfinished (`Eligibility.unfinished`). A client that offers no such moment within `rebalance-patience` stays,
and is not chosen again for 10 s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.cluster.balancing.rebalance import Rebalance
    from atalanta.wire.connection import ClientConnection, Redirect
    from atalanta.wire.core.transport import TransportConfiguration

SECOND_NS: Final = 1_000_000_000
IDLE_NS: Final = SECOND_NS
ARRIVAL_NS: Final = 3 * SECOND_NS  # a redirected client is counted at its target so long at most
RETRY_NS: Final = 10 * SECOND_NS  # before a busy client is chosen again


class Redirects:
    """`pending` and `sent` by connection: `sent` are those whose client has not closed its connection yet."""

    def __init__(self, node: Rebalance) -> None:
        self.node = node
        self.broker = node.broker
        self.pending: dict[int, Redirect] = {}
        self.sent: dict[int, Redirect] = {}
        self.arriving: dict[int, tuple[str, int]] = {}  # (target's id, sent at), by old connection
        self.reported: dict[str, int] = {}  # the last count of each member, by node id
        self.busy: dict[int, tuple[str, int]] = {}  # (what was unfinished, chosen again at)
        self.sent_in_tick: int = 0

    def begin(self, now: int, moves: list[tuple[str, int]]) -> int:
        """Chooses clients for `moves`, pairs of (node id, number of clients). Returns how many clients are missing."""
        pending: dict[str, int] = {}
        for redirect in self.pending.values():
            pending[redirect.target_node] = pending.get(redirect.target_node, 0) + 1
        budget = self.node.own.rebalance_rate
        missing = 0
        for node_id, count in moves:
            wanted = min(count - pending.get(node_id, 0), budget)
            if wanted <= 0:
                continue
            found = self.candidates(now, node_id, wanted)
            budget -= len(found)
            missing += wanted - len(found)
            for connection in found:
                self._begin(now, connection, node_id)
        return missing

    def _begin(self, now: int, connection: ClientConnection, node_id: str) -> None:
        redirect = connection.begin_redirect(now, node_id)
        redirect.on_answer = self._try
        self.pending[connection.conn] = redirect
        self.broker.clients.leaving[connection.conn] = True
        self._try_idle(now, redirect)

    def candidates(self, now: int, node_id: str, count: int) -> list[ClientConnection]:
        """Returns up to `count` clients for a member whose zones allow it.

        Those with a preferred zone come first, then those that cannot reach every member: the others may go to other
        members, too. Then come those that were at the member before, then the newest.
        """
        node = self.node
        here = [
            each
            for each in node.clients_here()
            if node.zones.may_go(now, each, node_id) and each.can_reach(node_id)
        ]
        here.reverse()
        here.sort(key=lambda connection: connection.came_from != node_id)
        reached = node.members_reached({each.reach(): each for each in here})
        here.sort(key=lambda connection: reached[connection.reach()])
        here.sort(key=lambda connection: not node.zones.preferred.of(connection))
        found: list[ClientConnection] = []
        for connection in here:
            if len(found) >= count:
                break
            if connection.current_redirect() is None and self.is_able(now, connection):
                found.append(connection)
        return found

    def is_able(self, now: int, connection: ClientConnection) -> bool:
        """Returns whether a client may be redirected now, or is about to be."""
        return (
            self.busy_with(connection.conn, now) is None
            and self.node.eligibility.obstacle(connection, now) is None
        )

    def busy_with(self, conn: int, now: int) -> str | None:
        """Returns what a client had unfinished at the end of its time, None if it may be chosen (again)."""
        reason, until = self.busy.get(conn, ("", 0))
        return reason if until > now else None

    def _try_idle(self, now: int, redirect: Redirect) -> None:
        if now - redirect.connection.last_seen >= IDLE_NS:
            self._try(redirect, now)

    def _try(self, redirect: Redirect, now: int) -> None:
        """Sends the redirect if nothing of the client is unfinished."""
        connection = redirect.connection
        target = self.node.target(redirect.target_node)
        if (
            target is None
            or self.sent_in_tick >= self.node.own.rebalance_rate
            or not connection.can_reach(redirect.target_node)
            or self.node.eligibility.unfinished(redirect) is not None
        ):
            return
        if self.node.eligibility.obstacle(connection, now) is None:
            self._send(now, redirect, target)
        else:
            self.cancel(now, redirect)

    def cancel_all(self, now: int) -> None:
        """Gives up all redirects that are pending."""
        for redirect in list(self.pending.values()):
            self.cancel(now, redirect)

    def cancel(self, now: int, redirect: Redirect) -> None:
        """Gives one pending redirect up: the client stays."""
        connection = redirect.connection
        del self.pending[connection.conn]
        self.broker.clients.leaving.pop(connection.conn, None)
        if connection.current_redirect() is redirect:
            redirect.cancel(now)

    def _send(self, now: int, redirect: Redirect, target: TransportConfiguration) -> None:
        conn = redirect.connection.conn
        del self.pending[conn]
        others = [
            (member.node_id, member.event_id)
            for member in self.node.cluster.topology.members.values()
            if member.node_id != redirect.target_node
        ]
        redirect.send(now, target, others)
        self.sent[conn] = redirect
        self.arriving[conn] = (redirect.target_node, now)
        self.sent_in_tick += 1
        self.node.count_redirect(now)
        self.tell(redirect.connection, redirect.target_node, target)

    def tell(
        self, connection: ClientConnection, node_id: str, target: TransportConfiguration
    ) -> None:
        """Reports the redirect of a client."""
        client = connection.client
        self.broker.trace.event(
            "client_redirected",
            {
                "remote": client.remote,
                "client": client.client_id or "",
                "to": node_id,
                "at": target.address,
            },
        )

    def on_tick(self, now: int) -> None:
        """Redirects idle clients, keeps those whose time is over, and closes connections of those that do not go."""
        self.sent_in_tick = 0
        for conn in [conn for conn in self.busy if conn not in self.node.connections]:
            del self.busy[conn]
        for redirect in list(self.pending.values()):
            self._check(now, redirect)
        for conn, redirect in list(self.sent.items()):
            if conn not in self.node.connections:
                del self.sent[conn]
            elif now - redirect.sent_at > redirect.linger_ns:
                del self.sent[conn]
                self.node.clusters.host.closing.append(
                    (conn, "was sent to another node and did not go")
                )

    def _check(self, now: int, redirect: Redirect) -> None:
        connection = redirect.connection
        if (
            connection.gone
            or connection.current_redirect() is not redirect
            or self.node.target(redirect.target_node) is None
        ):
            self.cancel(now, redirect)
            return
        self._try_idle(now, redirect)
        patience_ns = self.node.own.rebalance_patience_ms * 1_000_000
        if connection.conn in self.pending and now - redirect.since >= patience_ns:
            why = self.node.eligibility.unfinished(redirect) or "is talking"
            self.busy[connection.conn] = (why, now + RETRY_NS)
            self.broker.trace.count("busy_clients_kept")
            self.cancel(now, redirect)

    def arrivals(self, now: int) -> dict[str, int]:
        """Returns how many redirected clients each member has not reported in its count yet, by node id.

        A member's count that has grown includes as many of them, the oldest first.
        """
        reported = self._growth()
        arrivals: dict[str, int] = {}
        for conn, (node_id, at) in list(self.arriving.items()):
            if conn in self.sent:
                at = now  # its connection is still open
                self.arriving[conn] = (node_id, at)
            if reported.get(node_id, 0) > 0:
                reported[node_id] -= 1
                del self.arriving[conn]
            elif now - at >= ARRIVAL_NS:
                del self.arriving[conn]
            else:
                arrivals[node_id] = arrivals.get(node_id, 0) + 1
        return arrivals

    def _growth(self) -> dict[str, int]:
        """Returns by how many clients the count of each member has grown since the last call."""
        growth: dict[str, int] = {}
        for node_id, record in self.node.cluster.peers.items():
            clients = 0 if record.clients is None else record.clients.clients
            growth[node_id] = clients - self.reported.get(node_id, clients)
            self.reported[node_id] = clients
        return growth
