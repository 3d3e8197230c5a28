"""A client that sends any well-formed packet at any time."""

from __future__ import annotations

import random

from atalanta.kernel.broker import invariants
from atalanta.kernel.broker.broker import SWEEP_TIMER
from atalanta.kernel.transactions import xa
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import PacketsConfirmed, Ping
from atalanta.wire.core.packets.consumer import (
    Acknowledge,
    ConsumerClose,
    CreateConsumer,
    Expired,
    FlowToken,
    ForceConsumerDelivery,
    IndividualAcknowledge,
    Settle,
)
from atalanta.wire.core.packets.logview import (
    LogAckThrough,
    LogDeadLetter,
    LogLease,
    LogLost,
    LogPlan,
    LogPosition,
    LogQueues,
    LogRead,
    LogSeek,
)
from atalanta.wire.core.packets.message import SendContinuation, SendLargeMessage, SendMessage
from atalanta.wire.core.packets.producer import RequestProducerCredits
from atalanta.wire.core.packets.query import BindingQuery, QueueQuery
from atalanta.wire.core.packets.queue import CreateAddress, CreateSharedQueueV2, DeleteQueue
from atalanta.wire.core.packets.session import (
    AddMetadataV2,
    CreateSessionV2,
    ReattachSession,
    SessionClose,
    SessionStart,
    SessionStop,
    UniqueAddMetadata,
)
from atalanta.wire.core.packets.transaction import (
    Commit,
    Rollback,
    XaCommit,
    XaEnd,
    XaFailed,
    XaForget,
    XaInDoubt,
    XaJoin,
    XaPrepare,
    XaResume,
    XaRollback,
    XaStart,
    XaSuspend,
    Xid,
)
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import Client, Server, queue_request, text_message

NAMES = ("a", "b", "c", "a::b", "b::b", "activemq.notifications", "activemq.management", "")
FILTERS = (None, None, "colour = 'red'", "price >", "x BETWEEN 1 AND 3")


class Chaos:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.server = Server()
        self.server.settings.add(
            "#", {"max_delivery_attempts": 3, "dead_letter_address": "c", "expiry_address": "b"}
        )
        self.clients: list[Client] = []

    def client(self) -> Client:
        alive = [client for client in self.clients if client.conn in self.server.connections]
        self.clients = alive
        if len(alive) < 4 and self.random.random() < 0.3 or not alive:
            user, password = self.random.choice((("admin", "admin"), ("cluster", "secret")))
            made = self.server.login(
                user, password, self.random.random() < 0.4, self.random.choice((-1, 500))
            )
            if self.random.random() < 0.5:
                made.send(SessionClose())
                made.open_session(10, user, password, window=500, xa=True)
            self.clients.append(made)
            return made
        return self.random.choice(alive)

    def small(self) -> int:
        return self.random.choice((-1, 0, 1, 2, 3, 7, 1 << 40))

    def message_id(self) -> int:
        live = list(self.server.broker.store.messages)
        return self.random.choice(live) if live and self.random.random() < 0.8 else self.small()

    def message(self) -> SendMessage:
        pick = self.random
        properties: dict[str, object] = {"colour": pick.choice(("red", "blue"))}
        if pick.random() < 0.3:
            properties["_AMQ_DUPL_ID"] = pick.choice("xyz")
        if pick.random() < 0.1:
            ids = list(self.server.broker.queue_registry.by_id) or [1]
            properties["_AMQ_ROUTE_TO"] = pick.choice(ids).to_bytes(8, "big")
        kind = pick.choice((None, 0, 1, 5))
        made = text_message(pick.choice(NAMES), "text", pick.random() < 0.7, kind, **properties)
        made.priority = pick.choice((4, 4, 9, -3, 100))
        if pick.random() < 0.2:
            made.expiration = self.server.now // 1_000_000 + pick.choice((-5, 5_000))
        return SendMessage(
            made, requires_response=pick.random() < 0.7, correlation=self.small(), sender_id=0
        )

    def packet(self) -> Packet:
        pick = self.random
        name = pick.choice(NAMES)
        wanted = pick.randrange(40)
        if wanted < 9:
            return self.message()
        if wanted >= 34:
            return self.xa_packet()
        if wanted < 12:
            return CreateConsumer(
                consumer_id=pick.randrange(4),
                queue=name,
                filter=pick.choice(FILTERS),
                browse_only=pick.random() < 0.2,
                priority=pick.choice((4, 9)),
            )
        if wanted < 14:
            return FlowToken(pick.randrange(5), pick.choice((-1, 0, 1, 500, -77)))
        if wanted < 18:
            if pick.random() < 0.2:
                delay_ms = pick.choice((-1, 0, 5_000, 1 << 62))
                return Settle(9, pick.randrange(5), self.message_id(), pick.random() < 0.5, delay_ms)
            kind = pick.choice((Acknowledge, IndividualAcknowledge))
            return kind(pick.randrange(5), self.message_id(), pick.random() < 0.5)
        if wanted < 20:
            return pick.choice((Commit(self.small()), Rollback(pick.random() < 0.5)))
        if wanted < 23:
            return queue_request(
                name, pick.choice(NAMES), pick.choice((-1, 0, 1)),
                filter=pick.choice(FILTERS), durable=pick.random() < 0.7,
                temporary=pick.random() < 0.3, purge_on_no_consumers=pick.random() < 0.2,
                max_consumers=pick.choice((-1, 1)), auto_created=pick.random() < 0.5,
            )  # fmt: skip
        if wanted < 28:
            return self.log_packet(name)
        return self.rare_packet(name)

    def xa_packet(self) -> Packet:
        pick = self.random
        xid = Xid(1, pick.choice((b"a", b"b", b"c")), b"")
        return pick.choice(
            (
                XaStart(xid), XaStart(xid), XaEnd(xid, False), XaEnd(xid, True), XaPrepare(xid), XaPrepare(xid),
                XaCommit(xid, False), XaCommit(xid, True), XaRollback(xid), XaInDoubt(), XaForget(xid),
                XaFailed(xid), XaJoin(xid), XaResume(xid), XaSuspend(),
            )
        )  # fmt: skip

    def log_packet(self, name: str) -> Packet:
        pick = self.random
        low, high = pick.randrange(5), pick.randrange(30)
        return pick.choice(
            (
                LogPosition(1, name),
                LogPlan(
                    correlation=2,
                    queue=name,
                    incarnation="",
                    start=low,
                    max_messages=self.small(),
                    max_bytes=self.small(),
                ),
                LogRead(
                    correlation=3,
                    queue=name,
                    incarnation="",
                    start=low,
                    end=high,
                    max_bytes=pick.choice((-1, 0, 500)),
                    selector=pick.choice(FILTERS),
                ),
                LogAckThrough(
                    correlation=4,
                    queue=name,
                    incarnation="",
                    group="g",
                    epoch=pick.randrange(3),
                    end=high,
                ),
                LogLease(
                    correlation=5,
                    queue=name,
                    group=pick.choice("gh"),
                    owner="me",
                    ttl_ms=pick.choice((0, 5_000, -1)),
                    epoch=low,
                ),
                LogLost(correlation=6, queue=name, incarnation="", start=low, end=high),
                LogSeek(7, name, self.small()),
                LogQueues(8, name),
                LogDeadLetter(9, name, "", "g", pick.randrange(3), high, "why"),
            )
        )

    def rare_packet(self, name: str) -> Packet:
        pick = self.random
        shared = CreateSharedQueueV2(
            address=pick.choice(NAMES),
            queue=name,
            filter=pick.choice(FILTERS),
            durable=pick.random() < 0.5,
        )
        shared.routing_type = pick.choice((-1, 0, 1))
        return pick.choice(
            (
                shared,
                ForceConsumerDelivery(pick.randrange(5), self.small()),
                ConsumerClose(pick.randrange(5)),
                Expired(pick.randrange(5), self.message_id()),
                DeleteQueue(name),
                CreateAddress(
                    address=name, routing_types=[pick.choice((0, 1, 2))], auto_created=True
                ),
                QueueQuery(name),
                BindingQuery(name),
                RequestProducerCredits(pick.choice((0, 500)), name),
                SendLargeMessage(text_message(name)),
                SendContinuation(
                    b"x" * 99,
                    continues=pick.random() < 0.5,
                    body_size=99,
                    requires_response=True,
                    correlation=self.small(),
                    sender_id=0,
                ),
                SessionStart(),
                SessionStop(),
                SessionClose(),
                AddMetadataV2("jms-client-id", pick.choice("xy"), True),
                UniqueAddMetadata("jms-client-id", pick.choice("xy"), True),
                PacketsConfirmed(3),
                Ping(5_000),
            )
        )

    def step(self) -> None:
        pick = self.random.random()
        server = self.server
        if pick < 0.80:
            client = self.client()
            channel = self.random.choice((10, 10, 10, 11))
            if channel == 11 and self.random.random() < 0.5:
                client.send(
                    CreateSessionV2(
                        name="more", session_channel=11, version=136, user="admin", password="admin"
                    ),
                    1,
                )
            else:
                client.send(self.packet(), channel)
        elif pick < 0.90:
            server.settle()
        elif pick < 0.92:
            lost = self.client()
            server.lost(lost.conn)
            if self.random.random() < 0.5:
                again = server.greeted()
                number = self.random.choice((-1, 0, 5, 20, 100))
                again.send(ReattachSession(f"session-{lost.conn}-10", number), 1)
                self.clients.append(again)
        elif pick < 0.94:
            server.compact(server.journal.durable)
        elif pick < 0.95:
            self.clients = []
            server.restart()
        else:
            server.now += SECOND
            server.now += self.random.choice((0, 0, 0, 70 * SECOND))
            server.check_alive()
            server.broker.on_timer(server.now, xa.XA_TIMER)
            if self.random.random() < 0.1:
                for branch in server.broker.branches.list_prepared():
                    server.broker.branches.end_by_operator(
                        server.now, xa.identifier(branch.xid), self.random.random() < 0.5
                    )
            server.broker.log_views.end_leases(server.now)
            server.broker.expiry.scan(server.now)
            server.broker.on_timer(server.now, SWEEP_TIMER)
        server.turn()
        invariants.validate(server.broker)
