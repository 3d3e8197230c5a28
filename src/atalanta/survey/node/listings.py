"""The queues, consumers and prepared transactions of one node, as its management lists them."""

from __future__ import annotations

from typing import Final

from atalanta.client import Management, ManagementFailed
from atalanta.client.management import REPLY_QUEUE_PREFIX
from atalanta.survey.model.groups import ReplicationView, ReplicaView
from atalanta.survey.model.lease import lease_of
from atalanta.survey.model.queues import ConsumerView, QueueView, TotalsView
from atalanta.survey.node.answers import row_of, rows_of, unexpected
from atalanta.survey.node.queue_rows import BROKER, typed_row

BROWSED_MAX: Final = 200
QUEUE_FIELDS: Final = (
    "name", "address", "routingType", "filter", "messageCount", "consumerCount", "deliveringCount", "scheduledCount",
    "messagesAdded", "messagesAcked", "internalQueue", "temporary", "paused", "enabled", "exclusive",
    "consumersBeforeDispatch", "lease",
)  # fmt: skip
CONSUMER_FIELDS: Final = (
    "id", "session", "queue", "filter", "messagesInTransit", "messagesDelivered", "ready", "clientID", "remoteAddress",
)  # fmt: skip


async def topology_rows(management: Management) -> list[dict[str, object]]:
    """Returns the members of the topology: `nodeID`, and host:port of `primary` and `backup` if they are there."""
    text = await management.call(BROKER, "listNetworkTopology")
    return rows_of(text, BROKER, "listNetworkTopology", nodeID=str)


async def member_places(management: Management) -> dict[str, str]:
    """Returns host:port of each active member by its node id."""
    return active_places(await topology_rows(management))


def active_places(rows: list[dict[str, object]]) -> dict[str, str]:
    """Returns host:port of each active member by its node id (earlier Artemis nodes say `live`)."""
    places = {str(row["nodeID"]): row.get("primary") or row.get("live") for row in rows}
    return {node_id: str(place) for node_id, place in places.items() if place}


async def prepared_transactions(management: Management) -> list[str]:
    """Returns the prepared XA transactions, the oldest first, as the base64 that commit and rollback take."""
    found = await management.call(BROKER, "listPreparedTransactions")
    texts = [str(each) for each in found] if isinstance(found, list) else []
    return [text.partition("base64: ")[2].partition(" ")[0] for text in texts]


async def replication_of(management: Management) -> ReplicationView | None:
    """Returns what the active node of a replicated group says of it, None for any other node."""
    try:
        text = await management.get(BROKER, "ReplicationAsJSON")
    except ManagementFailed:
        return None  # an earlier release
    if not text:
        return None
    row = row_of(text, BROKER, "ReplicationAsJSON")
    replicas, silent = row.get("replicas"), row.get("silentVoters")
    return ReplicationView(
        _int(row, "epoch"),
        _int(row, "minInSync") or 1,
        str(row.get("registerProblem") or ""),
        row.get("onlyVoter") is True,
        {str(at): str(why) for at, why in (silent if isinstance(silent, dict) else {}).items()},
        [_replica(each) for each in (replicas if isinstance(replicas, list) else []) if isinstance(each, dict)],
    )


def _replica(row: dict[str, object]) -> ReplicaView:
    connected = row.get("connected")
    return ReplicaView(
        str(row.get("member")),
        row.get("inSync") is True,
        row.get("asynchronous") is True,
        _int(row, "behind"),
        _int(row, "behindMillis"),
        connected if isinstance(connected, bool) else None,
        str(row.get("address") or "") or None,
    )


async def totals_of(management: Management) -> TotalsView | None:
    """Returns the sums over the queues of a node; None of an earlier release, and of a real Artemis."""
    try:
        row = row_of(await management.get(BROKER, "TotalsAsJSON"), BROKER, "TotalsAsJSON")
    except ManagementFailed:
        return None
    counts = [_int(row, name) for name in ("queues", "messages", "consumers", "added", "acknowledged")]
    return TotalsView(counts[0], counts[1], counts[2], counts[3], counts[4])


async def queues_of(management: Management, only: str = "") -> list[QueueView]:
    """Returns the queues with `only` in their names, without those of management conversations such as this one."""
    found: list[QueueView] = []
    condition = ("name", "CONTAINS", only) if only else ("", "", "")
    rows = await management.rows("listQueues", *condition, fields=QUEUE_FIELDS)
    for raw in sorted(rows, key=lambda each: str(each.get("name"))):
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


async def consumers_of(management: Management) -> list[ConsumerView]:
    """Returns the consumers, without those of management conversations."""
    found: list[ConsumerView] = []
    for raw in await management.rows("listConsumers", fields=CONSUMER_FIELDS):
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


async def parked_addresses(management: Management, queue: str, ours: bool) -> dict[str, int]:
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
