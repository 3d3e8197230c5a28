"""The search over all nodes: names of queues, addresses and clients, and messages that match a selector."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from atalanta.client import ManagementFailed
from atalanta.console.nodes.cluster import NodeProblem, SessionCluster
from atalanta.console.nodes.failures import error_text
from atalanta.console.nodes.list_kinds import (
    ADDRESSES,
    CONNECTIONS,
    CONSUMERS,
    QUEUES,
    ListKind,
    ListRow,
)
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.snapshots import NodeSnapshots
from atalanta.console.nodes.tables import of_node

INVALID_FILTER: Final = "AMQ229020"
SHOWN_MAX: Final = 50  # of each kind
QUEUES_MAX: Final = 200  # that are looked through for messages, at all nodes together
MESSAGES_MAX: Final = 1_000_000  # in them
SEARCHED: Final[tuple[tuple[ListKind, tuple[str, ...]], ...]] = (
    (QUEUES, ("name", "filter")),
    (ADDRESSES, ("name",)),
    (CONSUMERS, ("clientID", "user", "filter", "remoteAddress")),
    (CONNECTIONS, ("clientID", "users", "remoteAddress", "connectionID")),
)


@dataclass
class FoundRows:
    """The rows of one kind; `count` are all, `rows` the first of them."""

    rows: list[ListRow]
    count: int


@dataclass
class FoundMessages:
    """The queues with messages that match, with their numbers; and what was left out."""

    queues: list[tuple[ClusterNode, str, int]] = field(default_factory=list)
    looked: int = 0
    left_out: int = 0
    problems: list[NodeProblem] = field(default_factory=list)


async def find_names(
    cluster: SessionCluster, snapshots: NodeSnapshots, text: str
) -> tuple[dict[str, FoundRows], list[NodeProblem]]:
    """Returns what has the text in its name, by the operation that lists it, and the nodes without an answer."""
    wanted = text.casefold()
    found: dict[str, FoundRows] = {}
    problems: dict[str, NodeProblem] = {}
    for kind, fields in SEARCHED:

        async def ask(node: ClusterNode, kind: ListKind = kind) -> list[ListRow]:
            return (await snapshots.of(node, kind)).rows

        answers = await cluster.each(ask)
        problems.update({each.node: each for each in answers.problems})
        rows: list[ListRow] = []
        for node, known in answers.found:
            chosen = [row for row in known if any(wanted in str(row.get(name) or "").casefold() for name in fields)]
            rows += of_node(chosen, node.label, node.id)
        found[kind.operation] = FoundRows(rows[:SHOWN_MAX], len(rows))
    return found, list(problems.values())


async def find_messages(
    cluster: SessionCluster, snapshots: NodeSnapshots, selector: str, names: str
) -> FoundMessages:
    """Returns the queues, whose names contain `names`, with messages that match. It stops at QUEUES_MAX and says so.

    The queues with fewest messages are looked through first. Raises the refusal of a selector.
    """

    async def ask(node: ClusterNode) -> list[ListRow]:
        return (await snapshots.of(node, QUEUES)).rows

    answers = await cluster.each(ask)
    result = FoundMessages(problems=answers.problems)
    wanted = names.casefold()
    candidates: list[tuple[int, ClusterNode, str]] = []
    for node, rows in answers.found:
        for row in rows:
            name, count = row.get("name"), row.get("messageCount")
            full = isinstance(name, str) and isinstance(count, int) and count > 0 and wanted in name.casefold()
            if full and row.get("internalQueue") is not True:
                candidates.append((int(str(count)), node, str(name)))
    candidates.sort(key=lambda each: (each[0], each[2]))
    messages = 0
    chosen: dict[str, list[tuple[ClusterNode, str]]] = {}
    for count, node, name in candidates:
        if result.looked >= QUEUES_MAX or messages + count > MESSAGES_MAX:
            result.left_out += 1
            continue
        result.looked += 1
        messages += count
        chosen.setdefault(node.place.at, []).append((node, name))
    await asyncio.gather(*(_count(each, selector, result) for each in chosen.values()))
    result.queues.sort(key=lambda each: (-each[2], each[1], each[0].label))
    return result


async def _count(queues: list[tuple[ClusterNode, str]], selector: str, result: FoundMessages) -> None:
    """Counts at one node, one queue after the other."""
    for node, name in queues:
        try:
            count = await node.call(f"queue.{name}", "countMessages", selector)
        except ManagementFailed as error:
            if INVALID_FILTER in error.reason:
                raise
            result.problems.append(NodeProblem(node.label, f"{name}: {error_text(error)}", error))
            if len(result.problems) > SHOWN_MAX:
                return
            continue
        if isinstance(count, int) and count > 0:
            result.queues.append((node, name, count))
