"""The cluster of one session: the nodes of the command line, and those that their topology names.

A node that only the topology names gets the user's password after the user has agreed to its address: whoever can
announce a member could otherwise collect passwords.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from atalanta.client import ClientError, ManagementFailed, NotAuthorized
from atalanta.client.management import BROKER
from atalanta.console.access.sessions import UserCredentials
from atalanta.console.nodes.failures import NodeUnreachable, NotFound, error_text, is_login_refused
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.place import NodePlace

TOPOLOGY_S: Final = 5.0  # so long a topology is taken to be current
NODES_MAX: Final = 200
FAILURES: Final = (ClientError, NodeUnreachable, OSError, ValueError)

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class NodeProblem:
    """A node that did not answer a question, or refused it."""

    node: str
    why: str
    error: BaseException


class NodeAnswers(Generic[Answer]):
    """The answers of all nodes to one question. `problems` are the nodes without an answer: sums lack their part."""

    def __init__(self) -> None:
        self.found: list[tuple[ClusterNode, Answer]] = []
        self.problems: list[NodeProblem] = []

    def only_refusal(self) -> BaseException | None:
        """Returns the error of a question that no node has answered."""
        return self.problems[0].error if self.problems and not self.found else None


@dataclass(frozen=True)
class TopologyMember:
    """A member as another node's topology has it. `backup` is the address of its passive member, or ""."""

    node_id: str
    at: str
    backup: str


class AgreedPlaces:
    """The addresses that users have agreed to, as long as this process runs."""

    def __init__(self) -> None:
        self._by_user: dict[str, set[str]] = {}

    def agree(self, user: str, at: str) -> None:
        """Records that the user's password may go to this address."""
        self._by_user.setdefault(user, set()).add(at)

    def has(self, user: str, at: str) -> bool:
        """Returns whether the user has agreed to this address."""
        return at in self._by_user.get(user, ())


class SessionCluster:
    """The nodes that one session talks to."""

    def __init__(self, places: list[NodePlace], credentials: UserCredentials, agreed: AgreedPlaces) -> None:
        self.places = places
        self.members: dict[str, TopologyMember] = {}
        self._credentials = credentials
        self._agreed = agreed
        self._nodes: dict[str, ClusterNode] = {place.at: ClusterNode(place, credentials) for place in places}
        self._looked_s = -TOPOLOGY_S
        self._looking = asyncio.Lock()

    # -- log-in ---------------------------------------------------------------------------------
    async def log_in(self) -> ClusterNode:
        """Returns the first node that accepts the credentials and lets the user manage. Raises the most telling error.

        The nodes are tried in the order of the command line, one after the other, until one answers.
        """
        away: NodeUnreachable | None = None
        for node in list(self._nodes.values()):
            try:
                await node.connection()
                return node
            except NodeUnreachable as error:
                away = away or error
        assert away is not None  # a console has at least one node
        raise away

    async def close(self) -> None:
        """Closes every connection."""
        for node in list(self._nodes.values()):
            await node.close()

    # -- nodes ----------------------------------------------------------------------------------
    async def nodes(self) -> list[ClusterNode]:
        """Returns the nodes, those that do not answer included, sorted by label; a node with two addresses once."""
        await self._look()
        return self.known()

    def known(self) -> list[ClusterNode]:
        """Returns the nodes as they are known now."""
        found: dict[str, ClusterNode] = {}
        for node in self._nodes.values():
            found.setdefault(node.id or node.place.at, node)
        return sorted(found.values(), key=lambda node: (node.label, node.place.at))

    async def node(self, node_id: str) -> ClusterNode:
        """Returns the node with this id, or with this place while it has not answered yet. Raises NotFound."""
        for node in await self.nodes():
            if node_id in (node.id, node.place.at):
                return node
        raise NotFound(f"there is no node {node_id}")

    async def each(
        self, ask: Callable[[ClusterNode], Awaitable[Answer]], node_id: str = ""
    ) -> NodeAnswers[Answer]:
        """Asks all nodes at the same time, or the one with this id. A refused log-in is raised."""
        nodes = [await self.node(node_id)] if node_id else await self.nodes()
        answers: NodeAnswers[Answer] = NodeAnswers()
        results = await asyncio.gather(*(ask(node) for node in nodes), return_exceptions=True)
        for node, result in zip(nodes, results, strict=True):
            if not isinstance(result, BaseException):
                answers.found.append((node, result))
            elif isinstance(result, FAILURES):
                answers.problems.append(NodeProblem(node.label, error_text(result), result))
            else:
                raise result
        return answers

    # -- topology -------------------------------------------------------------------------------
    def waiting_members(self) -> list[TopologyMember]:
        """Returns the members that wait for the user's agreement to their address."""
        ids = {node.id for node in self._nodes.values() if node.id}
        return [
            member
            for member in sorted(self.members.values(), key=lambda member: member.at)
            if member.node_id not in ids and member.at not in self._nodes
        ]

    def agree(self, at: str) -> TopologyMember:
        """Records the user's agreement to an address. NotFound: no topology names it (now)."""
        for member in self.members.values():
            if member.at == at:
                self._agreed.agree(self._credentials.user, at)
                self._looked_s = -TOPOLOGY_S
                return member
        raise NotFound(f"no node of the cluster is announced at {at} now")

    async def _look(self) -> None:
        """Reads the topology of the nodes, and adds those whose addresses may have the password."""
        async with self._looking:
            if time.monotonic() - self._looked_s < TOPOLOGY_S:
                return
            asked: set[str] = set()
            while True:
                wanted = [node for at, node in self._nodes.items() if at not in asked]
                if not wanted:
                    break
                asked |= {node.place.at for node in wanted}
                for found in await asyncio.gather(*(self._members_of(node) for node in wanted)):
                    self.members.update({member.node_id: member for member in found})
                self._add_agreed()
            self._looked_s = time.monotonic()

    def _add_agreed(self) -> None:
        for member in self.waiting_members():
            place = self.places[0].elsewhere(member.at)
            agreed = place.verifies or self._agreed.has(self._credentials.user, member.at)
            if agreed and len(self._nodes) < NODES_MAX:
                self._nodes[member.at] = ClusterNode(place, self._credentials)

    async def _members_of(self, node: ClusterNode) -> list[TopologyMember]:
        """Returns the members that a node knows; none while it does not answer, or has no cluster."""
        try:
            text = await node.call(BROKER, "listNetworkTopology")
        except NotAuthorized as error:
            if is_login_refused(error):
                node.problem = error_text(error)
            return []
        except (ManagementFailed, NodeUnreachable):
            return []
        return read_topology(text)


def read_topology(text: object) -> list[TopologyMember]:
    """Returns the members in an answer to listNetworkTopology; those without a node id or address are left out."""
    try:
        rows = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        return []
    found = []
    for row in rows if isinstance(rows, list) else []:
        if isinstance(row, dict):
            at = row.get("primary") or row.get("live")
            if isinstance(at, str) and isinstance(row.get("nodeID"), str) and at:
                found.append(TopologyMember(row["nodeID"], at, str(row.get("backup") or "")))
    return found[:NODES_MAX]
