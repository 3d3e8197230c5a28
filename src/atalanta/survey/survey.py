"""The survey of a running cluster: one connection per node, management messages, two samples with a pause between.

The first nodes are named; the others are found through the members these know. The survey works with any CORE
broker. Values that a broker does not report stay empty (model/).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from atalanta.client import CallTimedOut, ClientError, Connection, Management, ManagementFailed
from atalanta.kernel.security.security import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.error_line import why_of
from atalanta.survey.model.cluster import NOT_ADMITTED, LiveCluster, NodeView, SharedId, Unreachable
from atalanta.survey.node.inquiry import NodeInquiry
from atalanta.survey.node.queue_rows import BROKER
from atalanta.survey.samples import joined
from atalanta.wire.uri import DEFAULT_PORT

NODES_MAX: Final = 200
Place = tuple[str, str | None]  # host:port, and the node id there according to a topology
CONNECT_S: Final = 10.0


def url_of(node: str) -> tuple[str, str]:
    """Splits `host`, `host:port` or the URL of one broker into (URL up to its options, options)."""
    text = node if "://" in node else f"tcp://{node}"
    head, _, options = text.partition("?")
    scheme, _, address = head.partition("://")
    if (
        not address.startswith("(")
        and "," not in address
        and not address.rpartition("]")[2].count(":")
    ):
        head = f"{scheme}://{address}:{DEFAULT_PORT}"
    return head, options


class Survey:
    """A survey with the credentials of an operator.

    `wait_s` is the pause between the two samples of a run. Without `details` it reads what a picture needs: sums
    instead of the queues of an Atalanta node, unless `queues` asks for them. `admits` decides whether the credentials
    may go to a host:port that only a topology names. `tries_default_password`: whether that of the cluster user is
    tried at a real Artemis, whose log then has a refused login at each sample.
    """

    def __init__(
        self,
        target: BrokerLogin,
        wait_s: float,
        details: bool = True,
        admits: Callable[[str], bool] = lambda at: True,
        queues: bool = False,
        tries_default_password: bool = True,
    ) -> None:
        self.target = target
        self.wait_s = wait_s
        self.details = details
        self.admits = admits
        self.queues = queues or details
        self.tries_default_password = tries_default_password
        self.found = LiveCluster()
        self.refusals: list[Exception] = []
        self._inquiries: dict[str, NodeInquiry] = {}
        self._aliases: set[Place] = set()  # further places of nodes, which were looked at
        self._open: dict[Place, tuple[Connection, Management]] = {}  # over several samples

    async def run(self, names: list[str]) -> LiveCluster:
        """Surveys the cluster in two samples. Raises the first error if none of the named nodes answers."""
        try:
            await self._visit_all(names)
            if self.wait_s > 0:
                await asyncio.sleep(self.wait_s)
                await asyncio.gather(*(each.sample_again() for each in self._inquiries.values()))
                self.found.seconds = self.wait_s
        finally:
            await self.close()
        return self.found

    async def sample(self, names: list[str], before: LiveCluster | None = None, seconds: float = 0.0) -> LiveCluster:
        """Takes one sample and leaves the connections open for the next one; `close` closes them.

        `before` is the sample that was taken `seconds` ago: with it the result has rates. Raises like `run`.
        """
        self.found = LiveCluster()
        self.refusals.clear()
        self._inquiries.clear()
        await self._visit_all(names)
        return self.found if before is None else joined(before, self.found, seconds)

    @property
    def has_lost(self) -> bool:
        """Returns whether a connection has ended since the last sample: a node is gone, or has started again."""
        return any(not connection.connected for connection, _ in self._open.values())

    async def close(self) -> None:
        """Closes the connections."""
        opened = list(self._open.values())
        self._open.clear()
        for connection, _ in opened:
            await connection.close()

    async def _visit_all(self, names: list[str]) -> None:
        options = ""
        for name in names:
            head, options = url_of(name)
            await self._visit(head, options, None)
        if not self.found.nodes:
            raise _refusal(self.refusals[0], names[0])
        await self._others(options)
        self.found.tell_apart()

    async def _others(self, options: str) -> None:
        tried: dict[tuple[str, str], bool] = {}
        while True:
            wanted: list[tuple[str, str]] = []
            for node in self.found.nodes:
                for node_id, address in node.members.items():
                    known = self.found.node(node_id)
                    if known is not None and (known.at == address or (address, node_id) in self._aliases):
                        continue
                    if (node_id, address) not in tried:
                        tried[(node_id, address)] = True
                        wanted.append((node_id, address))
            if not wanted or len(tried) > NODES_MAX:
                return
            await asyncio.gather(
                *(self._visit(f"tcp://{address}", options, node_id) for node_id, address in wanted)
            )

    async def _visit(self, head: str, options: str, expected: str | None) -> None:
        """Surveys one address. `expected` is the node id there according to a topology."""
        at = head.partition("://")[2]
        place = (at, expected)
        url = f"{head}?{options}" if options else head
        if expected is not None and not self.admits(at):
            self.found.unreachable.append(Unreachable(at, NOT_ADMITTED, expected))
            return
        try:
            node_id = await self._node_id(place, url)
        except (ClientError, OSError, TimeoutError) as error:
            self.refusals.append(error)
            self.found.unreachable.append(Unreachable(at, why_of(error), expected))
            await self._drop(place)
            return
        connection, management = self._open[place]
        asked = False
        try:
            if expected is not None and node_id != expected:
                why = f"node {node_id} answers there"
                self.found.unreachable.append(Unreachable(at, why, expected, node_id))
            known = self.found.node(node_id)
            if known is not None:
                if await self._same(known, management):
                    self._aliases.add(place)
                else:
                    self.found.shared.append(SharedId(node_id, known.at, at))
            else:
                asked = True
                await self._ask(NodeView(at, node_id), connection, management, url)
        except (ClientError, OSError) as error:
            self.refusals.append(error)
            if not asked:
                self.found.unreachable.append(Unreachable(at, why_of(error), expected))
            asked = False
        finally:
            if not asked:
                await self._drop(place)

    async def _ask(self, node: NodeView, connection: Connection, management: Management, url: str) -> None:
        inquiry = NodeInquiry(node, connection, management, self.details, self.queues)
        self._inquiries[node.node_id] = inquiry
        self.found.nodes.append(node)
        await inquiry.fill()
        if self.details and self.tries_default_password and not node.ours:
            node.default_cluster_password = await self._has_default_password(url, node)

    async def _node_id(self, place: Place, url: str) -> str:
        """Asks the node at a place for its id, over the connection of the last sample if that still works."""
        known = self._open.get(place)
        if known is not None:
            try:
                return str(await known[1].get(BROKER, "NodeID"))
            except (ClientError, OSError):
                await self._drop(place)  # the node has started again, perhaps
        # Not wait_for: in Python 3.11 it loses a cancellation (Ctrl-C) that comes together with the answer.
        async with asyncio.timeout(CONNECT_S):
            connection = await _opened(url, self.target.user, self.target.password)
        management = connection.management()
        self._open[place] = (connection, management)
        return str(await management.get(BROKER, "NodeID"))

    async def _drop(self, place: Place) -> None:
        known = self._open.pop(place, None)
        if known is not None:
            await known[0].close()

    async def _same(self, known: NodeView, management: Management) -> bool:
        """Returns whether `known` is the node of `management`: then it has this conversation's reply queue."""
        other = self._inquiries[known.node_id].connection.management()
        try:
            await other.get(f"queue.{management.reply_queue}", "ID")
        except ManagementFailed:
            return False
        finally:
            await other.close()
        return True

    async def _has_default_password(self, url: str, node: NodeView) -> bool:
        """Returns whether the default cluster user can log in. False where every user can log in.

        Atalanta nodes tell it themselves: a refused login would be a warning in their log.
        """
        if not node.security_enabled:
            return False
        try:
            async with asyncio.timeout(CONNECT_S):
                connection = await _opened(url, DEFAULT_CLUSTER_USER, DEFAULT_CLUSTER_PASSWORD)
        except (ClientError, OSError, TimeoutError):
            return False
        await connection.close()
        return True


async def _opened(url: str, user: str | None, password: str | None) -> Connection:
    return await BrokerLogin(url, user, password).connect()


def _refusal(error: Exception, name: str) -> Exception:
    """Returns the error of a node that was named and does not answer: a node of a group may wait for its group."""
    if not isinstance(error, TimeoutError | CallTimedOut):
        return error
    return CallTimedOut(
        f"{name}: no answer within {CONNECT_S:g} s: the node is busy, or waits for its group. A member of a replicated "
        "group is asked by its folder, on its host: atalanta doctor FOLDER"
    )
