"""A broker with one queue and XA branches, in memory, which a test stops at any step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from atalanta.client import ReceivedMessage
from atalanta.message.message import BYTES, Message
from atalanta.spark.errors import QueueMissing
from atalanta.spark.gateway.gateway import Credentials, Member

QUEUE = "orders"


class Killed(BaseException):
    """The end of a driver's process at a planted point."""


class FakeBroker:
    """The broker: messages in order, those of open branches, prepared branches."""

    def __init__(self, node_id: str = "node-1") -> None:
        self.node_id = node_id
        self.messages: list[int] = []
        self.prepared: dict[tuple[str, str], list[int]] = {}
        self.added = 0
        self.changed: dict[int, Message] = {}  # messages that are not as `received` makes them

    def add(self, count: int) -> None:
        for _ in range(count):
            self.added += 1
            self.messages.append(self.added)

    def give_back(self, messages: list[int]) -> None:
        self.messages = sorted(self.messages + messages)

    def received(self, number: int) -> ReceivedMessage:
        message = Message.create(QUEUE, f"{self.node_id}/{number}".encode(), BYTES)
        message = self.changed.get(number, message)
        return ReceivedMessage(message.copy(number), QUEUE)


class FakeWalNode:
    """See WalNode. `kill(step)` is called before and after each step."""

    def __init__(self, broker: FakeBroker, server: str, kill: Callable[[str], None]) -> None:
        self.broker = broker
        self.node_id = broker.node_id
        self.server = server
        self.kill = kill
        self.branch: tuple[str, str] | None = None
        self.open: list[int] = []

    def members(self) -> Sequence[Member]:
        return []

    def waiting(self, queue: str) -> int:
        if queue != QUEUE:
            raise QueueMissing(f"there is no queue {queue}")
        return len(self.broker.messages)

    def prepared(self, folder_id: str) -> list[str]:
        return [branch for folder, branch in self.broker.prepared if folder == folder_id]

    def commit(self, folder_id: str, branch: str) -> None:
        self.kill("before commit")
        self.broker.prepared.pop((folder_id, branch), None)
        self.kill("after commit")

    def roll_back(self, folder_id: str, branch: str) -> None:
        self.broker.give_back(self.broker.prepared.pop((folder_id, branch), []))

    def begin(self, folder_id: str, branch: str, queue: str, selector: str | None) -> None:
        self.branch = (folder_id, branch)

    def receive(self) -> ReceivedMessage | None:
        if not self.broker.messages:
            return None
        self.open.append(self.broker.messages.pop(0))
        self.kill("received")
        return self.broker.received(self.open[-1])

    def prepare(self) -> None:
        self.kill("before prepare")
        assert self.branch is not None
        self.broker.prepared[self.branch] = self.open
        self.open = []
        self.kill("after prepare")

    def end(self) -> None:
        self.broker.give_back(self.open)
        self.open, self.branch = [], None

    def browse(self, queue: str, selector: str | None) -> Iterator[ReceivedMessage]:
        return iter([self.broker.received(number) for number in self.broker.messages])

    def close(self) -> None:
        self.end()


class FakeServers:
    """The servers by host:port, as an Opener."""

    def __init__(self, **brokers: FakeBroker) -> None:
        self.brokers = {f"{name}:1": broker for name, broker in brokers.items()}
        self.kill: Callable[[str], None] = lambda step: None

    def __call__(self, server: str, credentials: Credentials) -> FakeWalNode:
        return FakeWalNode(self.brokers[server], server, lambda step: self.kill(step))
