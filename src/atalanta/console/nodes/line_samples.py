"""The samples of time lines, as long as a session of their user lasts: one sampler for all sessions of a user.

The pauses follow what a sample costs the nodes, as those of lists do: about a hundredth of their time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from typing import Final, Protocol

from atalanta.client import ClientError
from atalanta.console.nodes.cluster import SessionCluster
from atalanta.console.nodes.failures import NodeUnreachable, NotFound, is_login_refused
from atalanta.console.nodes.list_kinds import QUEUES, ListRow
from atalanta.console.nodes.node import ClusterNode
from atalanta.console.nodes.surveys import SessionSurvey, SurveyResult, is_cancelled
from atalanta.console.nodes.time_lines import (
    ANSWER,
    CONSUMERS,
    DISK,
    IN,
    MEMORY,
    MESSAGES,
    OUT,
    STEP_S,
    Figures,
    LineGroup,
    TimeLines,
)

USERS_MAX: Final = 20  # whose lines are kept
SHARE: Final = 100  # the pause after a sample, as a multiple of the time that it took
PAUSE_MAX_S: Final = 300.0

log = logging.getLogger("atalanta.console")


class SampledSession(Protocol):
    """A session, as far as samples need it."""

    survey: SessionSurvey
    cluster: SessionCluster

    @property
    def user(self) -> str: ...


class UserSampler:
    """The lines of a user and the task that fills them while the user has a session."""

    def __init__(self) -> None:
        self.lines = TimeLines()
        self._sessions: list[SampledSession] = []
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._seen_s = 0.0  # the sample of the survey that was taken in last

    @property
    def is_idle(self) -> bool:
        return not self._sessions

    def join(self, session: SampledSession) -> None:
        """Adds a session; the first one starts the samples."""
        self._sessions.append(session)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())

    async def leave(self, session: SampledSession) -> None:
        """Removes a session; with the last one the samples end, and the lines stay."""
        if session in self._sessions:
            self._sessions.remove(session)
        task = self._task
        if not self._sessions and task is not None:
            task.cancel()
            await asyncio.wait([task])

    def watch(self, queue: str) -> LineGroup:
        """Returns the lines of a queue, and has it sampled from now on."""
        if queue not in self.lines.queues:
            self._wake.set()
        return self.lines.watch(queue, time.time()).lines

    async def _run(self) -> None:
        while self._sessions:
            session = self._sessions[-1]
            cost_s = 0.0
            try:
                self._note(await session.survey.picture())
                cost_s = await self._sample_queues(session)
            except (ClientError, NodeUnreachable, NotFound, OSError) as error:
                if is_login_refused(error) and session in self._sessions:
                    self._sessions.remove(session)  # its password counts no more, and is not tried again
            except asyncio.CancelledError:
                if is_cancelled():
                    raise
                # The session has left in the middle: its samples were ended.
            except Exception:  # our own: the lines end, and the pages do not
                log.exception("console_lines_failed")
                return
            self._wake.clear()
            pause_s = min(PAUSE_MAX_S, max(STEP_S, SHARE * cost_s))
            try:
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _note(self, result: SurveyResult | None) -> None:
        if result is None or result.at_s <= self._seen_s:
            return
        self._seen_s = result.at_s
        at_s = time.time() - result.age_s(time.monotonic())
        self.lines.add(at_s, cluster_figures(result), node_figures(result))

    async def _sample_queues(self, session: SampledSession) -> float:
        """Asks the nodes for the queues that somebody looks at. Returns how long that took (s)."""
        cost_s = 0.0
        for queue in self.lines.watched(time.time()):
            lines = self.lines.queues.get(queue)
            if lines is None or time.time() - lines.lines.last_s < STEP_S:
                continue

            async def ask(node: ClusterNode, name: str = queue) -> list[ListRow]:
                rows, _ = await node.page(QUEUES.operation, 1, 10, ("name", "EQUALS", name))
                return [row for row in map(QUEUES.typed, rows) if row["name"] == name]

            began_s = time.monotonic()
            answers = await session.cluster.each(ask)
            cost_s += time.monotonic() - began_s
            if not answers.found:
                continue
            rows = [row for _, found in answers.found for row in found]
            names = frozenset(node.place.at for node, _ in answers.found)
            sums = [_sum(rows, name) for name in ("messageCount", "consumerCount", "messagesAdded", "messagesAcked")]
            lines.note(time.time(), names, *sums)
        return cost_s


class LineSamplers:
    """The samplers of all users of a console."""

    def __init__(self) -> None:
        self._users: OrderedDict[str, UserSampler] = OrderedDict()

    def join(self, session: SampledSession) -> UserSampler:
        """Returns the sampler of the session's user. The lines of who left longest ago make room for others."""
        found = self._users.pop(session.user, None) or UserSampler()
        self._users[session.user] = found
        found.join(session)
        idle = [name for name, each in self._users.items() if each.is_idle]
        for name in idle[: max(0, len(self._users) - USERS_MAX)]:
            del self._users[name]
        return found


def cluster_figures(result: SurveyResult) -> Figures:
    """Returns the figures of all nodes together; the answer time is the longest."""
    totals = result.totals
    answers = [node.answer_ms for node in result.cluster.nodes if node.answer_ms is not None]
    return {
        IN: totals["in"],
        OUT: totals["out"],
        MESSAGES: totals["messages"],
        CONSUMERS: totals["consumers"],
        ANSWER: max(answers, default=None),
    }


def node_figures(result: SurveyResult) -> dict[str, Figures]:
    """Returns the figures of each node by its id."""
    flows = {each.node_id: each for each in result.flow.nodes if each.reached}
    found: dict[str, Figures] = {}
    for node in result.cluster.nodes:
        flow = flows.get(node.node_id)
        if flow is not None:
            found[node.node_id] = {
                IN: flow.in_per_second,
                OUT: flow.out_per_second,
                MESSAGES: flow.messages,
                CONSUMERS: flow.consumers,
                ANSWER: node.answer_ms,
                MEMORY: node.memory_used_percent,
                DISK: node.disk_used_percent,
            }
    return found


def _sum(rows: list[ListRow], field: str) -> int:
    return sum(value for row in rows if isinstance(value := row.get(field), int))
