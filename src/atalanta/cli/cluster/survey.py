"""The survey of a running cluster: one connection per node, management messages, two samples with a pause between.

The first nodes are named; the others are found through the members these know. The survey works with any CORE
broker. Values that a broker does not report stay empty (cli/cluster/view.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from atalanta.cli.admin.answers import row_of, rows_of, unexpected
from atalanta.cli.admin.lease_view import lease_of
from atalanta.cli.admin.queues import typed_row
from atalanta.cli.broker_login import BrokerLogin
from atalanta.cli.cluster.view import (
    ClusterConnectionView,
    ConsumerView,
    LinkView,
    LiveCluster,
    NodeView,
    QueueView,
    SharedId,
    Unreachable,
)
from atalanta.cli.output.outcome import TIMED_OUT, Refused, line_of
from atalanta.client import (
    CallTimedOut,
    ClientError,
    Connection,
    Management,
    ManagementFailed,
    NotAuthorized,
)
from atalanta.client.management import REPLY_QUEUE_PREFIX
from atalanta.kernel.security.security import DEFAULT_CLUSTER_PASSWORD, DEFAULT_CLUSTER_USER
from atalanta.wire.uri import DEFAULT_PORT

BROKER: Final = "broker"
NODES_MAX: Final = 200
OLDEST_MAX: Final = 100  # queues per node whose oldest message is requested
BROWSED_MAX: Final = 200
CONNECT_S: Final = 10.0
Answer = TypeVar("Answer")


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
    """A survey with the credentials of an operator. `wait_s` is the pause between its two samples."""

    def __init__(self, target: BrokerLogin, wait_s: float, details: bool = True) -> None:
        self.target = target
        self.wait_s = wait_s
        self.details = details
        self.found = LiveCluster()
        self.refusals: list[Exception] = []
        self._connections: dict[str, tuple[Connection, Management]] = {}

    async def run(self, names: list[str]) -> LiveCluster:
        """Surveys the cluster. Raises the first error if none of the named nodes answers."""
        options = ""
        try:
            for name in names:
                head, options = url_of(name)
                await self._visit(head, options, None)
            if not self.found.nodes:
                raise _refusal(self.refusals[0], names[0])
            await self._others(options)
            if self.wait_s > 0:
                await asyncio.sleep(self.wait_s)
                await asyncio.gather(*(self._again(node) for node in self.found.nodes))
                self.found.seconds = self.wait_s
        finally:
            for connection, _ in self._connections.values():
                await connection.close()
        self.found.tell_apart()
        return self.found

    async def _others(self, options: str) -> None:
        tried: dict[tuple[str, str], bool] = {}
        while True:
            wanted: list[tuple[str, str]] = []
            for node in self.found.nodes:
                for node_id, address in node.members.items():
                    known = self.found.node(node_id)
                    if (node_id, address) not in tried and (known is None or known.at != address):
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
        url = f"{head}?{options}" if options else head
        try:
            # Not wait_for: in Python 3.11 it loses a cancellation (Ctrl-C) that comes together with the answer.
            async with asyncio.timeout(CONNECT_S):
                connection = await _opened(url, self.target.user, self.target.password)
        except (ClientError, OSError, TimeoutError) as error:
            self.refusals.append(error)
            self.found.unreachable.append(Unreachable(at, _why(error), expected))
            return
        management = connection.management()
        keep = False
        try:
            node_id = str(await management.get(BROKER, "NodeID"))
            if expected is not None and node_id != expected:
                why = f"node {node_id} answers there"
                self.found.unreachable.append(Unreachable(at, why, expected, node_id))
            known = self.found.node(node_id)
            if known is not None and not await self._same(known, management):
                self.found.shared.append(SharedId(node_id, known.at, at))
            elif known is None:
                keep = True
                self._connections[node_id] = (connection, management)
                node = NodeView(at, node_id)
                self.found.nodes.append(node)
                await self._fill(node, management, connection)
                if self.details and not node.ours:
                    node.default_cluster_password = await self._has_default_password(url, node)
        except (ClientError, OSError) as error:
            self.refusals.append(error)
            if not keep:
                self.found.unreachable.append(Unreachable(at, _why(error), expected))
        finally:
            if not keep:
                await connection.close()

    async def _same(self, known: NodeView, management: Management) -> bool:
        """Returns whether `known` is the node of `management`: then it has this conversation's reply queue."""
        other = self._connections[known.node_id][0].management()
        try:
            await other.get(f"queue.{management.reply_queue}", "ID")
        except ManagementFailed:
            return False
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

    # -- one node -------------------------------------------------------------------------------
    async def _fill(self, node: NodeView, management: Management, connection: Connection) -> None:
        async def ask(what: str, question: Awaitable[Answer], otherwise: Answer) -> Answer:
            try:
                return await question
            except (ClientError, ValueError) as error:
                node.unasked.append(f"{what}: {_why(error)}")
                return otherwise

        node.name = str(await ask("name", management.get(BROKER, "Name"), "") or "")
        node.version = str(await ask("version", management.get(BROKER, "Version"), "") or "")
        try:
            default = await management.get(BROKER, "DefaultClusterPassword")
            node.recognise(default is True)
        except ClientError as error:
            if not isinstance(error, ManagementFailed):  # an Artemis node does not know the attribute
                node.unasked.append(f"default password: {_why(error)}")
        node.security_enabled = bool(
            await ask("security", management.get(BROKER, "SecurityEnabled"), True)
        )
        node.members = await ask("topology", member_places(management), {})
        if not node.members:
            node.members = {
                member.node_id: f"{member.host}:{member.port}"
                for member in connection.topology
                if member.host is not None
            }
        names = await ask("clusters", management.get(BROKER, "ClusterConnectionNames"), [])
        for name in names if isinstance(names, list) else []:
            read = _cluster_connection(node, management, str(name))
            found = await ask(f"cluster connection {name}", read, None)
            if found is not None:
                node.connections.append(found)
        for queue in await ask("queues", _queues(management), []):
            node.queues[queue.name] = queue
        node.consumers = await ask("consumers", _consumers(management), [])
        if self.details:
            node.prepared = await ask("prepared transactions", _prepared(management), [])
            if node.ours:
                node.replication = await ask("replication", _replication(management), None)
            await self._closer(node, management)

    async def _closer(self, node: NodeView, management: Management) -> None:
        """Reads details of queues with messages: the age of the oldest message, and the address-settings."""
        waiting = [queue for queue in node.queues.values() if queue.waiting and not queue.temporary]
        waiting.sort(key=lambda queue: -queue.waiting)
        for queue in waiting[:OLDEST_MAX]:
            try:
                age = await management.get(f"queue.{queue.name}", "FirstMessageAge")
                queue.oldest_ms = age if isinstance(age, int) else None
                if queue.forwards_to is not None:
                    queue.addresses = await _addresses(management, queue.name, node.ours)
                elif queue.address not in node.redistribution_delay_ms:
                    text = await management.call(BROKER, "getAddressSettingsAsJSON", queue.address)
                    settings = row_of(text, BROKER, "getAddressSettingsAsJSON")
                    delay = settings.get("redistributionDelay", -1)
                    if not isinstance(delay, int):
                        raise unexpected(delay, BROKER, "getAddressSettingsAsJSON")
                    node.redistribution_delay_ms[queue.address] = delay
            except (ClientError, ValueError) as error:
                node.unasked.append(f"queue {queue.name}: {_why(error)}")

    async def _again(self, node: NodeView) -> None:
        """Takes the second sample; a node that is not reachable keeps the first."""
        _, management = self._connections[node.node_id]
        try:
            for queue in await _queues(management):
                if queue.name in node.queues:
                    node.queues[queue.name].later = queue
            consumers = {(one.session, one.id): one for one in await _consumers(management)}
            for consumer in node.consumers:
                consumer.later = consumers.get((consumer.session, consumer.id))
            if node.prepared:
                later = await _prepared(management)
                node.prepared = [each for each in node.prepared if each in later]
            for connection in node.connections:
                await _count_links(management, connection, lambda link, n: _later(link, n))
        except (ClientError, OSError) as error:
            node.unasked.append(f"second sample: {_why(error)}")


async def _opened(url: str, user: str | None, password: str | None) -> Connection:
    return await BrokerLogin(url, user, password).connect()


def _refusal(error: Exception, name: str) -> Exception:
    """Returns the error of a node that was named and does not answer: a node of a group may wait for its group."""
    if not isinstance(error, TimeoutError | CallTimedOut):
        return error
    return Refused(
        f"{name}: no answer within {CONNECT_S:g} s: the node is busy, or waits for its group. A member of a replicated "
        "group is asked by its folder, on its host: atalanta doctor FOLDER",
        TIMED_OUT,
    )


def _why(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return line_of(error) if isinstance(error, Exception) else str(error)


async def member_places(management: Management) -> dict[str, str]:
    """Returns host:port of each active member by its node id."""
    text = await management.call(BROKER, "listNetworkTopology")
    rows = rows_of(text, BROKER, "listNetworkTopology", nodeID=str)
    return {
        str(row["nodeID"]): str(row.get("primary") or row.get("live"))
        for row in rows
        if row.get("primary") or row.get("live")
    }


async def _prepared(management: Management) -> list[str]:
    """Returns the prepared XA transactions, the oldest first, as the base64 that commit and rollback take."""
    found = await management.call(BROKER, "listPreparedTransactions")
    texts = [str(each) for each in found] if isinstance(found, list) else []
    return [text.partition("base64: ")[2].partition(" ")[0] for text in texts]


async def _replication(management: Management) -> dict[str, object] | None:
    """Returns what the active node of a replicated group says of it, None for any other node."""
    try:
        text = await management.get(BROKER, "ReplicationAsJSON")
    except ManagementFailed:
        return None  # an earlier release
    return row_of(text, BROKER, "ReplicationAsJSON") if text else None


async def _queues(management: Management) -> list[QueueView]:
    found: list[QueueView] = []
    for raw in await management.rows("listQueues"):
        row = typed_row(raw)
        if str(row.get("name")).startswith(REPLY_QUEUE_PREFIX):
            continue
        text = str(row.get("filter") or "") or None
        found.append(
            QueueView(
                str(row.get("name")),
                str(row.get("address")),
                str(row.get("routingType") or ""),
                text,
                _int(row, "messageCount"),
                _int(row, "consumerCount"),
                _int(row, "deliveringCount"),
                _int(row, "scheduledCount"),
                _int(row, "messagesAdded"),
                _int(row, "messagesAcked"),
                row.get("internalQueue") is True,
                row.get("temporary") is True,
                row.get("paused") is True,
                row.get("enabled") is not False,
                row.get("exclusive") is True,
                _int(row, "consumersBeforeDispatch"),
                lease=lease_of(row),
            )
        )
    return found


async def _consumers(management: Management) -> list[ConsumerView]:
    found: list[ConsumerView] = []
    for raw in await management.rows("listConsumers"):
        row = typed_row(raw)
        name = str(row.get("queue") or row.get("queueName"))
        if name.startswith(REPLY_QUEUE_PREFIX):
            continue
        ready = row.get("ready")
        found.append(
            ConsumerView(
                str(row.get("id")),
                str(row.get("session")),
                name,
                str(row.get("filter") or "") or None,
                _int(row, "messagesInTransit"),
                _int(row, "messagesDelivered"),
                ready if isinstance(ready, bool) else None,
                str(row.get("clientID") or row.get("remoteAddress") or ""),
            )
        )
    return found


async def _cluster_connection(
    node: NodeView, management: Management, name: str
) -> ClusterConnectionView:
    resource = f"clusterconnection.{name}"

    async def get(attribute: str) -> object:
        return await management.get(resource, attribute)

    view = ClusterConnectionView(name)
    view.address = str(await get("Address") or "")
    view.load_balancing = str(await get("MessageLoadBalancingType") or "")
    hops = await get("MaxHops")
    view.max_hops = hops if isinstance(hops, int) else 1
    view.duplicate_detection = (await get("DuplicateDetection")) is not False
    connectors = await get("StaticConnectors")
    view.static_connectors = (
        [str(one) for one in connectors] if isinstance(connectors, list) else []
    )
    group = await get("DiscoveryGroupName")
    view.discovery_group = str(group) if group else None
    nodes = await get("Nodes")
    for node_id, address in (nodes if isinstance(nodes, dict) else {}).items():
        view.links[str(node_id)] = LinkView(str(node_id), str(address))
    if not node.ours:
        await _count_links(management, view, _first)
        return view
    text = await management.call(resource, "listLinks")
    failures = await get("ConnectorFailures")
    for at, why in (failures if isinstance(failures, dict) else {}).items():
        view.failures[str(at)] = str(why)
    numbers = dict.fromkeys(("awaySince", "waiting", "mayHaveArrived", "confirmed"), int)
    rows = rows_of(text, resource, "listLinks", nodeID=str, address=str, state=str, **numbers)
    for row in rows:
        view.links[str(row["nodeID"])] = LinkView(
            str(row["nodeID"]),
            str(row["address"]),
            row["state"] == "linked",
            row["awaySince"] or None,
            row["waiting"],
            row["mayHaveArrived"],
            row["confirmed"],
        )
    return view


async def _count_links(
    management: Management,
    connection: ClusterConnectionView,
    note: Callable[[LinkView, int], None],
) -> None:
    """Counts the messages that each member has confirmed (getBridgeMetrics)."""
    for link in connection.links.values():
        if link.linked:
            resource = f"clusterconnection.{connection.name}"
            try:
                found = await management.call(resource, "getBridgeMetrics", link.node_id)
            except NotAuthorized:
                raise
            except ClientError:
                continue
            count = found.get("messagesAcknowledged") if isinstance(found, dict) else None
            if isinstance(count, int):
                note(link, count)


def _first(link: LinkView, confirmed: int) -> None:
    link.confirmed = confirmed


def _later(link: LinkView, confirmed: int) -> None:
    link.later_confirmed = confirmed


async def _addresses(management: Management, queue: str, ours: bool) -> dict[str, int]:
    """Counts the first messages of a store-and-forward queue by their original address.

    Artemis' listing is limited (management-browse-page-size); its browsing is not available by message.
    """
    resource = f"queue.{queue}"
    if ours:
        found = await management.call(resource, "browse", 1, BROWSED_MAX)
    else:
        text = await management.call(resource, "listMessagesAsJSON", "")
        found = rows_of(text, resource, "listMessagesAsJSON")
    counts: dict[str, int] = {}
    for message in found if isinstance(found, list) else []:
        if not isinstance(message, dict):
            raise unexpected(message, resource, "browse")
        address = str(message.get("address", "?")).partition("::")[0]
        counts[address] = counts.get(address, 0) + 1
    return counts


def _int(row: dict[str, object], name: str) -> int:
    value = row.get(name)
    return value if isinstance(value, int) else 0
