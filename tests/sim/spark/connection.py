"""Connections of a simulated Spark driver or executor to one node, with the requests of CoreGateway."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

from atalanta.kernel.queue.spec import ANYCAST
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.sim.checks.ledger import Violation
from atalanta.sim.clients.client import SimClient, then
from atalanta.sim.world.network import Network
from atalanta.sim.world.world import World
from atalanta.spark.errors import NodeUnavailable
from atalanta.spark.gateway.core_gateway import DECISIONS, TAKEN_OVER, XID_FORMAT, xid_of
from atalanta.spark.gateway.gateway import GatewayMember
from atalanta.wire.core.client.errors import AddressExists, ClientError, DuplicateId, QueueExists
from atalanta.wire.core.client.reply import Reply
from atalanta.wire.core.client.request import FAIL
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.query import BindingQuery, QueueQuery
from atalanta.wire.core.packets.queue import CreateAddress, CreateQueueV2
from atalanta.wire.core.packets.transaction import (
    XaCommit,
    XaEnd,
    XaInDoubt,
    XaPrepare,
    XaRollback,
    XaStart,
    Xid,
)

OUT: Final = "spark.out"
XAER_NOTA: Final = -4
Request = Generator[Reply, Any, object]
Done = Callable[[object], None]


class NodeConnection(SimClient):
    """A connection that makes one request after another. A loss fails the current one with NodeUnavailable."""

    resume = False

    def __init__(self, world: World, network: Network, name: str, target: str) -> None:
        super().__init__(world, network, name, target)
        self.current: Request | None = None
        self.done: Done = ignore
        self.waiting: list[tuple[str, tuple[object, ...], Done]] = []

    def ask(self, method: str, arguments: tuple[object, ...], done: Done) -> None:
        """Makes a request once the connection is there. `done` gets its result, or a NodeUnavailable."""
        self.waiting.append((method, arguments, done))
        self._next()

    def die(self) -> None:
        """Ends the process that the connection belongs to: nobody waits for an answer."""
        self.waiting = []
        self.done = ignore
        self.restart()

    def on_session(self) -> None:
        self.session.start()
        self._next()

    def on_lost(self) -> None:
        if self.current is not None:
            self.current.close()
            self._finish(NodeUnavailable(f"{self.target} is away"))

    def _next(self) -> None:
        """Begins the next request, unless the session is away or lost at this very instant."""
        if self.ready and self.session.open and self.current is None and self.waiting:
            method, arguments, self.done = self.waiting.pop(0)
            self.current = getattr(self, method)(*arguments)
            self._go_on(None, None)

    def _go_on(self, value: object, error: ClientError | None) -> None:
        request = self.current
        assert request is not None
        try:
            reply = request.send(value) if error is None else request.throw(error)
        except StopIteration as end:
            self._finish(end.value)
            self._next()
            return
        except ClientError as refused:
            if not self.session.open:  # the answer before it was the loss
                self._finish(NodeUnavailable(f"{self.target} is away"))
                return
            raise Violation(f"{self.name} at {self.target}: {refused.text}") from refused
        then(reply, lambda reply: self._answered(request, reply))

    def _answered(self, request: Request, reply: Reply) -> None:
        if request is not self.current:
            return
        if reply.error is None:
            self._go_on(reply.value, None)
        elif not self.cut_short(reply.error):
            self._go_on(None, reply.error)

    def _finish(self, result: object) -> None:
        done, self.done, self.current = self.done, ignore, None
        done(result)

    def topology(self) -> Request:
        yield self._call(QueueQuery(OUT))  # the node answers now
        return [GatewayMember(node_id, f"{host}:{port}") for node_id, (host, port) in self.view.items()]

    def _call(self, packet: Packet) -> Reply:
        return self.session.request(packet, FAIL)


class BranchConnection(NodeConnection):
    """A connection with an XA session."""

    transacted = True
    xa = True

    def prepare(self, keys: list[str], branch: str) -> Request:
        xid = xid_of(branch)
        check((yield self._call(XaStart(xid))), branch)
        producer = self.session.producer(OUT)
        for key in keys:
            message = Message.create(OUT, key.encode(), 4, True, self.world.now // 1_000_000, 4)
            message.properties.put("key", key)
            message.properties.put("branch", branch)
            message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
            message.properties_changed()
            producer.send_message(message, False)
        self.session.close_producer(producer)
        check((yield self._call(XaEnd(xid, False))), branch)
        check((yield self._call(XaPrepare(xid))), branch)
        return branch

    def prepared_branches(self) -> Request:
        answer = yield self._call(XaInDoubt())
        return [name_of(xid) for xid in answer.xids if xid.format_id == XID_FORMAT]

    def commit_branch(self, branch: str) -> Request:
        return known((yield self._call(XaCommit(xid_of(branch), False))), branch)

    def roll_back_branch(self, branch: str) -> Request:
        return known((yield self._call(XaRollback(xid_of(branch)))), branch)


class DecisionConnection(NodeConnection):
    """A connection with a session that commits each send and acknowledgement by itself."""

    def decisions(self, query: str) -> Request:
        queue = f"{DECISIONS}.{query}"
        found: dict[int, str] = {}
        if not (yield self._call(QueueQuery(queue))).exists:
            return found
        browser, created = self.session.consumer(queue, None, True)
        yield created
        yield browser.force()
        while (delivery := browser.take()) is not None:
            if delivery.message.properties.get(TAKEN_OVER) is not None:
                continue
            batch = int(str(delivery.message.properties.get("batch")))
            found.setdefault(batch, delivery.message.body.decode())
        yield self.session.close_consumer(browser)
        return found

    def decide(self, query: str, batch: int, decision: str) -> Request:
        yield from self._create(f"{DECISIONS}.{query}")
        yield from self._send(query, decision.encode(), {"batch": batch, "_AMQ_DUPL_ID": f"{query}/{batch}"})
        return None

    def take_over(self, query: str, batch: int) -> Request:
        yield from self._send(query, b"", {"batch": batch, TAKEN_OVER: True})
        return None

    def is_taken_over(self, query: str, batch: int) -> Request:
        selector = f"{TAKEN_OVER} AND batch = {batch}"
        browser, created = self.session.consumer(f"{DECISIONS}.{query}", selector, True)
        yield created
        yield browser.force()
        found = browser.take() is not None
        yield self.session.close_consumer(browser)
        return found

    def _send(
        self, query: str, body: bytes, properties: dict[str, int | str | bool]
    ) -> Generator[Reply, Any, None]:
        destination = f"{DECISIONS}::{DECISIONS}.{query}"
        message = Message.create(destination, body, 4, True, self.world.now // 1_000_000, 4)
        for name, value in properties.items():
            message.properties.put(name, value)
        message.properties.put("_AMQ_ROUTING_TYPE", Byte(ANYCAST))
        message.properties_changed()
        producer = self.session.producer(destination)
        sending = producer.send_message(message)
        sending.reply = confirmed = Reply()
        try:
            yield confirmed
        except DuplicateId:
            pass
        self.session.close_producer(producer)

    def _create(self, queue: str) -> Generator[Reply, Any, None]:
        if (yield self._call(QueueQuery(queue))).exists:
            return
        if not (yield self._call(BindingQuery(DECISIONS))).exists:
            try:
                yield self._call(CreateAddress(DECISIONS, [ANYCAST]))
            except AddressExists:
                pass
        try:
            yield self._call(CreateQueueV2(DECISIONS, queue, routing_type=ANYCAST))
        except QueueExists:
            pass

    def forget_decisions(self, query: str, before: int) -> Request:
        consumer, created = self.session.consumer(f"{DECISIONS}.{query}", f"batch < {before}")
        yield created
        yield consumer.force()
        while (delivery := consumer.take()) is not None:
            yield consumer.acknowledge_and_wait(delivery, True)
        yield self.session.close_consumer(consumer)
        return None


def check(answer: Any, branch: str) -> None:
    if answer.error:
        raise Violation(f"branch {branch}: {answer.message}")


def known(answer: Any, branch: str) -> bool:
    """Returns False if the node does not know the branch. Raises Violation after any other error."""
    if answer.error and answer.code != XAER_NOTA:
        raise Violation(f"branch {branch}: {answer.message}")
    return not answer.error


def name_of(xid: Xid) -> str:
    return f"{xid.global_transaction_id.decode()}/{xid.branch_qualifier.decode()}"


def ignore(result: object) -> None:
    return None
