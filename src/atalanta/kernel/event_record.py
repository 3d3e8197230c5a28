"""The newest events of a process, by name: what its log has, for management."""

from __future__ import annotations

from collections import deque
from typing import Final

OF_A_NAME_MAX: Final = 20
NAMES_MAX: Final = 1_000


class RecordedEvent:
    """An event: its time (ms since 1970), its level as in the module logging, its name and its fields."""

    def __init__(self, number: int, time_ms: int, level: int, name: str, fields: dict[str, object]) -> None:
        self.number = number
        self.time_ms = time_ms
        self.level = level
        self.name = name
        self.fields = fields


class EventRecord:
    """The newest events of each name, so that many events of one name do not push out those of others."""

    def __init__(self) -> None:
        self.by_name: dict[str, deque[RecordedEvent]] = {}
        self.counts: dict[str, int] = {}
        self.noted: int = 0

    def note(self, time_ms: int, level: int, name: str, fields: dict[str, object]) -> None:
        """Records an event. Names beyond NAMES_MAX are left out: a process has fewer."""
        events = self.by_name.get(name)
        if events is None:
            if len(self.by_name) >= NAMES_MAX:
                return
            events = self.by_name[name] = deque(maxlen=OF_A_NAME_MAX)
        self.noted += 1
        self.counts[name] = self.counts.get(name, 0) + 1
        events.append(RecordedEvent(self.noted, time_ms, level, name, fields))

    def newest(self, level: int, count: int) -> list[RecordedEvent]:
        """Returns the newest events of this level and above, the newest first."""
        found = [
            event for events in list(self.by_name.values()) for event in list(events) if event.level >= level
        ]
        found.sort(key=_number_of, reverse=True)
        return found[:count]


def _number_of(event: RecordedEvent) -> int:
    return event.number
