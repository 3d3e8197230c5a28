"""Gateway over `atalanta.client.blocking`: one connection that always stays with its node."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from urllib.parse import quote

from atalanta import client
from atalanta.client import Chunk, Lease, LostRange, Plan, Position, blocking
from atalanta.spark.errors import (
    DuplicateRow,
    GatewayError,
    LeaseEnded,
    LeaseTaken,
    LoginRefused,
    LogViewMissing,
    NodeUnavailable,
    QueueMissing,
    QueueRecreated,
    RangeIncomplete,
)
from atalanta.spark.gateway.credit_wait import CreditWait
from atalanta.spark.gateway.gateway import Credentials, Gateway, GatewayMember, OutMessage
from atalanta.spark.gateway.untold_drops import UntoldDrops

NO_LIMIT: Final = -1
# Decisions of the sink: each query has a queue `DECISIONS.<query>` of this address at one node.
DECISIONS: Final = "atalanta.spark.decisions"
TAKEN_OVER: Final = "taken_over"  # the property of a message beside a decision
# XAException: an operator has rolled the branch back, or committed it.
XA_HEURRB: Final = 6
XA_HEURCOM: Final = 7
XID_FORMAT: Final = 0x4154_4C53  # of the branches that the sink prepares
CREDIT_CHECK_S: Final = 0.02
OPENWIRE: Final = "speaks OpenWire"
# The client's errors, subclasses first. After an error of the first group the connection is unusable.
GONE: Final = (
    client.ConnectionLost,
    client.CallTimedOut,
    client.Closed,
    client.SessionRejected,
    client.TransactionRolledBack,
    client.TransactionOutcomeUnknown,
)
TRANSLATED: Final[tuple[tuple[type[client.ClientError], type[GatewayError]], ...]] = (
    (client.NotAuthorized, LoginRefused),
    (client.QueueDoesNotExist, QueueMissing),
    (client.DuplicateId, DuplicateRow),
    (client.LeaseEnded, LeaseEnded),
    (client.Fenced, LeaseTaken),
    (client.IncarnationChanged, QueueRecreated),
    (client.RangeLost, RangeIncomplete),
    (client.LogViewUnsupported, LogViewMissing),
)
# What to do about a broker's refusal of a row.
REMEDIES: Final[tuple[tuple[type[client.BrokerRefused], str], ...]] = (
    (client.AddressFull, "Let its consumers go on, raise its max-size-bytes, or set its address-full-policy PAGE"),
    (client.AddressDoesNotExist, "Create it, or set its auto-create-addresses"),
    (client.QueueDoesNotExist, "Create it, or set auto-create-queues of its address"),
    (
        client.DuplicateId,
        "The address has had this duplicate_id before, or another row of the batch has it. Leave repeated rows out "
        "(dropDuplicates), or give them ids of their own",
    ),
)


class CoreGateway:
    """The gateway to a real node, see Gateway. The client's connection accepts calls of several threads."""

    def __init__(self, server: str, connection: blocking.Connection, block_timeout_s: float = 120.0) -> None:
        self.server = server
        self.connection = connection
        self.block_timeout_s = block_timeout_s
        self.drops = UntoldDrops(server, connection)

    def topology(self) -> Sequence[GatewayMember]:
        with translated(self.server):
            return members_of(self.connection)

    def queues(self, pattern: str) -> Sequence[str]:
        with translated(self.server):
            return self.connection.logview(pattern).queues()

    def position(self, queue: str) -> Position:
        with translated(self.server):
            return self.connection.logview(queue).position()

    def plan(
        self, queue: str, incarnation: str, start: int, max_messages: int, max_bytes: int
    ) -> Plan:
        with translated(self.server):
            return self.connection.logview(queue, incarnation).plan(
                start,
                None if max_messages == NO_LIMIT else max_messages,
                None if max_bytes == NO_LIMIT else max_bytes,
            )

    def read(
        self,
        queue: str,
        incarnation: str,
        start: int,
        end: int,
        max_bytes: int,
        selector: str | None,
        body_bytes_max: int,
    ) -> Iterator[Chunk]:
        view = self.connection.logview(queue, incarnation)
        with translated(self.server):
            yield from view.read_raw(start, end, selector, max_bytes, body_bytes_max, True)

    def ack_through(self, queue: str, incarnation: str, group: str, epoch: int, end: int) -> int:
        with translated(self.server):
            return self.connection.logview(queue, incarnation).ack_through(group, epoch, end)

    def dead_letter(
        self, queue: str, incarnation: str, group: str, epoch: int, sequence: int, why: str
    ) -> None:
        with translated(self.server):
            self.connection.logview(queue, incarnation).dead_letter(group, epoch, sequence, why)

    def lease(self, queue: str, group: str, owner: str, ttl_ms: int, epoch: int) -> Lease:
        with translated(self.server):
            return self.connection.logview(queue).lease(group, owner, ttl_ms, epoch)

    def retain(
        self, queue: str, incarnation: str, group: str, epoch: int, limits: tuple[int, int], replay_from: int
    ) -> int:
        with translated(self.server):
            return self.connection.logview(queue, incarnation).retain(
                group, epoch, *limits, replay_from
            )

    def lost_ranges(
        self, queue: str, incarnation: str, start: int, end: int
    ) -> Sequence[LostRange]:
        with translated(self.server):
            return self.connection.logview(queue, incarnation).lost_ranges(start, end)

    def seek(self, queue: str, timestamp_ms: int) -> int:
        with translated(self.server):
            return self.connection.logview(queue).seek(timestamp_ms)

    def prepare(self, messages: Sequence[OutMessage], branch: str) -> None:
        blocked = CreditWait(self.server, self.block_timeout_s)
        with (
            translated(self.server),
            remedied(),
            self.connection.xa_resource.branch(xid_of(branch), blocked) as opened,
        ):
            for message in messages:
                self.drops.check(message.address.partition("::")[0])
                opened.send(destination(message), client_message(message))
            opened.prepare()

    def prepared_branches(self) -> list[str]:
        with translated(self.server):
            return [
                f"{xid.global_transaction_id.decode()}/{xid.branch_qualifier.decode()}"
                for xid in self.connection.xa_resource.recover()
                if xid.format_id == XID_FORMAT
            ]

    def commit_branch(self, branch: str) -> bool:
        with translated(self.server):
            return end_branch(self.connection, xid_of(branch), True)

    def roll_back_branch(self, branch: str) -> bool:
        with translated(self.server):
            return end_branch(self.connection, xid_of(branch), False)

    def decisions(self, query: str) -> dict[int, str]:
        queue = f"{DECISIONS}.{query}"
        found: dict[int, str] = {}
        with translated(self.server):
            if not self.connection.query_queue(queue).exists:
                return found
            with self.connection.consumer(f"{DECISIONS}::{queue}", browse=True) as browser:
                for message in browser:
                    if TAKEN_OVER not in message.properties:
                        found.setdefault(int(str(message.properties["batch"])), str(message.text))
        return found

    def decide(self, query: str, batch: int, decision: str) -> None:
        queue = f"{DECISIONS}.{query}"
        message = client.Message(
            text=decision, properties={"batch": batch}, duplicate_id=f"{query}/{batch}"
        )
        with translated(self.server):
            self._create_decisions(queue)
            try:
                self._send(f"{DECISIONS}::{queue}", message)
            except client.DuplicateId:
                pass  # the first decision counts

    def take_over(self, query: str, batch: int) -> None:
        message = client.Message(properties={"batch": batch, TAKEN_OVER: True})
        with translated(self.server):
            self._send(f"{DECISIONS}::{DECISIONS}.{query}", message)

    def is_taken_over(self, query: str, batch: int) -> bool:
        queue, selector = f"{DECISIONS}.{query}", f"{TAKEN_OVER} AND batch = {batch}"
        with translated(self.server):
            if not self.connection.query_queue(queue).exists:
                return False
            with self.connection.consumer(f"{DECISIONS}::{queue}", selector, browse=True) as browser:
                return next(browser, None) is not None

    def _send(self, address: str, message: client.Message) -> None:
        """Sends a message, durably. Waits for credits no longer than a branch does."""
        blocked = CreditWait(self.server, self.block_timeout_s)
        since_s = time.monotonic()
        with self.connection.producer(address) as producer:
            producer.send_soon(message)
            while producer.blocked:
                blocked(address.partition("::")[0], time.monotonic() - since_s)
                time.sleep(CREDIT_CHECK_S)
                self.connection.refresh()
            try:
                producer.drain()
            except client.SendFailed as failed:
                raise failed.errors[0] from failed

    def _create_decisions(self, queue: str) -> None:
        """Creates the queue, and its address: nodes without auto-create-addresses want that first."""
        if self.connection.query_queue(queue).exists:
            return
        if not self.connection.query_address(DECISIONS).exists:
            try:
                self.connection.create_address(DECISIONS, "anycast")
            except client.AddressExists:
                pass  # another query was faster
        self.connection.create_queue(queue, DECISIONS, "anycast", ignore_existing=True)

    def forget_decisions(self, query: str, before: int) -> None:
        queue = f"{DECISIONS}::{DECISIONS}.{query}"
        with (
            translated(self.server),
            self.connection.consumer(queue, f"batch < {before}") as consumer,
        ):
            while (message := consumer.receive(0)) is not None:
                message.acknowledge()

    def close(self) -> None:
        self.connection.close()


def connect(server: str, credentials: Credentials) -> Gateway:
    """Connects to a node. Raises NodeUnavailable or LoginRefused."""
    return CoreGateway(server, connection_to(server, credentials), credentials.block_timeout_s)


def connection_to(server: str, credentials: Credentials) -> blocking.Connection:
    """Returns a connection of the client. Raises NodeUnavailable, LoginRefused or GatewayError."""
    with translated(server):
        return blocking.connect(
            url_of(server, credentials), user=credentials.user, password=credentials.password
        )


def url_of(server: str, credentials: Credentials) -> str:
    """Returns the server's URL with the options that the source needs: one node, no reconnect, short waits."""
    base = server if "://" in server else f"tcp://{server}"
    settings = {
        "stay": "true",
        "reconnectAttempts": "0",
        "initialConnectAttempts": "1",
        "connect-timeout-millis": str(max(1, int(credentials.connect_timeout_s * 1000))),
        "callTimeout": str(max(1, int(credentials.request_timeout_s * 1000))),
    }
    if credentials.body_bytes_max is not None:
        settings["largeMessageMaxBytes"] = str(credentials.body_bytes_max)
    settings.update((name, quote(value, safe="")) for name, value in credentials.tls)
    added = "&".join(f"{name}={value}" for name, value in settings.items())
    return f"{base}{'&' if '?' in base else '?'}{added}"


@contextmanager
def translated(server: str) -> Iterator[None]:
    """Translates errors of the client into those of errors.py, with the server in their text."""
    try:
        yield
    except GONE as error:
        if OPENWIRE in str(error):  # ActiveMQ Classic: a retry is useless
            raise GatewayError(f"{server}: {error}", error.code) from error
        raise NodeUnavailable(f"{server}: {error}", error.code) from error
    except client.ClientError as error:
        for known, kind in TRANSLATED:
            if isinstance(error, known):
                raise kind(f"{server}: {error}", error.code) from error
        raise GatewayError(f"{server}: {error}", error.code) from error


@contextmanager
def remedied() -> Iterator[None]:
    """Adds what to do to the text of a broker's refusal."""
    try:
        yield
    except client.BrokerRefused as error:
        for kind, remedy in REMEDIES:
            if isinstance(error, kind):
                raise type(error)(f"{error.text}. {remedy}", error.code) from error
        raise


def members_of(connection: blocking.Connection) -> list[GatewayMember]:
    """Returns the nodes of the cluster that have a connector."""
    connection.refresh()
    return [
        GatewayMember(
            member.node_id,
            f"{bracketed(member.host)}:{member.port}",
            None if member.backup_host is None else f"{bracketed(member.backup_host)}:{member.backup_port}",
        )
        for member in connection.topology
        if member.host is not None and member.port is not None
    ]


def end_branch(connection: blocking.Connection, xid: client.Xid, commits: bool) -> bool:
    """Commits a prepared branch or rolls it back. Returns False if the node does not have it.

    An operator may have ended it in the same way before; in the other way is an error.
    """
    resource = connection.xa_resource
    try:
        if commits:
            resource.commit(xid)
        else:
            resource.rollback(xid)
    except client.UnknownBranch:
        return False
    except client.BranchRefused as error:
        if error.code != (XA_HEURCOM if commits else XA_HEURRB):
            raise
        resource.forget(xid)
    return True


def xid_of(branch: str) -> client.Xid:
    """Returns the xid of a branch name `query/batch/attempt`: the attempt is the branch qualifier."""
    transaction, _, attempt = branch.rpartition("/")
    return client.Xid(XID_FORMAT, attempt.encode(), transaction.encode())


def bracketed(host: str | None) -> str:
    """Returns the host; an IPv6 address gets brackets, since a port follows."""
    return f"[{host}]" if host is not None and ":" in host else str(host)


def destination(message: OutMessage) -> str:
    """Returns the destination with a prefix, from which the client takes the routing type."""
    prefixes = {"anycast": "queue://", "multicast": "topic://"}
    return prefixes.get(message.routing or "", "") + message.address


def client_message(message: OutMessage) -> client.Message:
    return client.Message(
        message.body,
        text=message.text,
        properties=message.properties,
        durable=message.durable,
        priority=message.priority,
        expires_at_ms=message.expires_at_ms,
        timestamp_ms=message.timestamp_ms,
        group_id=message.group_id,
        correlation_id=message.correlation_id,
        reply_to=message.reply_to,
        duplicate_id=message.duplicate_id,
        type=message.kind,
    )
