"""Clients on their way to other members: chosen, held back until they pause, told to go, and gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.core.connection import CoreConnection
from atalanta.wire.core.moving import Moving

if TYPE_CHECKING:
    from atalanta.cluster.rebalance import Rebalance
    from atalanta.wire.core.transport import TransportConfiguration

POLL: Final = "poll"
POLL_NS: Final = 5_000_000
BEHIND_ANSWER_NS: Final = 500_000
SECOND_NS: Final = 1_000_000_000
ARRIVAL_NS: Final = 3 * SECOND_NS  # a client that was told to go is counted at its target
TOLD_LATER_NS: Final = SECOND_NS // 2  # until the target has said something newer than this
LINGER_NS: Final = 10 * SECOND_NS  # then the connection of a client that does not go is closed
AGAIN_NS: Final = 10 * SECOND_NS  # before a client that found no pause is asked to find one again
# A client in a hurry is given no more credit to send, and tried now and then: is it out of it?
OUT_OF_CREDIT_NS: Final = 5 * SECOND_NS
DRAIN_NS: Final = (
    20 * SECOND_NS
)  # one that works through what it has is waited for, so long at most
TRY_NS: Final = SECOND_NS // 2
BETWEEN_TRIES_NS: Final = SECOND_NS


class Departures:
    """`held` are held back, `gone` were told to go and their connections still stand; by connection."""

    def __init__(self, node: Rebalance) -> None:
        self.node = node
        self.broker = node.broker
        self.poll_key: str = node.prefix + POLL
        self.held: dict[int, Moving] = {}
        self.gone: dict[int, Moving] = {}
        self.on_their_way: dict[int, tuple[str, int]] = {}  # (node, since when), by old connection
        self.again_at: dict[int, int] = {}
        self.why: dict[int, str] = {}  # it made no pause; with `again_at`
        self.in_a_hurry: dict[int, int] = {}
        self.sent_in_tick: int = 0

    def begin(self, now: int, moves: list[tuple[str, int]]) -> int:
        """Choose clients for (member, how many). How many could not be found is returned."""
        held: dict[str, int] = {}
        for moving in self.held.values():
            held[moving.target_node] = held.get(moving.target_node, 0) + 1
        budget = self.node.own.rebalance_rate
        missing = 0
        for node_id, count in moves:
            wanted = count - held.get(node_id, 0)
            found = self.candidates(now, node_id, min(wanted, budget), False)
            budget -= len(found)
            if budget > 0 and wanted > len(found):
                found += self.candidates(now, node_id, wanted - len(found), True)
                missing += wanted - len(found)
            for connection in found:
                self._begin(now, connection, node_id)
        if self.held:
            self.broker.timers.set(self.poll_key, now + POLL_NS)
        return missing

    def _begin(self, now: int, connection: CoreConnection, node_id: str) -> None:
        conn = connection.conn
        moving = Moving(connection, now, node_id, conn in self.in_a_hurry)
        moving.on_answer = self._look_soon
        self.held[conn] = moving
        self.broker.clients.leaving[conn] = True
        moving.begin(now)

    def candidates(
        self, now: int, node_id: str, count: int, in_a_hurry: bool
    ) -> list[CoreConnection]:
        """Clients for that member: those that came from there first, then the newest."""
        found: list[CoreConnection] = []
        here = self.node.clients_here()
        here.reverse()
        for home in (True, False):
            for connection in here:
                conn = connection.conn
                if len(found) >= count:
                    return found
                if (
                    (connection.came_from == node_id) == home
                    and connection.moving is None
                    and (conn in self.in_a_hurry) == in_a_hurry
                    and self.again_at.get(conn, 0) <= now
                    and self.node.judge.obstacle(connection, now) is None
                ):
                    found.append(connection)
        return found

    def poll(self, now: int) -> None:
        """Clients that are held back: who is quiet now is told to go."""
        for moving in list(self.held.values()):
            self._look_at(now, moving)
        if self.held:
            self.broker.timers.set(self.poll_key, now + POLL_NS)

    def _look_at(self, now: int, moving: Moving) -> None:
        connection = moving.connection
        conn = connection.conn
        target = self.node.target(moving.target_node)
        if connection.gone or connection.moving is not moving or target is None:
            self.keep(now, moving)
        elif self._waited_enough(now, moving):
            self._try_harder(now, moving)
        elif not moving.holding:
            if moving.credits and now - moving.changed_at >= BETWEEN_TRIES_NS:
                moving.hold(now)
        elif self._rests(now, moving):
            if self.node.judge.obstacle(connection, now) is not None:
                self.keep(now, moving)
            elif self.sent_in_tick < self.node.own.rebalance_rate:
                self._send_away(now, conn, moving, target)
        elif moving.last:
            pass
        elif moving.patient:
            if now - max(moving.changed_at, moving.worked_at) > TRY_NS:
                moving.release(now)
        elif self.node.judge.hurried(moving):
            self.in_a_hurry[conn] = now
            self.keep(now, moving)

    def _rests(self, now: int, moving: Moving) -> bool:
        moving.why = self.node.judge.unrest(moving.connection, now) or ""
        return not moving.why

    def _waited_enough(self, now: int, moving: Moving) -> bool:
        """In this attempt; the time does not run while it works through the messages that it has."""
        if moving.patient and not moving.last:
            return now - moving.stage_since > OUT_OF_CREDIT_NS
        since = moving.stage_since
        if now - moving.since < DRAIN_NS:
            since = max(since, moving.worked_at)
        return now - since > self.node.own.rebalance_patience_ms * 1_000_000

    def _try_harder(self, now: int, moving: Moving) -> None:
        """No pause was long enough: it is told right behind an answer, with nothing under way. Else it stays."""
        if moving.last:
            self.again_at[moving.connection.conn] = now + AGAIN_NS
            self.why[moving.connection.conn] = moving.why or "is talking"
            self.broker.trace.count("clients_without_pause")
            self.keep(now, moving)
            return
        moving.last = True
        moving.stage_since = now
        if not moving.holding:
            moving.hold(now)

    def _look_soon(self, now: int) -> None:
        """An answer went to one that is held back."""
        self.broker.timers.set(self.poll_key, now + BEHIND_ANSWER_NS)

    def keep_all(self, now: int) -> None:
        """Nobody is sent anywhere any more."""
        for moving in list(self.held.values()):
            self.keep(now, moving)

    def keep(self, now: int, moving: Moving) -> None:
        """It stays."""
        conn = moving.connection.conn
        self.held.pop(conn, None)
        self.broker.clients.leaving.pop(conn, None)
        if moving.connection.moving is moving:
            moving.give_up(now)

    def _send_away(
        self, now: int, conn: int, moving: Moving, target: TransportConfiguration
    ) -> None:
        del self.held[conn]
        others = [
            (member.node_id, member.event_id)
            for member in self.node.cluster.topology.members.values()
            if member.node_id != moving.target_node
        ]
        moving.tell(now, target, others)
        self.gone[conn] = moving
        self.on_their_way[conn] = (moving.target_node, now)
        self.sent_in_tick += 1
        self.node.sent_one(now)
        client = moving.connection.client
        self.broker.trace.event(
            "client_redirected",
            {
                "remote": client.remote,
                "client": client.client_id or "",
                "to": moving.target_node,
                "at": f"{target.host}:{target.port}",
            },
        )

    def let_go(self, now: int) -> None:
        """Once a second: who is gone is forgotten, who does not go is helped."""
        self.sent_in_tick = 0
        for conn in [conn for conn in self.again_at if conn not in self.node.connections]:
            del self.again_at[conn]
            del self.why[conn]
        for conn in [conn for conn in self.in_a_hurry if conn not in self.node.connections]:
            del self.in_a_hurry[conn]
        for conn, moving in list(self.gone.items()):
            if conn not in self.node.connections:
                del self.gone[conn]
            elif now - moving.told_at > LINGER_NS:
                del self.gone[conn]
                self.node.cluster.host.closing.append(
                    (conn, "was sent to another node and did not go")
                )

    def coming(self, now: int) -> dict[str, int]:
        """How many are on their way to each member and not among those it has told of."""
        coming: dict[str, int] = {}
        for conn, (node_id, at) in list(self.on_their_way.items()):
            if conn in self.gone:
                at = now  # it has not even left
                self.on_their_way[conn] = (node_id, at)
            record = self.node.cluster.peers.get(node_id)
            news = None if record is None else record.clients
            if news is not None and now - at < ARRIVAL_NS and news.heard_at < at + TOLD_LATER_NS:
                coming[node_id] = coming.get(node_id, 0) + 1
            else:
                del self.on_their_way[conn]
        return coming
