"""The alarms and events of one node, as its management lists them."""

from __future__ import annotations

from typing import Final

from atalanta.client import Management
from atalanta.survey.model.cluster import NodeView
from atalanta.survey.model.health import AlarmView, EventView
from atalanta.survey.node.answers import rows_of
from atalanta.survey.node.queue_rows import BROKER, typed_row

EVENTS_MAX: Final = 1_000
FULL_PERCENT: Final = 100
# The lowest level of the events that are asked for: some events of level info end a state.
LEVEL: Final = "info"


async def alarms_of(management: Management) -> list[AlarmView]:
    """Returns the alarms of an Atalanta node."""
    text = await management.call(BROKER, "listAlarms")
    rows = rows_of(text, BROKER, "listAlarms", alarm=str)
    return [
        AlarmView(
            row["alarm"],
            str(row.get("address", "")),
            {name: value for name, value in row.items() if name not in ("alarm", "address")},
        )
        for row in rows
    ]


async def events_of(management: Management) -> list[EventView]:
    """Returns the newest events of an Atalanta node, the newest first."""
    text = await management.call(BROKER, "listEvents", LEVEL, EVENTS_MAX)
    rows = rows_of(text, BROKER, "listEvents", event=str, level=str, number=int, time=int, count=int, fields=dict)
    return [
        EventView(row["event"], row["level"], row["number"], row["time"], row["count"], row["fields"]) for row in rows
    ]


def artemis_limits(node: NodeView) -> list[AlarmView]:
    """Returns what the figures of a real Artemis say of its disk and its memory: it has no alarms."""
    found: list[AlarmView] = []
    used, limit = node.disk_used_percent, node.disk_limit_percent
    if used is not None and limit is not None and 0 <= limit < used:
        found.append(AlarmView("disk_full", "", {"usedPercent": round(used, 1), "maxDiskUsage": limit}))
    if node.memory_used_percent is not None and node.memory_used_percent >= FULL_PERCENT:
        found.append(AlarmView("memory_full", "", {"usedPercent": node.memory_used_percent}))
    return found


async def artemis_alarms(management: Management) -> list[AlarmView]:
    """Returns the alarms that the list of a real Artemis' addresses shows. It does not tell whether senders wait."""
    found: list[AlarmView] = []
    for raw in await management.rows("listAddresses"):
        row = typed_row(raw)
        name = str(row.get("name"))
        if row.get("internal") is True:
            continue
        if row.get("paused") is True:
            found.append(AlarmView("address_paused", name))
        percent = row.get("addressLimitPercent")
        if isinstance(percent, int) and percent >= FULL_PERCENT:
            found.append(AlarmView("address_over_limit", name, {"limitPercent": percent}))
    return found
