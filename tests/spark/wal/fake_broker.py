"""A broker with queues and XA branches, in memory, which a test stops at any step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from atalanta.client import ReceivedMessage
from atalanta.message.message import BYTES, Message
from atalanta.spark.errors import NodeUnavailable, QueueMissing
from atalanta.spark.gateway.gateway import Credentials, GatewayMember

QUEUE = "orders"
Numbers = list[int]


class Killed(BaseException):
    """The end of a driver's process at a planted point."""


class FakeBroker:
    """The broker: messages in order, those of open branches, prepared branches."""

    def __init__(self, node_id: str = "node-1", *queues: str) -> None:
        self.node_id = node_id
        self.queues: dict[str, Numbers] = {name: [] for name in queues or (QUEUE,)}
        self.prepared: dict[tuple[str, str], tuple[str, Numbers]] = {}
        self.members: list[GatewayMember] = []
        self.added: dict[str, int] = {}
        self.changed: dict[int, Message] = {}  # messages that are not as `received` makes them

    def add(self, count: int, queue: str = QUEUE) -> None:
        for _ in range(count):
            self.added[queue] = self.added.get(queue, 0) + 1
            self.queues.setdefault(queue, []).append(self.added[queue])

    def give_back(self, queue: str, messages: Numbers) -> None:
        self.queues[queue] = sorted(self.queues[queue] + messages)

    def received(self, queue: str, number: int) -> ReceivedMessage:
        message = Message.create(queue, f"{self.node_id}/{queue}/{number}".encode(), BYTES)
        message = self.changed.get(number, message)
        return ReceivedMessage(message.copy(number), queue)


class FakeWalNode:
    """See WalNode. `kill(step)` is called before and after each step."""

    def __init__(self, broker: FakeBroker, server: str, kill: Callable[[str], None]) -> None:
        self.broker = broker
        self.node_id = broker.node_id
        self.server = server
        self.kill = kill
        self.branch: tuple[str, str] | None = None
        self.queue = ""
        self.open: Numbers = []

    def members(self) -> Sequence[GatewayMember]:
        return self.broker.members

    def queues(self) -> Sequence[str]:
        return list(self.broker.queues)

    def waiting(self, queue: str) -> int:
        if queue not in self.broker.queues:
            raise QueueMissing(f"there is no queue {queue}")
        return len(self.broker.queues[queue])

    def prepared(self, folder_id: str) -> list[str]:
        return [branch for folder, branch in self.broker.prepared if folder == folder_id]

    def commit(self, folder_id: str, branch: str) -> bool:
        self.kill("before commit")
        found = self.broker.prepared.pop((folder_id, branch), None)
        self.kill("after commit")
        return found is not None

    def roll_back(self, folder_id: str, branch: str) -> None:
        if (folder_id, branch) in self.broker.prepared:
            self.broker.give_back(*self.broker.prepared.pop((folder_id, branch)))

    def begin(self, folder_id: str, branch: str, queue: str, selector: str | None) -> None:
        self.waiting(queue)
        self.branch, self.queue = (folder_id, branch), queue

    def receive(self) -> ReceivedMessage | None:
        if not self.broker.queues[self.queue]:
            return None
        self.open.append(self.broker.queues[self.queue].pop(0))
        self.kill("received")
        return self.broker.received(self.queue, self.open[-1])

    def leave(self) -> None:
        self.broker.give_back(self.queue, [self.open.pop()])

    def prepare(self) -> None:
        self.kill("before prepare")
        assert self.branch is not None
        self.broker.prepared[self.branch] = (self.queue, self.open)
        self.open = []
        self.kill("after prepare")

    def end(self) -> None:
        if self.open:
            self.broker.give_back(self.queue, self.open)
        self.open, self.branch = [], None

    def browse(self, queue: str, selector: str | None) -> Iterator[ReceivedMessage]:
        return iter([self.broker.received(queue, number) for number in self.broker.queues[queue]])

    def close(self) -> None:
        self.end()


class FakeServers:
    """The servers by host:port, as an Opener."""

    def __init__(self, **brokers: FakeBroker) -> None:
        self.brokers = {f"{name}:1": broker for name, broker in brokers.items()}
        self.kill: Callable[[str], None] = lambda step: None

    @property
    def names(self) -> str:
        return ",".join(self.brokers)

    def __call__(self, server: str, credentials: Credentials) -> FakeWalNode:
        if server not in self.brokers:
            raise NodeUnavailable(f"{server}: refused")
        return FakeWalNode(self.brokers[server], server, lambda step: self.kill(step))
