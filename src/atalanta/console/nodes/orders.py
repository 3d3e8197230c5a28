"""Orders of an operator: an action with its parameters, made into a job with a step for each node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from atalanta.client import Management, ManagementFailed
from atalanta.client.management import BROKER
from atalanta.console.access.sessions import UserCredentials
from atalanta.console.nodes.actions import ADDRESS, CLIENT, MESSAGE, QUEUE, Action
from atalanta.console.nodes.jobs import Job, JobStep
from atalanta.console.nodes.messages import listed_rows
from atalanta.console.nodes.node import ClusterNode
from atalanta.message.message import BYTES, TEXT

CHUNK: Final = 1_000  # messages between two looks at the button that stops
FLUSH_LIMIT: Final = 500  # Artemis': messages of one of its transactions
IDS_MAX: Final = 1_000

NO_OPERATION: Final = "AMQ229069"  # of a release that takes no number of messages there

Operation = Callable[[str, Management, Job, JobStep], Awaitable[object]]
Change = Callable[[int], Awaitable[object]]


@dataclass(frozen=True)
class SentMessage:
    """A message that an operator writes. A body in bytes is base64, as the operation sendMessage has it."""

    body: str
    is_text: bool = True
    durable: bool = True
    properties: dict[str, str] = field(default_factory=dict)
    count: int = 1


@dataclass(frozen=True)
class Order:
    """An action with what its form has. `count` -1: no limit."""

    action: Action
    name: str = ""  # the queue or address
    target: str = ""
    selector: str = ""
    count: int = -1
    persist: bool = False
    message_ids: tuple[int, ...] = ()
    connection: str = ""
    session: str = ""
    consumer: str = ""
    message: SentMessage | None = None

    @property
    def resource(self) -> str:
        """Returns the resource of management that the action is an operation of."""
        if self.action.subject == CLIENT:
            return BROKER
        return f"{ADDRESS if self.action.subject == ADDRESS else QUEUE}.{self.name}"

    @property
    def title(self) -> str:
        """Returns what the job does, in words."""
        words = self.action.label
        if self.action.subject == CLIENT:
            return f"{words} {self.consumer or self.session or self.connection}"
        words = f"{words}: {self.name}"
        if self.target:
            words += f" to {self.target}"
        if self.selector:
            words += f" where {self.selector}"
        return words


def job_of(order: Order, nodes: Sequence[ClusterNode], credentials: UserCredentials, back: str) -> Job:
    """Returns the job of an order, not yet started."""
    job = Job(order.title, order.action.done, back)
    work = OrderWork(order, credentials)
    job.stoppable = work.stoppable or len(nodes) > 1
    for node in nodes:
        job.add(JobStep(node.label, order.name), partial(work.run, node))
    return job


async def matching(node: Management | ClusterNode, order: Order) -> int | None:
    """Returns how many messages the order is about at this node now."""
    if order.message_ids:
        return len(order.message_ids)
    if order.selector:
        found = await node.call(order.resource, "countMessages", order.selector)
    elif order.action.subject in (QUEUE, ADDRESS):
        found = await node.get(order.resource, "MessageCount")
    else:
        return None
    return found if isinstance(found, int) else None


class OrderWork:
    """The share of an order at one node."""

    def __init__(self, order: Order, credentials: UserCredentials) -> None:
        self.order = order
        self._credentials = credentials
        own: dict[str, Operation] = {
            "moveMessages": self._move,
            "removeMessages": self._remove,
            "retryMessages": self._retry,
            "expireMessages": self._expire,
            "pause": self._pause,
            "resume": self._resume,
            "closeConnectionWithID": self._close,
            "closeSessionWithID": self._close,
            "closeConsumerWithID": self._close,
        }
        self._counts = True  # the node takes a number of messages for each of these; an Artemis node for a move alone
        self._send_as: tuple[str | None, str | None] = (None, None)
        if order.message is not None:
            self._operation: Operation = self._send
        elif order.action.subject == MESSAGE:
            self._operation = self._each_message
        else:
            self._operation = own[order.action.operation]

    @property
    def stoppable(self) -> bool:
        """Returns whether the work has seams."""
        ours = (self._move, self._remove, self._retry, self._expire, self._each_message, self._send)
        return self._operation in ours

    async def run(self, node: ClusterNode, job: Job, step: JobStep) -> None:
        """Does it at this node, and counts before and after."""
        order = self.order
        self._counts = node.ours
        if not node.ours:
            # Artemis sends as the user whose name and password are given, and as nobody without them.
            self._send_as = (self._credentials.user, self._credentials.password)
        counts = order.action.subject in (QUEUE, MESSAGE)
        async with node.long_conversation() as management:
            if counts:
                step.before = await self._count(management)
            await self._operation(order.resource, management, job, step)
            if counts:
                step.after = await self._count(management)

    async def _count(self, management: Management) -> int | None:
        found = await management.get(self.order.resource, "MessageCount")
        return found if isinstance(found, int) else None

    # -- queues ---------------------------------------------------------------------------------
    async def _move(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        order = self.order

        def move(count: int) -> Awaitable[object]:
            given = (FLUSH_LIMIT, order.selector, order.target, False, count)
            return management.call(resource, "moveMessages", *given)

        await self._in_chunks(management, job, step, move)

    async def _remove(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        selector = self.order.selector

        def remove(count: int) -> Awaitable[object]:
            return management.call(resource, "removeMessages", FLUSH_LIMIT, selector, count)

        def remove_all() -> Awaitable[object]:
            if selector:
                return management.call(resource, "removeMessages", selector)
            return management.call(resource, "removeAllMessages")

        await self._in_chunks(management, job, step, remove, remove_all)

    async def _retry(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        selector = self.order.selector
        if selector and not self._counts:
            await self._retry_listed(resource, management, job, step)
            return
        given = (selector,) if selector else ()

        def retry(count: int) -> Awaitable[object]:
            return management.call(resource, "retryMessages", selector, count)

        await self._in_chunks(
            management, job, step, retry, lambda: management.call(resource, "retryMessages", *given)
        )

    async def _expire(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        selector = self.order.selector

        def expire(count: int) -> Awaitable[object]:
            return management.call(resource, "expireMessages", selector, count)

        await self._in_chunks(
            management, job, step, expire, lambda: management.call(resource, "expireMessages", selector)
        )

    async def _in_chunks(
        self,
        management: Management,
        job: Job,
        step: JobStep,
        change: Change,
        change_all: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        """Changes messages in chunks, and not more than there were at the beginning: a queue may be filled meanwhile.

        `change_all` is the one call for a node that does not take a number of messages: it cannot be stopped.
        """
        wanted = await matching(management, self.order) or 0
        if self.order.count >= 0:
            wanted = min(wanted, self.order.count)
        step.done = 0
        while step.done < wanted:
            job.check_stop()
            chunk = min(CHUNK, wanted - step.done)
            try:
                if change_all is not None and not self._counts:
                    changed, chunk = await change_all(), wanted
                else:
                    changed = await change(chunk)
            except ManagementFailed as error:
                if change_all is None or not self._counts or NO_OPERATION not in error.reason:
                    raise
                self._counts = False
                continue
            step.done += changed if isinstance(changed, int) else 0
            if not isinstance(changed, int) or changed < chunk:
                break
        left = wanted - step.done
        if left > 0:
            step.note = f"{left:,} could not be {job.word} now: {self._why_left()}"

    def _why_left(self) -> str:
        why = "they are with consumers, or were taken meanwhile"
        return f"they have no queue to return to, {why}" if self.order.action.operation == "retryMessages" else why

    async def _retry_listed(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        """Retries what a selector chooses at an Artemis node, whose operation takes none: message by message.

        It lists some 200 at a time (management-browse-page-size); what stays in the queue is tried once.
        """
        tried: dict[int, bool] = {}
        step.done = 0
        while True:
            listed = await management.call(resource, "listMessagesAsJSON", self.order.selector)
            fresh = [row.id for row in listed_rows(listed) if row.id not in tried]
            if not fresh:
                break
            for message_id in fresh:
                job.check_stop()
                tried[message_id] = await management.call(resource, "retryMessage", message_id) is True
                step.done += tried[message_id]
        stayed = len(tried) - step.done
        if stayed:
            step.note = f"{stayed:,} could not be sent back: they came from nowhere, or are with a consumer"

    async def _pause(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        if self.order.persist:
            await management.call(resource, "pause", True)
        else:
            await management.call(resource, "pause")
        step.note = "paused" + (", also after a restart" if self.order.persist else " until a restart")

    async def _resume(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        await management.call(resource, "resume")
        step.note = "resumed"

    # -- messages -------------------------------------------------------------------------------
    async def _each_message(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        order = self.order
        target = (order.target,) if order.target else ()
        step.done = gone = 0
        for message_id in order.message_ids:
            job.check_stop()
            if await management.call(resource, order.action.operation, message_id, *target) is False:
                gone += 1
            else:
                step.done += 1
        if gone:
            step.note = f"{gone:,} were not there any more, or are with a consumer"

    async def _send(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        message = self.order.message
        assert message is not None
        kind = TEXT if message.is_text else BYTES
        step.done = 0
        for _ in range(message.count):
            job.check_stop()
            sent = await management.call(
                resource, "sendMessage", message.properties, kind, message.body, message.durable, *self._send_as
            )
            step.done += 1
            step.note = f"message id {sent}"

    # -- clients --------------------------------------------------------------------------------
    async def _close(self, resource: str, management: Management, job: Job, step: JobStep) -> None:
        order = self.order
        given = {
            "closeConnectionWithID": (order.connection,),
            "closeSessionWithID": (order.connection, order.session),
            "closeConsumerWithID": (order.session, order.consumer),
        }[order.action.operation]
        closed = await management.call(resource, order.action.operation, *given)
        step.note = "closed" if closed is not False else "it was not there any more"
