"""The pages of jobs: what was asked for, and what came of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from aiohttp import web

from atalanta.console.desk import ConsoleDesk, FormRefused, form_of, one, operator_of
from atalanta.console.nodes.failures import NotFound
from atalanta.console.nodes.jobs import RUNNING_MAX, Job
from atalanta.console.nodes.node import ClusterNode

QUICK_S: Final = 1.5  # a job that is over by then is shown with its result at once

log = logging.getLogger("atalanta.console")


class JobPages:
    """The page of a job, and of all jobs of the session."""

    def __init__(self, desk: ConsoleDesk) -> None:
        self.desk = desk

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/jobs", self.jobs),
            web.get("/job", self.job),
            web.post("/job/stop", self.stop),
        ]

    async def jobs(self, request: web.Request) -> web.StreamResponse:
        """Lists the jobs, the newest first."""
        return self.desk.page(request, "jobs.html", jobs=operator_of(request).jobs.newest())

    async def job(self, request: web.Request) -> web.StreamResponse:
        """Shows a job: it asks the browser to look again until the job is over."""
        job = self._of(request, one(request.query, "id"))
        if not job.is_over:
            await job.wait(0.5)
        response = self.desk.page(request, job.template, job=job)
        if not job.is_over:
            response.headers["Refresh"] = "1"
        return response

    async def stop(self, request: web.Request) -> web.StreamResponse:
        """Asks a job to stop."""
        job = self._of(request, one(await form_of(request), "id"))
        job.stop()
        await job.wait(1.0)
        return self.desk.moved("/job", id=job.id)

    def _of(self, request: web.Request, job_id: str) -> Job:
        job = operator_of(request).jobs.find(job_id)
        if job is None:
            raise NotFound("this session has no such job; jobs end with their session")
        return job


async def started(
    desk: ConsoleDesk, request: web.Request, job: Job, action: str, name: str, nodes: Sequence[ClusterNode],
    target: str = "", selector: str = "",
) -> web.StreamResponse:
    """Starts a job, logs who has asked for it, and leads to its page. FormRefused while many are running."""
    operator = operator_of(request)
    job.on_over = operator.changed
    if len([each for each in operator.jobs.newest() if not each.is_over]) >= RUNNING_MAX:
        raise FormRefused("Many jobs are running: wait until one is over, or stop it.")
    places = ",".join(node.place.at for node in nodes)
    log.info(
        "console_action user=%r peer=%s action=%s name=%r target=%r selector=%r nodes=%r",
        operator.user, operator.browser.peer, action, name, target, selector, places,
    )  # fmt: skip
    operator.jobs.start(job)
    await job.wait(QUICK_S)
    return desk.moved("/job", id=job.id)
