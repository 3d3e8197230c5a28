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
from atalanta.survey.model.cluster import NOT_ADMITTED, LiveCluster, Unreachable
from atalanta.survey.survey import Survey

PICTURE_S: Final = 4.0  # between two samples of what a picture needs
FINDINGS_S: Final = 30.0  # between two samples of everything
INTERVAL_MAX_S: Final = 300.0
AWAY: Final = 5  # while a node does not answer a sample is mostly spent waiting: so many times the usual pause at most
SHARE: Final = 100  # the pause after a sample, as a multiple of the time that it took
FIRST_S: Final = 5.0  # the first page waits so long for the picture
FIRST_FINDINGS_S: Final = 2.0
PATIENCE_S: Final = 0.5  # the next pages


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
        """Returns what all nodes have together. Rates are messages a second, None before there are two samples."""
        nodes = [node for node in self.flow.nodes if node.reached]
        rated = bool(nodes) and all(node.in_per_second is not None for node in nodes)
        return {
            "queues": sum(node.queues for node in nodes),
            "messages": sum(node.messages for node in nodes),
            "consumers": sum(node.consumers for node in nodes),
            "clients": sum(node.clients or 0 for node in nodes),
            "in": sum(node.in_per_second or 0.0 for node in nodes) if rated else None,
            "out": sum(node.out_per_second or 0.0 for node in nodes) if rated else None,
        }

    @property
    def unreachable(self) -> list[Unreachable]:
        """Returns who did not answer, without those that nobody has agreed to ask."""
        return [each for each in self.cluster.unreachable if each.why != NOT_ADMITTED]

    def age_s(self, now_s: float) -> float:
        return now_s - self.at_s

    def is_current(self, now_s: float, interval_s: float) -> bool:
        """Returns whether the next sample has time. The second one comes soon: without it there are no rates."""
        if self.cluster.seconds <= 0:
            return self.age_s(now_s) < max(PICTURE_S, self.cost_s)
        most_s = AWAY * interval_s if self.unreachable else INTERVAL_MAX_S
        return self.age_s(now_s) < max(interval_s, min(most_s, SHARE * self.cost_s))


class ClusterSampler:
    """The samples of one session, with or without the details that findings need."""

    def __init__(
        self, places: list[NodePlace], credentials: UserCredentials, agreed: AgreedPlaces, details: bool
    ) -> None:
        self._names = [place.url for place in places]
        self._options = places[0].url.partition("?")[2]
        self._credentials = credentials
        self._details = details
        verifies = places[0].verifies
        self._survey = Survey(
            BrokerLogin("", credentials.user, credentials.password),
            0,
            details,
            admits=lambda at: verifies or agreed.has(credentials.user, at),
            tries_default_password=False,
        )
        self._last: SurveyResult | None = None
        self._running: asyncio.Task[SurveyResult] | None = None
        self._closed = False

    async def result(self) -> SurveyResult | None:
        """Returns a sample that is current, or the one before while a new one is taken; None while there is none yet.

        Raises the first node's error while no node answers.
        """
        last = self._last
        now_s = time.monotonic()
        if self._closed:  # a page that outlives its session
            return last
        interval_s = FINDINGS_S if self._details else PICTURE_S
        if last is not None and last.is_current(now_s, interval_s) and not self._survey.has_lost:
            return last
        task = self._running
        if task is None or task.done():
            task = self._running = asyncio.create_task(self._sample())
            task.add_done_callback(seen)
        first_s = FIRST_FINDINGS_S if self._details else FIRST_S
        await asyncio.wait([task], timeout=first_s if last is None else PATIENCE_S)
        return task.result() if task.done() else last

    def forget(self) -> None:
        """Has the next page wait for a new sample: nodes were added."""
        self._last = None

    async def close(self) -> None:
        """Ends the sample that is being taken, and the connections."""
        self._closed = True
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
        cost_s = time.monotonic() - began_s
        found: list[ClusterFinding] = []
        if self._details:
            found = merged(diagnosed(cluster, self._credentials.user, self._credentials.password))
        self._last = SurveyResult(cluster, found, began_s, cost_s)
        return self._last


def seen(task: asyncio.Task[SurveyResult]) -> None:
    """Takes the error of a sample that no page waited for: the next page takes another sample."""
    if not task.cancelled():
        task.exception()


def is_cancelled() -> bool:
    """Returns whether the running task itself was cancelled, and not something that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class SessionSurvey:
    """The cluster as one session sees it. The nodes are asked for a few hundredths of their time at most."""

    def __init__(self, places: list[NodePlace], credentials: UserCredentials, agreed: AgreedPlaces) -> None:
        self._picture = ClusterSampler(places, credentials, agreed, details=False)
        self._findings = ClusterSampler(places, credentials, agreed, details=True)

    async def picture(self) -> SurveyResult | None:
        """Returns nodes, links and sums, as `ClusterSampler.result`."""
        return await self._picture.result()

    async def findings(self) -> SurveyResult | None:
        """Returns the sample with the findings, as `ClusterSampler.result`."""
        return await self._findings.result()

    def forget(self) -> None:
        """Has the next page wait for new samples: nodes were added."""
        self._picture.forget()
        self._findings.forget()

    async def close(self) -> None:
        """Ends the samples that are being taken, and the connections."""
        await self._picture.close()
        await self._findings.close()
