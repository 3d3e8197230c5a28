"""Creation and deletion of queues and addresses, as jobs with a step for each node.

The node decides at the moment of the deletion: what has come into use since the page was made is refused, unless the
operator has agreed to lose it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from atalanta.client import Management, ManagementFailed
from atalanta.client.management import BROKER, page_of
from atalanta.console.nodes.actions import ADDRESS, QUEUE
from atalanta.console.nodes.failures import InUse, is_missing
from atalanta.console.nodes.jobs import Job, JobStep
from atalanta.console.nodes.list_kinds import QUEUES, ListRow
from atalanta.console.nodes.node import ClusterNode
from atalanta.survey.texts import counted, messages

ANYCAST: Final = "ANYCAST"
MULTICAST: Final = "MULTICAST"
# The operations of the resource `broker`, which decide the permissions.
CREATIONS: Final = {QUEUE: "createQueue", ADDRESS: "createAddress"}
DELETIONS: Final = {QUEUE: "destroyQueue", ADDRESS: "deleteAddress"}
QUEUES_MAX: Final = 1_000  # of one address that is deleted


@dataclass(frozen=True)
class NewDestination:
    """A queue or an address to be created. `address` "": one of the queue's own name. `max_consumers` -1: any number.

    `routing` has one type for a queue, and one or both for an address.
    """

    kind: str
    name: str
    routing: tuple[str, ...] = (ANYCAST,)
    address: str = ""
    filter: str = ""
    durable: bool = True
    exclusive: bool = False
    max_consumers: int = -1

    @property
    def definition(self) -> str:
        """Returns the JSON of Artemis' QueueConfiguration, the parameter of createQueue."""
        given: dict[str, object] = {
            "name": self.name,
            "address": self.address or self.name,
            "routing-type": self.routing[0],
            "durable": self.durable,
            "max-consumers": self.max_consumers,
            "exclusive": self.exclusive,
            "auto-create-address": True,
        }
        if self.filter:
            given["filter-string"] = self.filter
        return json.dumps(given)


@dataclass(frozen=True)
class Deletion:
    """A queue or an address to be deleted, and what the operator agrees to lose with it."""

    kind: str
    name: str
    with_messages: bool = False
    with_consumers: bool = False
    with_queues: bool = False


@dataclass(frozen=True)
class DestinationUse:
    """The content of a queue or address at one node."""

    queues: int
    messages: int
    consumers: int


def creation_job(new: NewDestination, nodes: Sequence[ClusterNode], back: str) -> Job:
    """Returns the job that creates it, not yet started."""
    job = Job(f"Create {'an address' if new.kind == ADDRESS else 'a queue'}: {new.name}", "created", back)
    job.stoppable = len(nodes) > 1
    for node in nodes:
        job.add(JobStep(node.label, new.name), partial(_create, new, node))
    return job


def deletion_job(deletion: Deletion, nodes: Sequence[ClusterNode], back: str) -> Job:
    """Returns the job that deletes it, not yet started."""
    work = _delete_address if deletion.kind == ADDRESS else _delete_queue
    job = Job(f"Delete {deletion.kind}: {deletion.name}", "removed", back)
    job.stoppable = deletion.kind == ADDRESS or len(nodes) > 1
    for node in nodes:
        job.add(JobStep(node.label, deletion.name), partial(work, deletion, node))
    return job


async def use_of(node: Management | ClusterNode, kind: str, name: str) -> DestinationUse:
    """Returns what a queue or address holds at this node now. ManagementFailed if it is not there."""
    if kind == QUEUE:
        count = await node.get(f"queue.{name}", "MessageCount")
        consumers = await node.get(f"queue.{name}", "ConsumerCount")
        return DestinationUse(1, _number(count), _number(consumers))
    rows = await queues_at(node, name)
    return DestinationUse(
        len(rows),
        sum(_number(row["messageCount"]) for row in rows),
        sum(_number(row["consumerCount"]) for row in rows),
    )


async def queues_at(node: Management | ClusterNode, address: str) -> list[ListRow]:
    """Returns the queues of an address, at most QUEUES_MAX."""
    asked = json.dumps({"field": "address", "operation": "EQUALS", "value": address})
    rows, _ = page_of(await node.call(BROKER, QUEUES.operation, asked, 1, QUEUES_MAX), QUEUES.operation)
    return [row for row in map(QUEUES.typed, rows) if row["address"] == address]


# -- steps ------------------------------------------------------------------------------------------
async def _create(new: NewDestination, node: ClusterNode, job: Job, step: JobStep) -> None:
    """Creates it, unless there is one of its name: on all nodes, a job that failed half-way is repeated."""
    try:
        await node.get(f"{new.kind}.{new.name}", "Address")
    except ManagementFailed as error:
        if not is_missing(error):
            raise
    else:
        step.note = "it was there already: nothing was changed"
        return
    if new.kind == QUEUE:
        await node.call(BROKER, "createQueue", new.definition)
    else:
        await node.call(BROKER, "createAddress", new.name, ",".join(new.routing))
    step.note = "created"


async def _delete_queue(deletion: Deletion, node: ClusterNode, job: Job, step: JobStep) -> None:
    async with node.long_conversation() as management:
        found = await use_of(management, QUEUE, deletion.name)
        step.before = found.messages
        check_use(deletion, found)
        await management.call(BROKER, "destroyQueue", deletion.name, deletion.with_consumers, False)
        step.done = found.messages
        step.note = "deleted"


async def _delete_address(deletion: Deletion, node: ClusterNode, job: Job, step: JobStep) -> None:
    """Deletes the queues one by one, then the address, which the node refuses while it has queues."""
    async with node.long_conversation() as management:
        rows = await queues_at(management, deletion.name)
        found = await use_of(management, ADDRESS, deletion.name)
        step.before, step.done = found.messages, 0
        check_use(deletion, found)
        for row in rows:
            job.check_stop()
            name = str(row["name"])
            one = await use_of(management, QUEUE, name)
            check_use(deletion, one)
            await management.call(BROKER, "destroyQueue", name, deletion.with_consumers, False)
            step.done += one.messages
        try:
            await management.call(BROKER, "deleteAddress", deletion.name)
        except ManagementFailed as error:
            if not rows or not is_missing(error):  # an auto-created address goes with its last queue
                raise
        step.note = "deleted" + (f", with {counted(len(rows), 'queue')}" if rows else "")


def check_use(deletion: Deletion, found: DestinationUse) -> None:
    """Refuses the deletion of what is in use, but for what the operator agrees to lose."""
    held = []
    if deletion.kind == ADDRESS and found.queues and not deletion.with_queues:
        held.append(counted(found.queues, "queue"))
    if found.messages and not deletion.with_messages:
        held.append(messages(found.messages))
    if found.consumers and not deletion.with_consumers:
        held.append(counted(found.consumers, "consumer"))
    if held:
        raise InUse(f"it has {' and '.join(held)} (now): it was not deleted")


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
