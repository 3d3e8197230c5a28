"""Jobs: what an operator has asked for, node by node, with counts before and after. They outlive the page."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Final

from atalanta.client import ClientError
from atalanta.console.nodes.failures import (
    InUse,
    MalformedAnswer,
    MissingPermission,
    NodeUnreachable,
    NotFound,
    error_text,
    missing_permission,
)

JOBS_MAX: Final = 100
RUNNING_MAX: Final = 20
WAITING: Final = "waiting"
RUNNING: Final = "running"
DONE: Final = "done"
STOPPED: Final = "stopped"
FAILED: Final = "failed"


log = logging.getLogger("atalanta.console")


class JobStopped(Exception):
    """The operator has stopped the job; what was done stays done."""


class StepRefused(Exception):
    """A node has refused its step with an answer; the text is the node's."""


class JobStep:
    """The part of a job at one node. `before` and `after` are numbers of messages, None where nobody counts."""

    def __init__(self, node: str, subject: str) -> None:
        self.node = node
        self.subject = subject
        self.state = WAITING
        self.before: int | None = None
        self.done: int | None = None
        self.after: int | None = None
        self.note = ""
        self.problem = ""
        self.missing: MissingPermission | None = None


StepWork = Callable[["Job", JobStep], Awaitable[None]]


class Job:
    """An action with its steps, one after the other. The first that fails ends the job: the others are not begun.

    `template` is that of its page.
    """

    template = "job.html"

    def __init__(self, title: str, word: str, back: str) -> None:
        self.id = secrets.token_urlsafe(12)
        self.title = title
        self.word = word  # what was done to the messages: "moved"
        self.back = back  # the page that it was started from
        self.state = WAITING
        self.began_s = time.time()
        self.steps: list[JobStep] = []
        self.stoppable = False
        self.on_over: Callable[[], None] | None = None
        self._work: list[StepWork] = []
        self._stop = False
        self._task: asyncio.Task[None] | None = None

    def add(self, step: JobStep, work: StepWork) -> None:
        """Adds a step."""
        self.steps.append(step)
        self._work.append(work)

    @property
    def is_over(self) -> bool:
        return self.state in (DONE, STOPPED, FAILED)

    @property
    def total_done(self) -> int:
        """Returns the number of messages that all steps together have changed so far."""
        return sum(step.done or 0 for step in self.steps)

    def start(self) -> None:
        """Starts the job beside the pages."""
        self._task = asyncio.create_task(self._run())

    async def wait(self, seconds: float) -> None:
        """Waits for the end, but not longer than so many seconds."""
        if self._task is not None:
            await asyncio.wait([self._task], timeout=seconds)

    def stop(self) -> None:
        """Asks the job to stop at the next seam."""
        self._stop = True

    def check_stop(self) -> None:
        """Raises JobStopped at a seam of a job that was asked to stop."""
        if self._stop:
            raise JobStopped

    async def cancel(self) -> None:
        """Ends the job now. What the node is doing, it does to the end."""
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        self.state = RUNNING
        step = self.steps[0]
        try:
            for step, work in zip(self.steps, self._work, strict=True):
                self.check_stop()
                step.state = RUNNING
                await work(self, step)
                step.state = DONE
            self.state = DONE
        except JobStopped:
            self._ended(step, STOPPED, "stopped by you")
        except asyncio.CancelledError:
            self._ended(step, STOPPED, "ended with the session")
            raise
        except (ClientError, InUse, NodeUnreachable, NotFound, MalformedAnswer, StepRefused, OSError) as error:
            step.missing = missing_permission(error)
            self._ended(step, FAILED, error_text(error))
        except Exception as error:  # our own: nobody awaits this task, and the job must not seem to run for ever
            log.exception("console_job_failed")
            self._ended(step, FAILED, f"a fault of the console: {type(error).__name__}; its log has more")
        finally:
            if self.on_over is not None:
                self.on_over()

    def _ended(self, step: JobStep, state: str, why: str) -> None:
        self.state = step.state = state
        step.problem = why


class SessionJobs:
    """The jobs of one session, the newest first."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def start(self, job: Job) -> None:
        """Starts a job. The oldest that is over is forgotten when there are many."""
        over = [each for each in self._jobs.values() if each.is_over]
        if len(self._jobs) >= JOBS_MAX and over:
            del self._jobs[over[0].id]
        self._jobs[job.id] = job
        job.start()

    def find(self, job_id: str) -> Job | None:
        return self._jobs.get(job_id)

    def newest(self) -> list[Job]:
        """Returns the jobs, the newest first."""
        return list(reversed(self._jobs.values()))

    async def close(self) -> None:
        """Ends all jobs."""
        for job in list(self._jobs.values()):
            await job.cancel()
