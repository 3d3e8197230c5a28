"""Orders on many messages: in chunks with a stop at Atalanta nodes, in one call where a node cannot count."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from atalanta.client import ManagementFailed
from atalanta.console.access.sessions import UserCredentials
from atalanta.console.nodes.actions import ACTIONS
from atalanta.console.nodes.jobs import Job
from atalanta.console.nodes.orders import CHUNK, Order, job_of


class OneQueue:
    """A node with one queue of messages, and its management. `counts`: it takes a number of messages."""

    label = "one"

    def __init__(self, messages: int, ours: bool = True, counts: bool = True, stays: int = 0) -> None:
        self.messages = messages
        self.ours = ours
        self.counts = counts
        self.stays = stays
        self.asked: list[tuple[str, tuple[object, ...]]] = []
        self.listed: list[dict[str, object]] = []
        self.on_call: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def long_conversation(self) -> AsyncIterator[OneQueue]:
        yield self

    async def get(self, resource: str, attribute: str) -> object:
        return self.messages

    async def call(self, resource: str, operation: str, *given: object) -> object:
        if operation == "countMessages":
            return self.messages
        self.asked.append((operation, given))
        self.on_call()
        if operation == "listMessagesAsJSON":
            return json.dumps(self.listed)
        if operation == "retryMessage":
            return True
        limit = given[-1] if given and isinstance(given[-1], int) else None
        if limit is not None and not self.counts and operation != "moveMessages":
            raise ManagementFailed(resource, operation, f"AMQ229069: no operation {operation}/{len(given)}")
        gone = self.messages - self.stays if limit is None else min(limit, self.messages - self.stays)
        self.messages -= gone
        return gone


def job_for(node: OneQueue, action: str, **given: Any) -> Job:
    order = Order(ACTIONS[action], name="q", **given)
    return job_of(order, [node], UserCredentials("ann", "x"), "/")  # type: ignore[list-item]


async def done(job: Job) -> Job:
    job.start()
    await job.wait(5)
    return job


@pytest.mark.parametrize("action", ["purge", "expire", "retry"])
def test_many_messages_go_in_chunks(action: str) -> None:
    node = OneQueue(2 * CHUNK + 5)
    job = asyncio.run(done(job_for(node, action)))
    assert job.state == "done" and job.stoppable
    assert [given[-1] for _, given in node.asked] == [CHUNK, CHUNK, 5] and node.messages == 0
    assert (job.steps[0].before, job.steps[0].done, job.steps[0].after) == (2 * CHUNK + 5, 2 * CHUNK + 5, 0)


def test_a_stop_leaves_the_rest() -> None:
    async def main() -> None:
        node = OneQueue(5 * CHUNK)
        job = job_for(node, "purge", selector="x = 1")
        node.on_call = job.stop
        await done(job)
        assert job.state == "stopped" and node.messages == 4 * CHUNK and job.total_done == CHUNK

    asyncio.run(main())


def test_what_cannot_be_changed_ends_the_job_and_is_said() -> None:
    node = OneQueue(CHUNK + 10, stays=30)
    job = asyncio.run(done(job_for(node, "retry")))
    assert job.state == "done" and job.total_done == CHUNK - 20
    assert job.steps[0].note.startswith("30 could not be sent back now: they have no queue to return to")


@pytest.mark.parametrize(
    ("action", "selector", "call"),
    [
        ("purge", "", ("removeAllMessages", ())),
        ("purge", "a = 1", ("removeMessages", ("a = 1",))),
        ("retry", "", ("retryMessages", ())),
        ("expire", "", ("expireMessages", ("",))),
    ],
)
def test_a_broker_that_cannot_count_is_asked_once(action: str, selector: str, call: object) -> None:
    artemis = OneQueue(3 * CHUNK, ours=False, counts=False)
    asyncio.run(done(job_for(artemis, action, selector=selector)))
    assert artemis.asked == [call] and artemis.messages == 0
    older = OneQueue(3 * CHUNK, counts=False)
    job = asyncio.run(done(job_for(older, action, selector=selector)))
    assert older.asked[1:] == [call] and older.messages == 0 and job.total_done == 3 * CHUNK


def test_an_artemis_retries_what_a_selector_chooses_message_by_message() -> None:
    """Its retryMessages takes no selector. What is listed again was tried: it has nowhere to return to."""
    artemis = OneQueue(0, ours=False, counts=False)
    artemis.listed = [{"messageID": 7}, {"messageID": 8}]
    job = asyncio.run(done(job_for(artemis, "retry", selector="a = 1")))
    listing = ("listMessagesAsJSON", ("a = 1",))
    assert artemis.asked == [listing, ("retryMessage", (7,)), ("retryMessage", (8,)), listing]
    assert job.total_done == 2 and not job.steps[0].note
