"""Statistics by message, as Classic's statisticsBrokerPlugin answers them: StatisticsBroker.

A message with a reply address to `ActiveMQ.Statistics.Broker`, `….Destination.NAME` or `….Subscription` is answered by
map messages, one for the broker, for each destination, or for each consumer. NAME may have wildcards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import MULTICAST
from atalanta.kernel.routing.wildcard import WildcardMatch
from atalanta.kernel.security.security import SEND
from atalanta.kernel.tasks import Task
from atalanta.management.request.replies import strip_scheme
from atalanta.message.encoding.buffer import Writer
from atalanta.message.fqqn import split_fqqn
from atalanta.message.message import MAP, Message
from atalanta.message.properties import Int, TypedProperties

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.sessions.session import Session
    from atalanta.message.properties import PropertyValue

PREFIX: Final = "ActiveMQ.Statistics."
OF_BROKER: Final = "ActiveMQ.Statistics.Broker"
OF_DESTINATION: Final = "ActiveMQ.Statistics.Destination"
OF_SUBSCRIPTION: Final = "ActiveMQ.Statistics.Subscription"
END: Final = "ActiveMQ.Statistics.Destination.List.End.With.Null"  # a property, or behind the name: an empty map ends
INTERNAL: Final = ("$", "activemq.", PREFIX)
ANSWERS_MAX: Final = 1_000  # to one request: what is beyond is left out, and an event says so
REQUESTS_MAX: Final = 100  # whose answers are not all sent
# The cost of an answer, and of looking at a destination, in steps of tasks.
ANSWER_STEPS: Final = 100
LOOK_STEPS: Final = 5
CORRELATION_ID: Final = "JMSCorrelationID"

Figures = dict[str, "PropertyValue"]


class StatisticsRequests:
    """The service for such messages. What this broker does not measure is 0."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.unanswered: int = 0
        broker.session_services.request_prefixes[PREFIX] = self.handle

    def handle(self, now: int, request: Message, session: Session) -> None:
        """Answers a request. BrokerError SECURITY unless its user may send to its address and to that of the reply."""
        session.check(SEND, request.address)
        reply_to = request.properties.get("JMSReplyTo")
        if not isinstance(reply_to, str):
            return
        address = strip_scheme(reply_to)
        session.check(SEND, address)
        if self.unanswered >= REQUESTS_MAX:
            raise BrokerError(ILLEGAL_STATE, f"{REQUESTS_MAX} requests for statistics wait for their answers")
        self.unanswered += 1
        self.broker.store.tasks.add(now, Answers(self, request, address, self._answers(request)))

    def count_answered(self) -> None:
        """Counts a request that has all of its answers."""
        self.unanswered -= 1

    def _answers(self, request: Message) -> Iterator[Figures | None]:
        """Yields the answers, and None for what was looked at and is not answered."""
        name = request.address
        if name.startswith(OF_DESTINATION):
            wanted = name.removeprefix(OF_DESTINATION).removeprefix(".")
            yield from self._destinations(wanted.replace(END, ""), request)
            if END in wanted or request.properties.get(END) is not None:
                yield {}
        elif name.startswith(OF_SUBSCRIPTION):
            yield from self._subscriptions()
        elif name.startswith(OF_BROKER):
            yield self._of_broker()

    # -- figures ------------------------------------------------------------------------------------
    def _named(self) -> Figures:
        return {"brokerName": self.broker.config.name, "brokerId": self.broker.node_id}

    def _counts(self, queues: list[Queue], producers: int) -> Figures:
        messages = sum(queue.message_count for queue in queues)
        delivering = sum(queue.delivering_count for queue in queues)
        dequeued = sum(queue.acknowledged for queue in queues)
        return {
            "size": messages,
            "enqueueCount": sum(queue.added for queue in queues),
            "dequeueCount": dequeued,
            "dispatchCount": dequeued + delivering,
            "expiredCount": sum(queue.expired for queue in queues),
            "inflightCount": delivering,
            "messagesCached": 0,
            "averageMessageSize": sum(queue.bytes for queue in queues) // max(messages, 1),
            **dict.fromkeys(("averageEnqueueTime", "maxEnqueueTime", "minEnqueueTime"), 0.0),
            "consumerCount": sum(queue.consumer_count() for queue in queues),
            "producerCount": producers,
        }

    def _memory(self, used: int, limit: int) -> Figures:
        return {"memoryUsage": used, "memoryLimit": limit, "memoryPercentUsage": Int(used * 100 // max(limit, 1))}

    def _producers(self) -> dict[str, int]:
        """Returns the number of producers by their addresses."""
        found: dict[str, int] = {}
        for session in self.broker.clients.sessions():
            for producer in session.producers.values():
                found[producer.address or ""] = found.get(producer.address or "", 0) + 1
        return found

    def _of_broker(self) -> Figures:
        broker = self.broker
        queues = [queue for queue in broker.queues.values() if not queue.spec.internal]
        return {
            **self._named(),
            **self._counts(queues, sum(self._producers().values())),
            **self._memory(broker.memory.used_bytes, broker.memory.limit_bytes),
            **dict.fromkeys(("storePercentUsage", "tempPercentUsage"), Int(0)),
            **dict.fromkeys(("storeUsage", "storeLimit", "tempUsage", "tempLimit"), 0),
            **dict.fromkeys(("openwire", "stomp", "ssl", "stomp+ssl", "vm", "dataDirectory"), ""),
        }

    def _destinations(self, pattern: str, request: Message) -> Iterator[Figures | None]:
        """Yields the figures of queues, or of topics if the request went to a topic."""
        try:
            match = WildcardMatch(pattern, self.broker.config.wildcard)
        except ValueError:
            return
        producers = self._producers()
        topics = request.routing_type == MULTICAST
        for address in list(self.broker.addresses.values()):
            yield None
            if address.name.startswith(INTERNAL) or address.internal:
                continue
            if topics and address.multicast and match.matches(address.name):
                yield self._of_destination("topic", address.name, address, address.queues(), producers)
            for queue in [] if topics else list(address.queues()):
                if queue.spec.routing_type != MULTICAST and match.matches(queue.name):
                    yield self._of_destination("queue", queue.name, address, [queue], producers)

    def _of_destination(
        self, kind: str, name: str, address: Address, queues: list[Queue], producers: dict[str, int]
    ) -> Figures:
        return {
            **self._named(),
            "destinationName": f"{kind}://{name}",
            **self._counts(queues, producers.get(address.name, 0)),
            **self._memory(address.account.bytes, address.account.limit_bytes),
        }

    def _subscriptions(self) -> Iterator[Figures | None]:
        for session in list(self.broker.clients.sessions()):
            yield None
            for consumer in list(session.consumers.values()):
                spec = consumer.queue.spec
                if spec.internal:
                    continue
                topic = spec.routing_type == MULTICAST
                held = len(consumer.unacknowledged)
                delivered = consumer.counts.delivered
                yield {
                    **self._named(),
                    "destinationName": spec.address if topic else spec.name,
                    "clientId": session.client.client_id or "",
                    "connectionId": str(session.client.connection),
                    "sessionId": 0,
                    "selector": "" if consumer.selector is None else consumer.selector.text,
                    "enqueueCounter": delivered,
                    "dequeueCounter": delivered - held,
                    "dispatchedCounter": delivered,
                    "dispatchedQueueSize": held,
                    **dict.fromkeys(("prefetchSize", "maximumPendingMessageLimit"), Int(0)),
                    "exclusive": spec.exclusive,
                    **dict.fromkeys(("retroactive", "slowConsumer"), False),
                }

    # -- replies ------------------------------------------------------------------------------------
    def reply(self, now: int, request: Message, address: str, figures: Figures) -> bool:
        """Sends one answer. Returns False if its address is full or takes none."""
        broker = self.broker
        known = broker.addresses.get(split_fqqn(address)[0])
        if known is not None and broker.memory.refusal(known.account) >= 0:
            broker.trace.event("statistics_reply_lost", {"to": address, "why": "the address is full"})
            return False
        entries = TypedProperties()
        for name, value in figures.items():
            entries.put(name, value)
        writer = Writer()
        entries.encode(writer)
        reply = Message.create(address, writer.getvalue(), MAP, False, now // 1_000_000, 4)
        correlation = request.properties.get(CORRELATION_ID)
        if correlation is not None:
            reply.properties.put(CORRELATION_ID, correlation)
        reply.properties.put("JMSType", "Advisory")
        reply.properties_changed()
        try:
            plan = broker.publisher.prepare(now, reply)
        except BrokerError as error:
            broker.trace.event("statistics_reply_lost", {"to": address, "why": error.text})
            return False
        broker.plans.commit(plan, None, 0)
        return True


class Answers(Task):
    """The answers to one request. Those that a turn has no room for follow in the next ones."""

    def __init__(
        self, service: StatisticsRequests, request: Message, address: str, found: Iterator[Figures | None]
    ) -> None:
        self.service = service
        self.request = request
        self.address = address
        self.found = found
        self.sent = 0
        self.over = False

    def do(self, now: int, most: int) -> int:
        done = 0
        while done < most and not self.over:
            done += self._step(now)
        return done

    def ended(self) -> bool:
        return self.over

    def _step(self, now: int) -> int:
        """Looks at the next destination or consumer, and sends its answer; returns the cost."""
        try:
            figures = next(self.found)
        except StopIteration:
            self._end()
            return 1
        if figures is None:
            return LOOK_STEPS
        if self.sent == ANSWERS_MAX:
            trace = self.service.broker.trace
            trace.event("statistics_cut", {"request": self.request.address, "answers": ANSWERS_MAX})
            self._end()
            return LOOK_STEPS
        self.sent += 1
        if not self.service.reply(now, self.request, self.address, figures):
            self._end()
        return ANSWER_STEPS

    def _end(self) -> None:
        self.over = True
        self.service.count_answered()
