"""report.json: every count of the comparison, both sides, and what was measured on the way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from examples.flights.compare import Check
from examples.flights.faults import Recovery


@dataclass
class Report:
    """What a run found. Rates in rows a second, times in seconds."""

    flights: int
    checks: list[Check] = field(default_factory=list)
    dropped: int = 0
    rates: dict[str, float] = field(default_factory=dict)
    forwarded: dict[tuple[str, str], int] = field(default_factory=dict)
    recoveries: list[Recovery] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Does everything agree?"""
        return bool(self.checks) and all(check.ok for check in self.checks) and self.dropped == 0

    def figures(self) -> list[tuple[str, str]]:
        """Lines for the table."""
        lines = [
            (f"forwarded {origin} → {target}", f"{count:,}") for (origin, target), count in self.forwarded.items()
        ]
        lines += [(name, f"{count:,}") for name, count in self.counts.items()]
        lines += [(f"rate: {name}", f"{rate:,.0f}/s") for name, rate in self.rates.items()]
        for recovery in self.recoveries:
            lines += [(f"{recovery.what}: {name}", f"{value:,}") for name, value in recovery.counts.items()]
            lines += [(f"{recovery.what}: {name}", f"{value:.2f} s") for name, value in recovery.seconds.items()]
        lines.append(("the whole run", f"{self.seconds:.1f} s"))
        return lines

    def as_dict(self) -> dict[str, Any]:
        """The document."""
        return {
            "ok": self.ok,
            "flights": self.flights,
            "lost": sum(check.lost for check in self.checks),
            "duplicated": sum(check.duplicated for check in self.checks),
            "numRowsDroppedByWatermark": self.dropped,
            "checks": [check.as_dict() for check in self.checks],
            "rates_per_s": self.rates,
            "counts": self.counts,
            "forwarded": {f"{origin} -> {target}": count for (origin, target), count in self.forwarded.items()},
            "recoveries": [recovery.as_dict() for recovery in self.recoveries],
            "seconds": self.seconds,
        }
