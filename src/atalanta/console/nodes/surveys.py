"""The survey of the cluster for one session, renewed while somebody looks at it (package `survey`)."""

from __future__ import annotations

import asyncio
import time
from functools import cached_property
from typing import Final

from atalanta.client import ClientError
from atalanta.console.access.sessions import UserCredentials
from atalanta.console.nodes.cluster import AgreedPlaces
from atalanta.console.nodes.place import NodePlace
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.findings.cluster_finding import ClusterFinding, merged
from atalanta.survey.findings.diagnosis import diagnosed
from atalanta.survey.flow import Flow, flow_of
from atalanta.survey.model.cluster import LiveCluster, Unreachable
from atalanta.survey.survey import NOT_ADMITTED, Survey

INTERVAL_MIN_S: Final = 4.0
INTERVAL_MAX_S: Final = 120.0
SHARE: Final = 100  # the pause after a sample, as a multiple of the time that it took
FIRST_S: Final = 5.0  # the first page waits so long
PATIENCE_S: Final = 0.5  # the next ones


class SurveyResult:
    """A sample with its findings. `at_s` is its time (s, monotonic), `cost_s` how long it took."""

    def __init__(self, cluster: LiveCluster, findings: list[ClusterFinding], at_s: float, cost_s: float) -> None:
        self.cluster = cluster
        self.findings = findings
        self.at_s = at_s
        self.cost_s = cost_s

    @cached_property
    def flow(self) -> Flow:
        """Returns nodes and links, with rates after the second sample."""
        return flow_of(self.cluster)

    @cached_property
    def totals(self) -> dict[str, int | float | None]:
        """Returns what the queues of all nodes have together. Rates are messages a second, None before there are two
        samples.
        """
        cluster = self.cluster
        queues = cluster.queues()
        rates = [[queue.per_second(name, cluster.seconds) for queue in queues] for name in ("added", "acknowledged")]
        together = [None if None in each or not each else sum(rate or 0.0 for rate in each) for each in rates]
        return {
            "queues": len(queues),
            "messages": sum(queue.total("messages") for queue in queues),
            "consumers": sum(queue.total("consumers") for queue in queues),
            "clients": sum(node.clients or 0 for node in cluster.nodes),
            "in": together[0],
            "out": together[1],
        }

    @property
    def unreachable(self) -> list[Unreachable]:
        """Returns who did not answer, without those that nobody has agreed to ask."""
        return [each for each in self.cluster.unreachable if each.why != NOT_ADMITTED]

    def age_s(self, now_s: float) -> float:
        return now_s - self.at_s

    def is_current(self, now_s: float) -> bool:
        """Returns whether the next sample has time. The second one comes soon: without it there are no rates."""
        share = SHARE if self.cluster.seconds > 0 else 1
        return self.age_s(now_s) < min(INTERVAL_MAX_S, max(INTERVAL_MIN_S, share * self.cost_s))


class SessionSurvey:
    """The samples of one session. The nodes are asked for about a hundredth of their time."""

    def __init__(self, places: list[NodePlace], credentials: UserCredentials, agreed: AgreedPlaces) -> None:
        self._names = [place.url for place in places]
        self._options = places[0].url.partition("?")[2]
        self._credentials = credentials
        verifies = places[0].verifies
        login = BrokerLogin("", credentials.user, credentials.password)
        self._survey = Survey(
            login, 0, tries_default_password=False, admits=lambda at: verifies or agreed.has(credentials.user, at)
        )
        self._last: SurveyResult | None = None
        self._running: asyncio.Task[SurveyResult] | None = None

    async def result(self) -> SurveyResult | None:
        """Returns a sample that is current, or the one before while a new one is taken; None while there is none yet.

        Raises the first node's error while no node answers.
        """
        last = self._last
        now_s = time.monotonic()
        if last is not None and last.is_current(now_s):
            return last
        task = self._running
        if task is None or task.done():
            task = self._running = asyncio.create_task(self._sample())
        await asyncio.wait([task], timeout=FIRST_S if last is None else PATIENCE_S)
        if task.done():
            return task.result()
        return last

    def forget(self) -> None:
        """Has the next page wait for a new sample: nodes were added."""
        self._last = None

    async def close(self) -> None:
        """Ends the sample that is being taken, and the connections."""
        task = self._running
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])
        await self._survey.close()

    async def _sample(self) -> SurveyResult:
        last = self._last
        names = dict.fromkeys(self._names)
        if last is not None:
            # The cluster stays in sight when the nodes of the command line are down.
            names.update(dict.fromkeys(f"tcp://{node.at}?{self._options}" for node in last.cluster.nodes))
        began_s = time.monotonic()
        try:
            if last is None:
                cluster = await self._survey.sample(list(names))
            else:
                cluster = await self._survey.sample(list(names), last.cluster, began_s - last.at_s)
        except (ClientError, OSError):
            self._last = None
            raise
        now_s = time.monotonic()
        found = merged(diagnosed(cluster, self._credentials.user, self._credentials.password))
        self._last = SurveyResult(cluster, found, began_s, now_s - began_s)
        return self._last
