"""The two kills, each when something has been seen, never at a time, and how long the recovery takes."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from examples.flights.airports import AIRPORTS, ALERTS_AIRPORT
from examples.flights.backlog import Operator
from examples.flights.cluster import Cluster
from examples.flights.pace import Pace
from examples.flights.plan import Plan
from examples.flights.progress import Progress
from examples.flights.spark_driver import Batch, SparkDriver

# The node dies when Spark has archived this part of all flights, the driver at that part.
NODE_AT = 0.15
DRIVER_AT = 0.5
# While the node is away the others publish this part of all flights, then it is started again.
OUTAGE_PART = 0.02
LOOK_S = 0.005


@dataclass
class Recovery:
    """One kill: what was seen before it, and seconds since the kill or since the new start."""

    what: str
    seen: str
    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def text(self) -> str:
        """In a few words: what, and how long the last step took."""
        name, value = list(self.seconds.items())[-1]
        return f"{self.what}, {value:.2f} s from {name}"

    def as_dict(self) -> dict[str, Any]:
        """For report.json."""
        return asdict(self)


class Faults:
    """Kills the node that has the queue `alerts`, then the Spark driver."""

    def __init__(
        self, plan: Plan, progress: Progress, pace: Pace, cluster: Cluster, driver: SparkDriver
    ) -> None:
        self.recoveries: list[Recovery] = []
        self.last_batch: Batch | None = None
        self._plan = plan
        self._progress = progress
        self._pace = pace
        self._cluster = cluster
        self._driver = driver

    async def kill_node(self, expected_alerts: int, operator: Operator) -> Recovery:
        """SIGKILL amid the stream; new start on its data when the others have gone on without it."""
        progress, plan, code = self._progress, self._plan, ALERTS_AIRPORT.code
        await progress.until(
            lambda: progress.archived >= plan.flights * NODE_AT and progress.alerts >= expected_alerts * NODE_AT / 2
        )
        seen = f"{progress.archived:,} flights archived, {progress.alerts:,} alerts received"
        recovery = Recovery(f"node {code}", seen)
        await self._cluster.nodes[code].kill()
        killed = time.monotonic()
        others = [airport.code for airport in AIRPORTS if airport != ALERTS_AIRPORT]
        wanted = max(int(plan.flights * OUTAGE_PART), 20)
        # Spark waits for the node, so the others must be allowed to run ahead of it.
        self._pace.let_ahead(wanted)
        goal = sum(progress.published[other] for other in others) + wanted
        await progress.until(
            lambda: sum(progress.published[other] for other in others) >= goal
            or self._pace.holds(*others)
        )
        recovery.counts["messages parked for it meanwhile"] = await operator.parked(ALERTS_AIRPORT)
        started = time.monotonic()
        recovery.seconds["away until the others had gone on"] = started - killed
        before, alerts = progress.published[code], progress.alerts
        recovery.seconds["start to ready"] = await self._cluster.nodes[code].start()
        await asyncio.gather(
            self._note(recovery, started, "start to the next flight", lambda: progress.published[code] > before),
            self._note(
                recovery,
                started,
                "start to the next alert",
                lambda: progress.alerts > alerts or alerts == expected_alerts,
            ),
        )
        self.recoveries.append(recovery)
        return recovery

    async def kill_driver(self) -> Recovery:
        """SIGKILL for the driver's processes while a batch of the archive is planned and not committed."""
        progress, driver = self._progress, self._driver
        await progress.until(lambda: progress.archived >= self._plan.flights * DRIVER_AT)
        while (batch := driver.in_flight()) is None and progress.archived < self._plan.flights:
            await asyncio.sleep(LOOK_S)
        await driver.kill()
        killed = time.monotonic()
        recovery = Recovery("Spark driver", f"{progress.archived:,} flights archived, batch {batch} under way")
        archived = progress.archived
        await driver.start()
        await self._note(recovery, killed, "kill to the next archived batch", lambda: progress.archived > archived)
        self.recoveries.append(recovery)
        return recovery

    async def _note(self, recovery: Recovery, since: float, name: str, condition: Any) -> None:
        await self._progress.until(condition)
        recovery.seconds[name] = time.monotonic() - since
