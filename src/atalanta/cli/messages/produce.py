"""The command `atalanta produce`: parallel connections, a rate, a progress bar, a summary."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Final

import typer

from atalanta.cli.messages.destination import Destination, parse_destination
from atalanta.cli.messages.source import Template
from atalanta.cli.output.outcome import NOT_THERE, Refused, reported
from atalanta.cli.output.progress import Bar
from atalanta.client import Connection, Message, Producer, run
from atalanta.client.message import ANYCAST
from atalanta.survey.broker_login import BrokerLogin
from atalanta.survey.texts import messages

LATE_S: Final = 0.001
BLOCKED_S: Final = 2.0


class ProduceJob:
    """The options of a run."""

    def __init__(self, target: BrokerLogin, destination: str, template: Template) -> None:
        self.target = target
        self.destination = parse_destination(destination)
        self.template = template
        self.rate = 0.0
        self.connections = 1
        self.window = 1_000
        self.sent = 0
        self.resent = 0
        self.seconds = 0.0
        self.quiet = False


class RateLimit:
    """Limits all senders together to `rate` messages a second."""

    def __init__(self, rate: float) -> None:
        self._interval_s = 1 / rate if rate > 0 else 0.0
        self._next_at = time.monotonic()

    @property
    def limited(self) -> bool:
        return self._interval_s > 0

    async def wait(self) -> None:
        """Returns when the next message may be sent. After a pause at most one second is caught up."""
        now = time.monotonic()
        at = max(self._next_at, now - 1.0)
        self._next_at = at + self._interval_s
        if at - now > LATE_S:
            await asyncio.sleep(at - now)


def run_produce(job: ProduceJob, json_output: bool, quiet: bool) -> None:
    """Sends all messages, then prints a summary. Errors end the process (cli/output/outcome.py)."""
    with reported():
        job.quiet = quiet
        with Bar("sent", job.template.count, quiet or json_output) as bar:
            run(send_all(job, bar))
        rate = job.sent / job.seconds if job.seconds else 0.0
        if json_output:
            found = {
                "sent": job.sent,
                "resent": job.resent,
                "seconds": round(job.seconds, 3),
                "rate": round(rate, 1),
            }
            typer.echo(json.dumps(found))
        elif not quiet:
            rate_limit = f" ({rate:,.0f}/s)" if job.sent > 1 else ""
            typer.echo(f"sent {messages(job.sent)} in {job.seconds:.2f} s{rate_limit}", err=True)


async def send_all(job: ProduceJob, bar: Bar) -> None:
    """Sends with all connections. The first one that fails ends the others."""
    source = job.template.batches()
    rate_limit = RateLimit(job.rate)
    lock = asyncio.Lock()
    started = time.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(job.connections):
                group.create_task(send_some(job, source, lock, rate_limit, bar))
    except BaseExceptionGroup as errors:
        raise first_of(errors) from None
    finally:
        job.seconds = time.monotonic() - started


async def send_some(
    job: ProduceJob,
    source: AsyncIterator[list[Message]],
    lock: asyncio.Lock,
    rate_limit: RateLimit,
    bar: Bar,
) -> None:
    """Sends on one connection: takes the next batch until there is none."""
    async with job.target.connect() as connection:
        name, routing = await resolved(connection, job.destination)
        producer = await connection.producer(name, routing, job.window)
        watching = asyncio.create_task(report_blocked(producer, job.quiet))
        try:
            while True:
                async with lock:
                    batch = await anext(source, None)
                if batch is None:
                    break
                for message in batch:
                    if rate_limit.limited:
                        await rate_limit.wait()
                    if message.stream is None:
                        await producer.send_soon(message)
                    else:
                        with message.stream:
                            await producer.send(message)
                job.sent += len(batch)
                bar.advance(len(batch))
            await producer.drain()
        finally:
            watching.cancel()
        job.resent += producer.resent


async def report_blocked(producer: Producer, quiet: bool) -> None:
    """Prints the reason when nothing was sent between two checks, once per blockage."""
    warned = quiet
    before = -1
    while True:
        stuck = producer.blocked and producer.confirmed == before
        if stuck and not warned:
            typer.echo(
                f"atalanta: the broker accepts no more messages for {producer.address}:"
                " the address or the disk is full; waiting",
                err=True,
            )
        warned = stuck or quiet
        before = producer.confirmed
        await asyncio.sleep(BLOCKED_S)


async def resolved(connection: Connection, destination: Destination) -> tuple[str, str | None]:
    """Returns the address to send to, created if possible. Refused (66) if it does not exist and cannot be created."""
    name = destination.name
    address = name.partition("::")[0]
    found = await connection.query_address(address)
    routing = destination.routing
    if not found.exists:
        routing = routing or ANYCAST
        allowed = found.auto_create_queues if routing == ANYCAST else found.auto_create_addresses
        if not allowed or "::" in name:
            raise Refused(
                f"address {address} does not exist, and is not created automatically", NOT_THERE
            )
    return name, routing


def first_of(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """Returns the first error of a group of tasks, from nested groups too."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
