"""The drain of a real Artemis, by its own management operations addConnector and scaleDown (Artemis 2.28 to 2.56).

Artemis answers nothing and reports no progress: it closes its connections, moves its messages, and logs AMQ221002 at
the end. Its JVM stays. When a member leaves, each other Artemis moves the messages that it has for that one to queues
of the same name at the target, and drops those whose queue it does not know there (QueueImpl.moveBetweenSnFQueues). So
every queue is made at the target first, and every real member has to know it. Even then it drops the messages that it
has sent and that were not answered, as its bindings are gone with the connection (AMQ222188). So nothing begins while
there are any, and senders have to pause: nothing that management can do keeps a member from sending more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final

import typer

from atalanta.cli.output.outcome import USAGE, Refused
from atalanta.client import (
    CallTimedOut,
    ClientError,
    ConnectionLost,
    Management,
    ManagementFailed,
    NotAuthorized,
)
from atalanta.survey.node.answers import rows_of
from atalanta.survey.node.listings import member_places
from atalanta.survey.node.queue_rows import is_internal, queue_rows
from atalanta.wire.uri import masked

if TYPE_CHECKING:
    from atalanta.survey.broker_login import BrokerLogin

BROKER: Final = "broker"
LEAVING: Final = "leaving"  # its phase, the last one that can be seen
CONNECTOR: Final = "atalanta-drain"  # the name of a target for which the node that leaves has no connector
INTERNAL: Final = ("$.artemis.", "$sys.")
POLL_INTERVAL_S: Final = 0.5
LINK_POLL_INTERVAL_S: Final = 0.1
QUIET_COUNT: Final = 5  # polls in a row without a message under way
MEETING_S: Final = 20.0
CLOSING_S: Final = 60.0
# Artemis' names in a list of queues (QueueView), and in a queue's configuration (QueueConfiguration).
FIELDS: Final = {
    "name": "name",
    "address": "address",
    "routingType": "routing-type",
    "filter": "filter-string",
    "durable": "durable",
    "maxConsumers": "max-consumers",
    "purgeOnNoConsumers": "purge-on-no-consumers",
    "exclusive": "exclusive",
    "lastValue": "last-value",
    "lastValueKey": "last-value-key",
    "groupRebalance": "group-rebalance",
    "groupBuckets": "group-buckets",
    "groupFirstKey": "group-first-key",
    "ringSize": "ring-size",
    "consumersBeforeDispatch": "consumers-before-dispatch",
    "delayBeforeDispatch": "delay-before-dispatch",
    "autoCreated": "auto-created",
    "autoDelete": "auto-delete",
    "autoDeleteDelay": "auto-delete-delay",
    "autoDeleteMessageCount": "auto-delete-message-count",
    "user": "user",
}


class RealMembers:
    """The members of a cluster, but the node that leaves, that are real Artemis nodes: `places` (host:port) by node id.

    `silent`: the members that could not be asked, with the reason.
    """

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self.silent: dict[str, ClientError] = {}


async def real_members(management: Management, leaving: BrokerLogin) -> RealMembers:
    """Asks each member what it is. Refused if the user may not manage one: it could lose messages unseen."""
    found = RealMembers()
    leaving_id = await management.get(BROKER, "NodeID")
    for node_id, place in (await member_places(management)).items():
        if node_id == leaving_id:
            continue
        try:
            async with leaving.at(place).connect() as connection:
                if await is_real_artemis(connection.management()):
                    found.places[node_id] = place
        except NotAuthorized as error:
            why = f"the user needs the permission manage at {place}, too: {error}"
            raise Refused(f"{why}. Nothing was moved") from error
        except ClientError as error:
            found.silent[place] = error
    return found


async def drained_artemis(management: Management, node: str, leaving: BrokerLogin, to: str | None) -> dict[str, object]:
    """Lets a real Artemis move its messages to the node at `to` (host:port, a URL, or the name of a connector in its
    broker.xml), and end its broker.

    Returns the number of messages that it had before, and of queues that were made at the target. Refused if the target
    is not a member of its cluster, if the members do not learn of its queues, or if the node does not leave.
    """
    if to is None:
        raise Refused(f"{node} is a real Artemis: --to HOST:PORT names the member that gets its messages", USAGE)
    connector, place = await way_to(management, node, leaving, to)
    rows = await moved_queues(management)
    members = await real_members(management, leaving)
    made = await prepare_target(management, node, leaving, place, rows, members)
    if connector is None:
        connector = CONNECTOR
        await management.call(BROKER, "addConnector", CONNECTOR, to if "://" in to else f"tcp://{to}")
    if members.places:
        await empty_links(management, node, leaving, members)
    await begin_scale_down(management, node, connector)
    return {"phase": LEAVING, "messages": sum(count_of(row) for row in rows), "queues_made": made, "target": place}


async def prepare_target(
    management: Management,
    node: str,
    leaving: BrokerLogin,
    to: str,
    rows: list[dict[str, object]],
    members: RealMembers,
) -> int:
    """Makes the queues in `rows` at the target, and waits until each real member knows them. Returns the number of new
    queues."""
    for place, error in members.silent.items():
        typer.echo(f"atalanta: {place} cannot be asked whether it knows the queues of {to}: {error}", err=True)
    leaving_id = str(await management.get(BROKER, "NodeID"))
    async with leaving.at(to).connect() as connection:
        target = connection.management()
        target_id = str(await target.get(BROKER, "NodeID"))
        if target_id == leaving_id:
            raise Refused(f"{to} is {node} itself: nothing was moved", USAGE)
        await until_member(management, node, to, target_id)
        made = await make_queues(target, rows)
    addresses = {str(row["address"]) for row in rows}
    for node_id, place in members.places.items():
        if node_id != target_id:
            async with leaving.at(place).connect() as connection:
                await until_known(connection.management(), place, leaving_id, target_id, addresses)
    return made


async def moved_queues(management: Management) -> list[dict[str, object]]:
    """Returns the queues that go to the target."""
    return [row for row in await queue_rows(management, None) if is_moved(row)]


def is_moved(row: dict[str, object]) -> bool:
    """Returns whether a queue goes to the target: temporary ones and those of the cluster end with the node."""
    return not is_internal(row) and row.get("temporary") is not True and not str(row["name"]).startswith(INTERNAL)


def count_of(row: dict[str, object]) -> int:
    count = row.get("messageCount")
    return count if isinstance(count, int) else 0


async def make_queues(target: Management, rows: list[dict[str, object]]) -> int:
    """Makes the queues that the target lacks, auto-created ones too, with their settings. Returns their number."""
    known = {row["name"] for row in await queue_rows(target, None)}
    missing = [row for row in rows if row["name"] not in known]
    for row in missing:
        definition = {new: row[old] for old, new in FIELDS.items() if row.get(old) is not None}
        await target.call(BROKER, "createQueue", json.dumps(definition), True)
    return len(missing)


async def holds_in_time(holds: Callable[[], Awaitable[bool]], interval_s: float = POLL_INTERVAL_S) -> bool:
    """Waits until a condition holds, MEETING_S at most. Returns whether it does."""
    loop = asyncio.get_running_loop()
    end = loop.time() + MEETING_S
    while not await holds():
        if loop.time() > end:
            return False
        await asyncio.sleep(interval_s)
    return True


async def until_member(management: Management, node: str, to: str, target_id: str) -> None:
    """Waits until the node that leaves knows the target as a member: its clients are sent there."""

    async def known() -> bool:
        return target_id in await member_places(management)

    if not await holds_in_time(known):
        raise Refused(f"{node} does not know {to} as a member of its cluster: nothing was moved")


async def until_known(member: Management, place: str, leaving_id: str, target_id: str, addresses: set[str]) -> None:
    """Waits until a real Artemis has as many bindings to the target as to the node that leaves."""
    for address in addresses:

        async def known(address: str = address) -> bool:
            bindings = str(await member.call(BROKER, "listBindingsForAddress", address))
            # RemoteQueueBindingImpl.toManagementString: the store-and-forward queue ends with the id of its node.
            here, there = (bindings.count(f".{node_id}, remoteQueueID=") for node_id in (leaving_id, target_id))
            return there >= here

        if not await holds_in_time(known):
            why = f"{place} does not learn of the queues of {address} at the target, and could lose their messages"
            raise Refused(f"{why}. Nothing was moved: see the log of {place}")


async def empty_links(management: Management, node: str, leaving: BrokerLogin, members: RealMembers) -> None:
    """Waits until the real members have had no messages under way to the node for a while."""
    leaving_id = str(await management.get(BROKER, "NodeID"))
    async with AsyncExitStack() as stack:
        queues = []
        for place in members.places.values():
            member = (await stack.enter_async_context(leaving.at(place).connect())).management()
            queues.append((member, await links_to(member, leaving_id)))
        quiet = 0

        async def empty() -> bool:
            nonlocal quiet
            counts = [await member.get(f"queue.{name}", "MessageCount") for member, names in queues for name in names]
            quiet = 0 if any(counts) else quiet + 1
            return quiet == QUIET_COUNT

        if not await holds_in_time(empty, LINK_POLL_INTERVAL_S):
            why = f"other members have messages under way to {node}, and Artemis would lose them"
            raise Refused(f"{why}. Nothing was moved: pause the senders until this command has ended")


async def links_to(member: Management, node_id: str) -> list[str]:
    """Returns the names of the store-and-forward queues that a member has for a node."""
    names = [str(row["name"]) for row in await queue_rows(member, None)]
    return [name for name in names if ".sf." in name and name.endswith(f".{node_id}")]


async def is_real_artemis(management: Management) -> bool:
    """Returns whether the broker is a real Artemis: it reports no progress of a scale-down."""
    try:
        await management.call(BROKER, "scaleDownProgress")
    except ManagementFailed as error:
        if "AMQ229069" in error.reason or "no operation" in error.reason.lower():
            return True
        raise
    return False


async def way_to(management: Management, node: str, leaving: BrokerLogin, to: str) -> tuple[str | None, str]:
    """Returns the connector by which the node that leaves dials `to`, None if it has none; and the target's host:port.

    A connector of its own is preferred: it says how, with the files for TLS of that host. Options of a URL are for the
    node, too: this command dials the target as it has dialled the node.
    """
    named = await connector_places(management)
    if to in named:
        return to, named[to]
    place = to.partition("://")[2].partition("?")[0] if "://" in to else to
    if ":" not in place:
        why = f"{node} has no connector {masked(to)!r}"
        raise Refused(f"{why}: name one of its broker.xml, or the target as HOST:PORT", USAGE)
    for name, where in named.items():
        if where == place and "://" not in to:
            return name, place
    if "://" not in to and "sslEnabled=true" in leaving.url:
        why = f"{node} has no connector to {to}, and with TLS it needs one"
        raise Refused(f"{why}: add one to its broker.xml, or give a URL with the paths of that host's files", USAGE)
    return None, place


async def connector_places(management: Management) -> dict[str, str]:
    """Returns the host:port of each connector in a node's broker.xml, by name."""
    text = await management.get(BROKER, "ConnectorsAsJSON")
    rows = rows_of(text, BROKER, "ConnectorsAsJSON", name=str, params=dict)
    return {
        row["name"]: f"{row['params'].get('host', 'localhost')}:{row['params'].get('port', '61616')}" for row in rows
    }


async def begin_scale_down(management: Management, node: str, connector: str) -> None:
    """Calls scaleDown, and returns when the node has closed its connections. Nobody answers the call."""
    loop = asyncio.get_running_loop()
    end = loop.time() + CLOSING_S
    asked: tuple[str, ...] = ("scaleDown", connector)
    while loop.time() < end:
        with suppress(CallTimedOut):
            try:
                await management.call(BROKER, *asked)
            except ConnectionLost:
                return
        asked = ("getVersion",)
        await asyncio.sleep(POLL_INTERVAL_S)
    raise Refused(f"{node} still answers {CLOSING_S:g} s after its scaleDown: see its log")
