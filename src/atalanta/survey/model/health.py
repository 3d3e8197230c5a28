"""The health of a node, as it tells: alarms, which last, and events of its log, which are told once."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class AlarmView:
    """A state of a node or one of its addresses that an operator should know (`listAlarms`).

    `facts` are the figures that the node tells with it, such as `bytes`, `limitBytes`, `dropped`, `waitingSenders`.
    """

    name: str
    address: str = ""
    facts: dict[str, object] = field(default_factory=dict)

    def number(self, fact: str) -> int:
        """Returns a figure, 0 if the node does not tell it."""
        value = self.facts.get(fact)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0


@dataclass
class EventView:
    """An event of a node's log (`listEvents`). `count`: how many events of its name there were since the start."""

    name: str
    level: str
    number: int = 0
    time_ms: int = 0
    """Since 1970, by the node's clock."""
    count: int = 1
    fields: dict[str, object] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Returns a field as text, "" without it."""
        value = self.fields.get(name)
        return "" if value is None else str(value)
