"""The pages of jobs: what was asked for, and what came of it."""

from __future__ import annotations

from aiohttp import web

from atalanta.console.desk import ConsoleDesk, form_of, one, operator_of
from atalanta.console.nodes.failures import NotFound
from atalanta.console.nodes.jobs import Job


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
