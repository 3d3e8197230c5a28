"""Jobs: one step after the other, until one fails or somebody stops it."""

from __future__ import annotations

import asyncio

import pytest

from atalanta.client import ManagementFailed
from atalanta.console.nodes.jobs import JOBS_MAX, Job, JobStep, SessionJobs

REFUSAL = "AMQ229032: User: ben does not have permission='EDIT' on address mops.queue.a.removeAllMessages"


async def works(job: Job, step: JobStep) -> None:
    job.check_stop()
    step.done = 3


async def fails(job: Job, step: JobStep) -> None:
    raise ManagementFailed("queue.a", "removeAllMessages", REFUSAL)


async def breaks(job: Job, step: JobStep) -> None:
    raise KeyError("ours")


async def waits(job: Job, step: JobStep) -> None:
    while True:
        job.check_stop()
        await asyncio.sleep(0)


def made(*work: object) -> Job:
    job = Job("title", "moved", "/")
    for number, each in enumerate(work):
        job.add(JobStep(f"node{number}", "a"), each)  # type: ignore[arg-type]
    return job


def test_steps_follow_each_other_and_the_first_failure_ends_the_job() -> None:
    async def main() -> None:
        job = made(works, fails, works)
        over: list[bool] = []
        job.on_over = lambda: over.append(True)
        job.start()
        await job.wait(5)
        assert [step.state for step in job.steps] == ["done", "failed", "waiting"]
        assert job.state == "failed" and job.is_over and job.total_done == 3 and over == [True]
        missing = job.steps[1].missing
        assert missing is not None and (missing.permission, missing.match) == ("edit", "mops.queue.a.removeAllMessages")
        assert '<permission type="edit" roles="ROLE"/>' in missing.element

    asyncio.run(main())


def test_a_job_is_stopped_at_a_seam() -> None:
    async def main() -> None:
        job = made(waits, works)
        job.start()
        await job.wait(0.01)
        assert job.state == "running"
        job.stop()
        await job.wait(5)
        assert job.state == "stopped" and [step.state for step in job.steps] == ["stopped", "waiting"]

    asyncio.run(main())


def test_a_fault_of_ours_is_told_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        job = made(breaks)
        job.start()
        await job.wait(5)
        assert job.state == "failed" and "KeyError" in job.steps[0].problem

    asyncio.run(main())
    assert "console_job_failed" in caplog.text


def test_jobs_end_with_their_session_and_old_ones_are_forgotten() -> None:
    async def main() -> None:
        jobs = SessionJobs()
        running = made(waits)
        jobs.start(running)
        for _ in range(JOBS_MAX + 10):
            job = made(works)
            jobs.start(job)
            await job.wait(5)
        assert len(jobs.newest()) == JOBS_MAX and jobs.find(running.id) is running
        await jobs.close()
        assert running.state == "stopped" and running.steps[0].problem == "ended with the session"

    asyncio.run(main())
