"""The inquiry at one node: what its management says, in two samples."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Final, TypeVar

from atalanta.client import ClientError, Connection, Management, ManagementFailed
from atalanta.survey.error_line import why_of
from atalanta.survey.model.cluster import NodeView
from atalanta.survey.model.queues import FORWARD_MARK
from atalanta.survey.node.answers import row_of, unexpected
from atalanta.survey.node.bridges import bridges_of, count_bridges, count_networks, networks_of
from atalanta.survey.node.cluster_links import cluster_connection, count_links, note_later
from atalanta.survey.node.health import alarms_of, artemis_alarms, artemis_limits, events_of
from atalanta.survey.node.listings import (
    active_places,
    consumers_of,
    parked_addresses,
    prepared_transactions,
    queues_of,
    replication_of,
    topology_rows,
    totals_of,
)
from atalanta.survey.node.queue_rows import BROKER

# How a node refuses an operation or an attribute that it does not know.
UNKNOWN: Final = ("AMQ229069", "Problem while retrieving attribute")
OLDEST_MAX: Final = 100  # queues per node whose oldest message is requested
Answer = TypeVar("Answer")


class NodeInquiry:
    """The conversation with one node. Without `details` it reads what a picture needs, without `queues` their sums."""

    def __init__(
        self, node: NodeView, connection: Connection, management: Management, details: bool, queues: bool
    ) -> None:
        self.node = node
        self.connection = connection
        self.management = management
        self.details = details
        self.queues = queues

    async def fill(self) -> None:
        """Takes the first sample. Raises ClientError if the node does not answer at all."""
        node, management = self.node, self.management
        began_s = time.monotonic()
        node.name = str(await self._ask("name", management.get(BROKER, "Name"), "") or "")
        node.answer_ms = 1_000 * (time.monotonic() - began_s)
        node.version = str(await self._ask("version", management.get(BROKER, "Version"), "") or "")
        try:
            default = await management.get(BROKER, "DefaultClusterPassword")
            node.recognise(default is True)
        except ClientError as error:
            if not isinstance(error, ManagementFailed):  # an Artemis node does not know the attribute
                node.unasked.append(f"default password: {why_of(error)}")
        security = await self._ask("security", management.get(BROKER, "SecurityEnabled"), True)
        node.security_enabled = bool(security)
        await self._read_state()
        await self._read_topology()
        node.bridges = await self._ask("bridges", bridges_of(management, node.ours), [])
        if node.ours:
            node.networks = await self._ask("networks", networks_of(management), [])
            waiting = await self._optional("WaitingBackups")
            node.waiting = [str(each) for each in waiting] if isinstance(waiting, list) else None
            node.replication = await self._ask("replication", replication_of(management), None)
        if not self.queues and node.ours:
            node.totals = await self._ask("totals", totals_of(management), None)
        for queue in await self._ask("queues", queues_of(management, self._only()), []):
            node.queues[queue.name] = queue
        for bridge in node.bridges:
            source = node.queues.get(bridge.queue)
            count = source.messages if source else await self._optional("MessageCount", f"queue.{bridge.queue}")
            bridge.waiting = _number(count)
        if self.details or not node.ours:
            node.consumers = await self._ask("consumers", consumers_of(management), [])
        if self.details:
            node.prepared = await self._ask("prepared transactions", prepared_transactions(management), [])
            await self._read_health()
            await self._closer()

    def _only(self) -> str:
        """Returns what the queues that are listed have in their names: with totals the picture needs no others."""
        return "" if self.node.totals is None else FORWARD_MARK

    async def _read_health(self) -> None:
        """Reads what the node knows to be wrong. The clock comes last: no event is younger."""
        node, management = self.node, self.management
        if node.ours:
            node.alarms = await self._ask("alarms", alarms_of(management), [])
            node.events = await self._ask("events", events_of(management), [])
        else:
            node.alarms = await self._ask("addresses", artemis_alarms(management), [])
            node.alarms += artemis_limits(node)
            if node.policy.startswith("Replication"):
                synced = await self._optional("ReplicaSync")
                node.replica_sync = synced if isinstance(synced, bool) else None
        node.clock_ms = _number(await self._optional("CurrentTimeMillis"))
        node.asked_ms = int(time.time() * 1_000)

    async def _ask(self, what: str, question: Awaitable[Answer], otherwise: Answer) -> Answer:
        try:
            return await question
        except (ClientError, ValueError) as error:
            if isinstance(error, ManagementFailed) and any(mark in error.reason for mark in UNKNOWN):
                self.node.unsupported.append(what)
            else:
                self.node.unasked.append(f"{what}: {why_of(error)}")
            return otherwise

    async def _read_state(self) -> None:
        """Reads its role, and how much it has of what ends: clients, disk, memory."""
        node = self.node
        node.policy = str(await self._optional("HAPolicy") or "")
        node.shared_store = await self._optional("SharedStore") is True
        node.epoch = _number(await self._optional("ActivationSequence"))
        node.uptime_ms = _number(await self._optional("UptimeMillis"))
        node.clients = _number(await self._optional("ConnectionCount"))
        node.sessions = _number(await self._optional("SessionCount"))
        node.memory_used_percent = _number(await self._optional("AddressMemoryUsagePercentage"))
        used = await self._optional("DiskStoreUsage")
        node.disk_limit_percent = _number(await self._optional("MaxDiskUsage"))
        node.disk_used_percent = 100.0 * used if isinstance(used, float | int) and not isinstance(used, bool) else None

    async def _optional(self, attribute: str, resource: str = BROKER) -> object:
        """Returns an attribute that not every broker has or can tell; None without it."""
        try:
            return await self.management.get(resource, attribute)
        except ManagementFailed:
            return None

    async def _read_topology(self) -> None:
        node, management = self.node, self.management
        rows = await self._ask("topology", topology_rows(management), [])
        node.members = active_places(rows)
        node.backups = {str(row["nodeID"]): str(row["backup"]) for row in rows if row.get("backup")}
        if not node.members:
            node.members = {
                member.node_id: f"{member.host}:{member.port}"
                for member in self.connection.topology
                if member.host is not None
            }
        names = await self._ask("clusters", management.get(BROKER, "ClusterConnectionNames"), [])
        for name in names if isinstance(names, list) else []:
            read = cluster_connection(node, management, str(name))
            found = await self._ask(f"cluster connection {name}", read, None)
            if found is not None:
                node.connections.append(found)

    async def _closer(self) -> None:
        """Reads details of queues with messages: the age of the oldest message, and the address-settings."""
        node, management = self.node, self.management
        waiting = [queue for queue in node.queues.values() if queue.waiting and not queue.temporary]
        waiting.sort(key=lambda queue: -queue.waiting)
        for queue in waiting[:OLDEST_MAX]:
            try:
                age = await management.get(f"queue.{queue.name}", "FirstMessageAge")
                queue.oldest_ms = age if isinstance(age, int) else None
                if queue.forwards_to is not None:
                    queue.addresses = await parked_addresses(management, queue.name, node.ours)
                elif queue.address not in node.redistribution_delay_ms:
                    text = await management.call(BROKER, "getAddressSettingsAsJSON", queue.address)
                    settings = row_of(text, BROKER, "getAddressSettingsAsJSON")
                    delay = settings.get("redistributionDelay", -1)
                    if not isinstance(delay, int):
                        raise unexpected(delay, BROKER, "getAddressSettingsAsJSON")
                    node.redistribution_delay_ms[queue.address] = delay
            except (ClientError, ValueError) as error:
                node.unasked.append(f"queue {queue.name}: {why_of(error)}")

    async def sample_again(self) -> None:
        """Takes the second sample; a node that is not reachable keeps the first."""
        node, management = self.node, self.management
        try:
            if node.totals is not None:
                node.totals.later = await totals_of(management)
            for queue in await queues_of(management, self._only()):
                if queue.name in node.queues:
                    node.queues[queue.name].later = queue
            if node.consumers:
                consumers = {(one.session, one.id): one for one in await consumers_of(management)}
                for consumer in node.consumers:
                    consumer.later = consumers.get((consumer.session, consumer.id))
            if node.prepared:
                later = await prepared_transactions(management)
                node.prepared = [each for each in node.prepared if each in later]
            for connection in node.connections:
                await count_links(management, connection, note_later)
            await count_bridges(management, [each for each in node.bridges if each.connected is not None])
            await count_networks(management, node.networks)
        except (ClientError, OSError) as error:
            node.unasked.append(f"second sample: {why_of(error)}")


def _number(found: object) -> int | None:
    return found if isinstance(found, int) and not isinstance(found, bool) else None
