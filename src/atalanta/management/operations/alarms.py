"""The alarms of a node, which it raises itself, the newest events of its log, its totals. Only in Atalanta.

An alarm is a state: it is listed as long as it lasts. An event is told once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import ILLEGAL_STATE, BrokerError
from atalanta.kernel.memory.address_memory import BLOCK, DROP, FAIL, PAGE, UNLIMITED
from atalanta.management.request.call import (
    Attributes,
    Call,
    Operations,
    Parameters,
    number_of,
    text_of,
)
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.memory.address_memory import Account
    from atalanta.kernel.routing.address import Address
    from atalanta.management.pauses import Pauses
    from atalanta.management.status import NodeStatus

ALARMS_MAX: Final = 1_000
EVENTS_MAX: Final = 1_000
LEVELS: Final = {"info": 20, "warning": 30, "error": 40, "critical": 50}
NOTIFICATIONS: Final = "notif."  # the queues of members for this node's notifications
REPLIES: Final = "atalanta.management."  # the queues of management conversations (client/management.py)
POLICY_NAMES: Final = {PAGE: "PAGE", BLOCK: "BLOCK", FAIL: "FAIL", DROP: "DROP"}
Row = dict[str, object]


class AlarmOperations:
    """The operations of the resource `broker` on alarms and events."""

    def __init__(self, broker: Broker, status: NodeStatus, pauses: Pauses) -> None:
        self.broker = broker
        self.status = status
        self.pauses = pauses
        self.operations: Operations = {
            "listAlarms": [("", self.list_alarms)],
            "listEvents": [("si", self.list_events)],
        }
        self.attributes: Attributes = {"TotalsAsJSON": self.totals}

    def totals(self, call: Call) -> object:
        """Returns the sums over the queues that are load: not internal, nor those of members and conversations."""
        queues = messages = consumers = added = acknowledged = 0
        for queue in self.broker.queues.values():
            if queue.internal or (queue.spec.is_temporary() and queue.name.startswith((NOTIFICATIONS, REPLIES))):
                continue
            queues += 1
            messages += queue.message_count
            consumers += queue.consumer_count()
            added += queue.added
            acknowledged += queue.acknowledged
        return encode_json({
            "queues": queues,
            "messages": messages,
            "consumers": consumers,
            "added": added,
            "acknowledged": acknowledged,
        })  # fmt: skip

    def list_alarms(self, call: Call, given: Parameters) -> object:
        """Returns the alarms as JSON, at most ALARMS_MAX: those of the node, then those of addresses."""
        found = list(self._of_the_node())
        for address in self.broker.addresses.values():
            if len(found) >= ALARMS_MAX:
                break
            if not address.internal:
                found += self._of_address(address)
        return encode_json(found[:ALARMS_MAX])

    def _of_the_node(self) -> Iterator[Row]:
        memory, config = self.broker.memory, self.broker.config
        if memory.disk_exhausted:
            yield {"alarm": "disk_exhausted"}
        elif memory.disk_full:
            used = round(100 * self.status.disk_used, 1)
            if config.min_disk_free_bytes >= 0:
                limit: Row = {"minDiskFree": config.min_disk_free_bytes}
            else:
                limit = {"maxDiskUsage": config.max_disk_usage}
            yield {"alarm": "disk_full", "usedPercent": used, **limit}
        if memory.disk_behind:
            yield {"alarm": "disk_behind"}
        if memory.full():
            yield {
                "alarm": "memory_full",
                "usedBytes": memory.used_bytes,
                "limitBytes": _limit(memory.limit_bytes),
                "usedMessages": memory.used_messages,
                "limitMessages": _limit(memory.limit_messages),
            }

    def _of_address(self, address: Address) -> Iterator[Row]:
        account = address.account
        if address.name in self.pauses.addresses:
            yield {"alarm": "address_paused", "address": address.name}
        if account.blocked_by_operator:
            yield {"alarm": "address_blocked_by_operator", **_figures(address.name, account)}
        elif account.policy != FAIL and self.broker.memory.withheld(account, False):
            if account.full() or account.waiting:
                yield {"alarm": "address_blocked", **_figures(address.name, account)}
        if account.policy == DROP and (account.dropped > 0 or account.full()):
            yield {"alarm": "address_drops_messages", **_figures(address.name, account)}
        elif account.policy == FAIL and account.full():
            yield {"alarm": "address_refuses_messages", **_figures(address.name, account)}
        elif account.policy == PAGE and account.page_full():
            yield {"alarm": "address_page_limit", **_figures(address.name, account)}
        elif account.policy == PAGE and account.paged_messages > 0:
            yield {"alarm": "address_pages", **_figures(address.name, account)}

    def list_events(self, call: Call, given: Parameters) -> object:
        """Returns the newest events of a level and above as JSON, the newest first; 20 of each name are kept."""
        level = LEVELS.get(text_of(given, 0).lower())
        if level is None:
            raise BrokerError(ILLEGAL_STATE, f"a level is one of {', '.join(LEVELS)}: {given[0]}")
        record = self.broker.trace.record()
        names = {number: name for name, number in LEVELS.items()}
        events = [] if record is None else record.newest(level, min(max(0, number_of(given, 1)), EVENTS_MAX))
        return encode_json([
            {
                "number": event.number,
                "time": event.time_ms,
                "level": names.get(event.level, "error"),
                "event": event.name,
                "count": 0 if record is None else record.counts.get(event.name, 0),
                "fields": {key: _shown(value) for key, value in event.fields.items()},
            }
            for event in events
        ])  # fmt: skip


def _figures(name: str, account: Account) -> Row:
    return {
        "address": name,
        "policy": POLICY_NAMES[account.policy],
        "bytes": account.bytes,
        "limitBytes": _limit(account.limit_bytes),
        "messages": account.messages,
        "limitMessages": _limit(account.limit_messages),
        "pagedMessages": account.paged_messages,
        "dropped": account.dropped,
        "waitingSenders": len(account.waiting),
    }


def _limit(limit: int) -> int:
    return -1 if limit >= UNLIMITED else limit


def _shown(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)
