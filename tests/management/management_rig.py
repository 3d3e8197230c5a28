"""Management requests put to a broker on the bench, and their answers."""

from __future__ import annotations

import json

from atalanta.kernel.ports import Process
from atalanta.kernel.sessions.session import Session
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.management.management import ManagementService
from atalanta.management.request.jobs import MANAGEMENT_TIMER
from atalanta.management.resources.registry import ResourceRegistry
from atalanta.management.status import NodeStatus
from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.message.message import Message
from tests.kernel.broker_rig import Bench, notifications_of

REPLIES = "replies"


class Refused(Exception):
    """The operation failed; the text is what the client sees."""


class Desk(Bench):
    """A bench with a queue for replies. `ask` waits for the answer, step by step."""

    def __init__(
        self,
        config: BrokerConfig | None = None,
        settings: AddressSettingsRepository | None = None,
        paging: bool = False,
        process: Process | None = None,
    ) -> None:
        super().__init__(config, settings, paging)
        self.process = process or Process()
        self.steps = 0
        self.closed: list[int] = []
        self.open_desk()

    def open_desk(self) -> None:
        notifications = notifications_of(self.broker)
        self.resources = ResourceRegistry()
        self.management = ManagementService(
            self.broker, notifications, self.resources, NodeStatus("9.9"), self.process
        )
        self.management.start(self.now)
        self.broker.clients.close = lambda connection, why: self.closed.append(connection)
        self.queue(REPLIES, routing_type=0, durable=False)

    def put(
        self, resource: str, operation: str | None, *given: object, session: Session | None = None
    ) -> None:
        self.put_with({}, resource, operation, *given, session=session)

    def put_with(
        self,
        properties: dict[str, object],
        resource: str,
        operation: str | None,
        *given: object,
        session: Session | None = None,
    ) -> None:
        """Asks with further properties of the request."""
        writer = Writer()
        writer.nullable_simple_string(json.dumps(list(given)) if operation else None)
        request = Message.create("activemq.management", writer.getvalue(), 0, False, 0, 4)
        request.properties.put("_AMQ_ResourceName", resource)
        if operation is not None:
            request.properties.put("_AMQ_OperationName", operation)
        request.properties.put("JMSReplyTo", REPLIES)
        for name, value in properties.items():
            request.properties.put(name, value)  # type: ignore[arg-type]
        request.properties_changed()
        self.management.handle(self.now, request, session)

    def get(self, resource: str, attribute: str) -> object:
        """The value of an attribute."""
        request = Message.create("activemq.management", b"", 0, False, 0, 4)
        request.properties.put("_AMQ_ResourceName", resource)
        request.properties.put("_AMQ_Attribute", attribute)
        request.properties.put("JMSReplyTo", "queue://" + REPLIES)
        request.properties_changed()
        self.management.handle(self.now, request)
        return self.answer()

    def ask(
        self, resource: str, operation: str, *given: object, session: Session | None = None
    ) -> object:
        """Returns the answer of the operation; Refused if it failed."""
        self.put(resource, operation, *given, session=session)
        return self.answer()

    def json(self, resource: str, operation: str, *given: object) -> object:
        """An answer that is JSON text, read."""
        answer = self.ask(resource, operation, *given)
        assert isinstance(answer, str)
        return json.loads(answer)

    def json_attribute(self, resource: str, attribute: str) -> list[dict[str, object]]:
        """An attribute that is JSON text, a list."""
        answer = self.get(resource, attribute)
        assert isinstance(answer, str)
        found: list[dict[str, object]] = json.loads(answer)
        return found

    def answer(self) -> object:
        self.steps = 0
        replies = self.broker.queues[REPLIES]
        while True:
            self.settle()
            waiting = replies.live()
            if waiting:
                break
            assert self.timers.due.pop(MANAGEMENT_TIMER, None) is not None, "no answer comes"
            self.steps += 1
            self.management.on_timer(self.now)
        reply = waiting[-1].message
        self.broker.store.acknowledge(waiting, None, 0)
        assert reply.kind == 3
        text = Reader(reply.body).nullable_simple_string("reply")
        value = None if text is None else json.loads(text)[0]
        if not reply.properties.get("_AMQ_OperationSucceeded"):
            raise Refused(value)
        return value

    def fill(self, address: str, count: int, durable: bool = True, **properties: object) -> None:
        for number in range(count):
            body = str(number).encode()
            message = self.message(address, body, durable, number=number, **properties)
            self.broker.publisher.publish(self.now, message, None, 0)
        self.settle()

    def bodies(self, queue: str) -> list[bytes]:
        return [reference.message.body for reference in self.broker.queues[queue].live()]
