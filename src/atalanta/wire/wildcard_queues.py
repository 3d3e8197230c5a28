"""Consumers of several queues by one name with wildcards: they also get the queues that are created later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.queue.spec import ANYCAST
from atalanta.kernel.sessions.clients import ClientObserver

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.wildcard_addresses import AddressPattern
    from atalanta.kernel.security.security import Identity
    from atalanta.wire.client_output import ClientOutput

PATTERNS_MAX: Final = 20_000  # of one user
LOOKS_A_TURN: Final = 2_000  # comparisons behind which other inputs have their turn
KEYS_AT_ONCE: Final = 100
TOLD_MAX: Final = 10_000
HIDDEN_PREFIX: Final = "$"  # names of the broker's own queues


class WildcardConsumer:
    """A consumer with a pattern. `add` creates its part for one more queue: (now, queue).

    `later`: it also gets the queues that are created later, as a browser does not.
    """

    def __init__(self, pattern: AddressPattern, later: bool, add: Callable[[int, Queue], None]) -> None:
        self.pattern = pattern
        self.later = later
        self.add = add

    def takes(self, queue: Queue) -> bool:
        """Returns True for a queue that the pattern means: anycast, of its own address, and no temporary one."""
        spec = queue.spec
        if spec.routing_type != ANYCAST or spec.name != spec.address or spec.internal or spec.is_temporary():
            return False
        return not spec.name.startswith(HIDDEN_PREFIX) and self.pattern.matches(spec.name)


class Arrival:
    """A queue that consumers with wildcards may have to get: those of one connection, or of all (None).

    `keys`: the consumers, once their turn has come; `place` of them were asked.
    """

    def __init__(self, queue: Queue, conn: int | None) -> None:
        self.queue = queue
        self.conn = conn
        self.keys: list[tuple[int, object]] | None = None
        self.place: int = 0

    def next_keys(self, consumers: dict[int, dict[object, list[WildcardConsumer]]]) -> list[tuple[int, object]]:
        """Returns some consumers that were not asked; none: all were."""
        keys = self.keys
        if keys is None:
            conns = list(consumers) if self.conn is None else [self.conn]
            self.keys = keys = [(conn, each) for conn in conns for each in consumers.get(conn, {})]
        found = keys[self.place : self.place + KEYS_AT_ONCE]
        self.place += len(found)
        return found


class WildcardQueues(ClientObserver):
    """The consumers with wildcards of one protocol, by connection and the key that it gives each of them.

    Queues are added behind the input that creates them, by a timer.
    `patterns`: how many each user has. `looked`: queues that were compared with a pattern since the last turn of
    `on_timer`, for which the connections in `waiting` wait. `told`: queues that a user does not get, and why.
    """

    def __init__(self, timers: Timers, timer: str) -> None:
        self.timers = timers
        self.timer = timer
        self.consumers: dict[int, dict[object, list[WildcardConsumer]]] = {}
        self.patterns: dict[str, int] = {}
        self.arrivals: deque[Arrival] = deque()
        self.looked: int = 0
        self.waiting: list[ClientOutput] = []
        self.told: dict[tuple[str, str], str] = {}

    def watch(self, identity: Identity, conn: int, consumer_id: object, consumer: WildcardConsumer) -> None:
        """Begins to add new queues to the consumer. BrokerError: its user has too many."""
        user = identity.user
        patterns = self.patterns.get(user, 0) + 1
        if patterns > PATTERNS_MAX and not identity.cluster:
            raise BrokerError(
                ILLEGAL_STATE, f"user {user} has {PATTERNS_MAX:,} consumers with wildcards, the most that are allowed"
            )
        self.patterns[user] = patterns
        self.consumers.setdefault(conn, {}).setdefault(consumer_id, []).append(consumer)

    def unwatch(self, identity: Identity, conn: int, consumer_id: object) -> None:
        """Ends that."""
        consumers = self.consumers.get(conn)
        if consumers is None or consumer_id not in consumers:
            return
        left = self.patterns.get(identity.user, 0) - len(consumers.pop(consumer_id))
        if not consumers:
            del self.consumers[conn]
        if left > 0:
            self.patterns[identity.user] = left
        else:
            self.patterns.pop(identity.user, None)

    def is_news(self, user: str, queue: str, why: str) -> bool:
        """Returns True if it is to be told that a user does not get a queue: it was not told before."""
        key = (user, queue)
        if self.told.get(key) == why:
            return False
        if len(self.told) >= TOLD_MAX:
            self.told.clear()
        self.told[key] = why
        return True

    def add_all(self, now: int, consumer: WildcardConsumer, queues: list[Queue]) -> None:
        """Adds the queues that a new consumer means."""
        self.looked += len(queues)
        for queue in queues:
            if consumer.takes(queue):
                consumer.add(now, queue)

    def complete(self, conn: int, queues: list[Queue]) -> None:
        """Adds the queues that are missing at the consumers of a connection: permissions have changed."""
        if conn in self.consumers:
            self.arrivals.extend([Arrival(queue, conn) for queue in queues])
            self.timers.set(self.timer, 0)

    def on_queue_added(self, now: int, queue: Queue) -> None:
        if self.consumers:
            self.arrivals.append(Arrival(queue, None))
            self.timers.set(self.timer, 0)

    # -- turns ----------------------------------------------------------------------------------
    def pace(self, connection: ClientOutput, before: int) -> None:
        """Holds the input of a connection whose command has looked at many queues, if that is enough for one turn.

        `before`: what `looked` was before the command.
        """
        if self.looked > before and self.looked >= LOOKS_A_TURN:
            connection.hold_input()
            self.waiting.append(connection)
            self.timers.set(self.timer, 0)

    def on_timer(self, now: int) -> None:
        """Adds new queues to the consumers whose pattern they match, as many as one turn may; the rest follows."""
        self.looked = 0
        waiting = self.waiting
        self.waiting = []
        for connection in waiting:
            if not connection.gone:
                connection.release_input()
        while self.arrivals:
            if self.looked >= LOOKS_A_TURN:
                self.timers.set(self.timer, 0)
                return
            arrival = self.arrivals[0]
            keys = arrival.next_keys(self.consumers)
            self.looked += 1
            if not keys or arrival.queue.deleted:
                self.arrivals.popleft()
                continue
            for conn, consumer_id in keys:
                for consumer in self.consumers.get(conn, {}).get(consumer_id, []):
                    self.looked += 1
                    if consumer.later and consumer.takes(arrival.queue):
                        consumer.add(now, arrival.queue)
