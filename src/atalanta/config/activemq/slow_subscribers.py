"""Conversion of what a policy says of slow subscribers to topics: how much waits for them, and what goes then."""

from __future__ import annotations

import re
from typing import Final

from atalanta.config.activemq import tables
from atalanta.config.activemq.elements import Elements, only
from atalanta.config.xml.tree import XmlElement

RATE: Final = re.compile(r"\d{1,6}(\.\d{1,6})?")
INT_MAX: Final = 2**31 - 1


def read_limit(elements: Elements, section: XmlElement, found: dict[str, str]) -> None:
    """Reads `<pendingMessageLimitStrategy>` of the policy of a topic."""
    node = only(section)
    if node is None:
        return
    if node.name == "constantPendingMessageLimitStrategy":
        limit = elements.whole(node, elements.values(node, ("limit",)), "limit", -1)
        found["pending-message-limit"] = str(min(max(limit, -1), INT_MAX))
    elif node.name == "prefetchRatePendingMessageLimitStrategy":
        rate = elements.values(node, ("multiplier",)).get("multiplier", "1.0")
        if RATE.fullmatch(rate) is None:
            elements.problem(node, f"multiplier: '{rate}' is not a number such as 2.5")
        else:
            found["pending-message-prefetch-rate"] = rate
    else:
        elements.finding(node, node.name, "no effect: all messages of a slow subscriber are kept", True)


def read_eviction(elements: Elements, section: XmlElement, found: dict[str, str]) -> None:
    """Reads `<messageEvictionStrategy>` of the policy of a topic."""
    node = only(section)
    if node is None:
        return
    if node.name == "oldestMessageEvictionStrategy":
        elements.values(node, (), tables.EVICTION_SILENT)
        found["pending-message-eviction"] = "OLDEST"
    elif node.name == "oldestMessageWithLowestPriorityEvictionStrategy":
        elements.values(node, (), tables.EVICTION_SILENT)
        found["pending-message-eviction"] = "LOWEST_PRIORITY"
    elif node.name == "uniquePropertyMessageEvictionStrategy":
        values = elements.values(node, ("propertyName",), tables.EVICTION_SILENT)
        found["pending-message-eviction"] = "SAME_PROPERTY"
        found["pending-message-eviction-property"] = values.get("propertyName", "")
    else:
        elements.finding(node, node.name, "no effect: the oldest messages of a slow subscriber go", True)
