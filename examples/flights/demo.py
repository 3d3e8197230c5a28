"""The whole run, step by step; `python -m examples.flights` calls it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pandas as pd

from atalanta.client import connect
from examples.flights import compare, results, tidy
from examples.flights.airports import (
    AIRPORT_LOGIN,
    AIRPORTS,
    ALERTS_AIRPORT,
    ALERTS_QUEUE,
    ARCHIVE_QUEUE,
    DELAYS_QUEUE,
    EWR,
    FLIGHTS_ADDRESS,
    WINDOWS_QUEUE,
)
from examples.flights.alerts import AlertingService
from examples.flights.backlog import Operator
from examples.flights.cluster import Cluster
from examples.flights.cluster_picture import Flows, draw_cluster
from examples.flights.data import departures_ms, end_message
from examples.flights.delays_picture import draw_delays
from examples.flights.faults import Faults
from examples.flights.oracle import Oracle
from examples.flights.pace import Pace
from examples.flights.plan import Plan
from examples.flights.processes import tail
from examples.flights.producers import Producer
from examples.flights.progress import Progress
from examples.flights.report import Report
from examples.flights.screen import Bar, Screen
from examples.flights.spark_driver import ARCHIVE, DELAYS, WINDOWS, Batch, Settings, SparkDriver

DRAW_S = 0.1
LOGS = "logs"
STALL_S = 300


class Stalled(Exception):
    """The run hangs."""


class Demo:
    """The parts of one run and its steps."""

    def __init__(self, plan: Plan, flights: pd.DataFrame, oracle: Oracle, screen: Screen) -> None:
        self.plan = plan
        self.oracle = oracle
        self.screen = screen
        self.report = Report(len(flights))
        self.progress = Progress([airport.code for airport in AIRPORTS])
        lead_ms = int(plan.lead.total_seconds() * 1000)
        self.pace = Pace(self.progress, lead_ms, plan.ahead_rows, departures_ms(flights.head(1))[0])
        self.producers = [
            Producer(airport, flights[flights["origin"] == airport.code], self.pace) for airport in AIRPORTS
        ]
        self.alerting = AlertingService(self.progress)
        self.cluster = Cluster(plan.out)
        settings = Settings(
            str(plan.out), plan.master, plan.batch_rows, int(plan.watermark_delay.total_seconds())
        )
        self.driver = SparkDriver(settings, plan.out / LOGS / "spark.log", self.note_batch)
        self.faults = Faults(plan, self.progress, self.pace, self.cluster, self.driver)

    def note_batch(self, batch: Batch) -> None:
        """Counts a finished batch of Spark."""
        progress = self.progress
        if batch.query == ARCHIVE:
            progress.archived = min(progress.archived + batch.rows, self.plan.flights)
        elif batch.query == DELAYS:
            progress.averaged = min(progress.averaged + batch.rows, self.plan.flights)
        elif batch.query == WINDOWS:
            progress.windows_saved += batch.rows
        progress.changed()

    async def run(self) -> None:
        """Everything up to the last message; the processes are gone afterwards, also after an error."""
        self.cluster.prepare()
        try:
            self.screen.status("starting three nodes and Spark")
            await self.driver.start()
            seconds = await self.cluster.start()
            async with Operator() as operator:
                await operator.until_formed()
                self.screen.say(f"cluster of {len(AIRPORTS)} nodes formed, ready after {seconds:.1f} s")
                self.screen.show(self.bars())
                await self.watched(self.stream(operator))
            self.screen.status("stopping Spark and the nodes")
            await self.driver.stop()
        finally:
            await self.driver.kill()
            await self.cluster.stop()

    async def watched(self, work: Coroutine[Any, Any, None]) -> None:
        """Does `work` beside what runs all the time; fails as soon as any of it fails."""
        watchers: list[Coroutine[Any, Any, None]] = [
            self.draw(),
            self.move(),
            self.alerting.run(),
            self.driver.failed(),
            *(node.failed() for node in self.cluster.nodes.values()),
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(watcher) for watcher in watchers]
            await group.create_task(work)
            for task in tasks:
                task.cancel()

    async def stream(self, operator: Operator) -> None:
        """The stream itself: flights, kills, the end message, until everything has arrived."""
        begun = time.monotonic()
        async with asyncio.TaskGroup() as group:
            publishing = [group.create_task(producer.run()) for producer in self.producers]
            group.create_task(self.break_things(operator))
            self.screen.status("publishing")
            await asyncio.gather(*publishing)
            self.report.rates["published, kills included"] = self.plan.flights / (time.monotonic() - begun)
        self.screen.status("all flights are published; waiting until the queues are empty")
        await operator.until_forwarded()
        await operator.until_empty(ARCHIVE_QUEUE, DELAYS_QUEUE, ALERTS_QUEUE)
        self.screen.status("the queues are empty; one end message closes the last windows")
        await self.send_end()
        target = self.plan.end - self.plan.watermark_delay
        await self.progress.until(lambda: self.watermark() >= target)
        await operator.until_empty(ARCHIVE_QUEUE, DELAYS_QUEUE, WINDOWS_QUEUE)
        self.report.checks.append(compare.compare_number("queues: dead letters", 0, await operator.messages("DLQ")))
        self.report.forwarded = {key: count for key, count in (await operator.forwarded()).items() if count}

    async def break_things(self, operator: Operator) -> None:
        """The two kills, one after the other."""
        say = self.screen.say
        node = await self.faults.kill_node(len(self.oracle.alerts), operator)
        figures = ", ".join(f"{name} {value:.2f} s" for name, value in node.seconds.items())
        say(f"killed node {ALERTS_AIRPORT.code} (SIGKILL) after {node.seen}; it is back: {figures}", "yellow")
        driver = await self.faults.kill_driver()
        figures = ", ".join(f"{name} {value:.2f} s" for name, value in driver.seconds.items())
        say(f"killed the Spark driver (SIGKILL) after {driver.seen}; it is back: {figures}", "yellow")

    async def send_end(self) -> None:
        """One message that is no flight."""
        login = AIRPORT_LOGIN
        async with connect(EWR.server, user=login.user, password=login.password) as connection:
            producer = await connection.producer(FLIGHTS_ADDRESS, routing="multicast")
            await producer.send(end_message(self.plan.end.to_pydatetime()))

    def watermark(self) -> datetime:
        """The newest watermark that a batch of the delays was computed with."""
        marks = [batch.watermark for batch in self.driver.batches.values() if batch.query == DELAYS]
        known = [datetime.fromisoformat(mark) for mark in marks if mark]
        return max(known, default=datetime.fromtimestamp(0, UTC))

    async def draw(self) -> None:
        """Keeps the bars going."""
        while True:
            self.screen.draw()
            await asyncio.sleep(DRAW_S)

    async def move(self) -> None:
        """Never returns; raises Stalled when nothing has moved for a long time."""
        while True:
            before = self.progress.figures()
            for _ in range(STALL_S):
                await asyncio.sleep(1)
                if self.progress.figures() != before:
                    break
            else:
                log = tail(self.driver.log)
                raise Stalled(f"nothing has moved for {STALL_S} s; the counters: {before}\n{log}")

    def bars(self) -> list[Bar]:
        """What the user watches."""
        progress, flights = self.progress, self.plan.flights
        published = progress.published.__getitem__
        publishing = [
            Bar(f"published at {p.airport.code}", len(p.flights), partial(published, p.airport.code))
            for p in self.producers
        ]
        return [
            *publishing,
            Bar("alerts received", len(self.oracle.alerts), lambda: progress.alerts),
            Bar("archived by Spark", flights, lambda: progress.archived),
            Bar("averaged by Spark", flights, lambda: progress.averaged),
            Bar("windows sent back", len(self.oracle.windows), lambda: progress.windows_saved),
        ]

    def conclude(self) -> Report:
        """Tidies up, compares, draws, writes the report."""
        plan, report, out = self.plan, self.report, self.plan.out
        self.screen.status("comparing with pandas")
        removed = [path for name in (results.ARCHIVE, results.DELAYS) for path in tidy.remove_uncommitted(out / name)]
        self.alerting.write(out)
        archive, windows = results.read_archive(out), results.read_windows(out)
        # A batch that was committed just before the kill was not reported any more.
        self.progress.archived, self.progress.windows_saved = len(archive), len(windows)
        report.checks += [
            *compare.compare_archive(self.oracle, archive),
            *compare.compare_windows(self.oracle, windows),
            *compare.compare_alerts(self.oracle, results.read_alerts(out)),
        ]
        report.dropped = self.driver.dropped_by_watermark()
        report.recoveries = self.faults.recoveries
        for query in (ARCHIVE, DELAYS, WINDOWS):
            batches = [batch for batch in self.driver.batches.values() if batch.query == query and batch.rows]
            busy_s = sum(batch.ms for batch in batches) / 1000
            report.rates[f"query {query}, while busy"] = sum(batch.rows for batch in batches) / max(busy_s, 1e-3)
        report.counts |= {
            "flights sent again after the kill": sum(producer.sent_again for producer in self.producers),
            "alerts delivered": self.alerting.deliveries,
            "alerts redelivered": self.alerting.redelivered,
            "repeated alerts dropped": self.alerting.repeats,
            "Parquet files without a commit removed": len(removed),
        }
        report.seconds = self.screen.seconds
        draw_delays(windows, out / "delays.png")
        flows = self.flows(archive, windows)
        for suffix in ("png", "svg"):
            draw_cluster(flows, out / f"cluster.{suffix}")
        results.write_json(out / results.REPORT, report.as_dict() | {"plan": str(plan)})
        return report

    def flows(self, archive: pd.DataFrame, windows: pd.DataFrame) -> Flows:
        """For the picture; which node is whose follows from the archive."""
        owners = archive.groupby("node")["origin"].first()
        by_node = windows["node"].map(owners).value_counts()
        return Flows(
            published=dict(self.progress.published),
            forwarded=self.report.forwarded,
            alerts=len(self.alerting.alerts),
            windows={str(code): int(count) for code, count in by_node.items()},
            archived=len(archive),
            kills=[recovery.text() for recovery in self.faults.recoveries],
        )
