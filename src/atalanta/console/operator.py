"""A session with everything that it has open: the nodes, copies of their lists, jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from atalanta.console.access.sessions import BrowserSession, BrowserSessions, UserCredentials
from atalanta.console.access.throttle import LoginThrottle
from atalanta.console.configuration.configurations import SessionConfigurations
from atalanta.console.nodes.cluster import AgreedPlaces, SessionCluster
from atalanta.console.nodes.jobs import SessionJobs
from atalanta.console.nodes.line_samples import LineSamplers
from atalanta.console.nodes.permissions import UserPermissions
from atalanta.console.nodes.place import NodePlace
from atalanta.console.nodes.snapshots import NodeSnapshots
from atalanta.console.nodes.surveys import SessionSurvey

LOGINS_AT_ONCE_MAX: Final = 8


class OperatorSession:
    """A browser's session and its connections."""

    def __init__(
        self, browser: BrowserSession, cluster: SessionCluster, survey: SessionSurvey, samplers: LineSamplers
    ) -> None:
        self.browser = browser
        self.cluster = cluster
        self.survey = survey
        self.configurations = SessionConfigurations(cluster)
        self.snapshots = NodeSnapshots()
        self.permissions = UserPermissions()
        self.jobs = SessionJobs()
        self.ended = asyncio.Event()  # set when streams have to end
        self.sampler = samplers.join(self)

    @staticmethod
    def clock() -> float:
        """Returns the time of its copies, in seconds."""
        return time.monotonic()

    @property
    def user(self) -> str:
        return self.browser.user

    def changed(self) -> None:
        """Records that something was changed: the next pages ask the nodes anew."""
        self.snapshots.forget()
        self.configurations.forget()
        self.permissions.forget()

    async def close(self) -> None:
        """Ends jobs and connections."""
        self.ended.set()
        await self.sampler.leave(self)
        await self.jobs.close()
        await self.snapshots.close()
        await self.survey.close()
        await self.cluster.close()


class Operators:
    """All sessions of a console, and the way into one."""

    def __init__(self, places: list[NodePlace], clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.throttle = LoginThrottle()
        self.sessions = BrowserSessions()
        self.samplers = LineSamplers()
        self.logins = 0  # that are being tried now
        self._places = places
        self._agreed = AgreedPlaces()
        self._open: dict[str, OperatorSession] = {}

    def find(self, session_id: str) -> OperatorSession | None:
        """Returns the session of a request; None if there is none or it has expired."""
        browser = self.sessions.find(session_id, self.clock()) if session_id else None
        return None if browser is None else self._open.get(browser.id)

    async def log_in(self, credentials: UserCredentials, peer: str) -> OperatorSession:
        """Opens a session if a node accepts the credentials and lets the user manage. Raises the node's error."""
        cluster = SessionCluster(self._places, credentials, self._agreed)
        self.logins += 1
        try:
            await cluster.log_in()
        except BaseException:
            await cluster.close()
            raise
        finally:
            self.logins -= 1
        browser, ended = self.sessions.open(credentials, peer, self.clock())
        survey = SessionSurvey(self._places, credentials, self._agreed)
        operator = self._open[browser.id] = OperatorSession(browser, cluster, survey, self.samplers)
        for each in ended:
            await self._close(each)
        return operator

    async def end(self, operator: OperatorSession) -> None:
        """Ends a session: a log-out."""
        self.sessions.end(operator.browser)
        await self._close(operator.browser)

    async def end_expired(self) -> None:
        """Ends the sessions whose time is over."""
        for browser in self.sessions.end_expired(self.clock()):
            await self._close(browser)

    async def end_all(self) -> None:
        """Ends all sessions: the console stops."""
        for browser in self.sessions.end_all():
            await self._close(browser)

    async def _close(self, browser: BrowserSession) -> None:
        operator = self._open.pop(browser.id, None)
        if operator is not None:
            await operator.close()
