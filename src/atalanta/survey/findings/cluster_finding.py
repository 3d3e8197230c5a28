"""The findings of `atalanta doctor`: one problem, its node, and the remedy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

ERROR: Final = "error"
WARNING: Final = "warning"
NOTE: Final = "note"
ORDER: Final = (ERROR, WARNING, NOTE)


@dataclass
class ClusterFinding:
    """A finding. `code` is stable, for programs; `remedy` is a line of broker.xml (or another remedy), at node
    `node`."""

    severity: str
    code: str
    node: str
    text: str
    remedy: str = ""
    facts: dict[str, object] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        return {
            "severity": self.severity,
            "code": self.code,
            "node": self.node,
            "text": self.text,
            "remedy": self.remedy,
            **self.facts,
        }


def sorted_findings(found: list[ClusterFinding]) -> list[ClusterFinding]:
    """Sorts findings: the worst first, then by node."""
    return sorted(found, key=lambda each: (ORDER.index(each.severity), each.node, each.code))


def merged(found: list[ClusterFinding]) -> list[ClusterFinding]:
    """Joins equal findings of several nodes, for people."""
    kept: dict[tuple[str, str, str, str], ClusterFinding] = {}
    for each in found:
        key = (each.severity, each.code, each.text, each.remedy)
        known = kept.get(key)
        if known is None:
            kept[key] = replace(each)
        elif each.node not in known.node.split(", "):
            known.node += f", {each.node}"
    return list(kept.values())


def delay_line(address: str, delay_ms: int) -> str:
    """Returns redistribution-delay for one address, as in broker.xml."""
    delay = f"<redistribution-delay>{delay_ms}</redistribution-delay>"
    return f'<address-setting match="{address}">{delay}</address-setting>'
