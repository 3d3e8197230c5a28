"""The load generator of `atalanta bench`: connections that send and receive in one event loop."""

from __future__ import annotations

import asyncio
import time
import uuid
from contextlib import AsyncExitStack
from typing import Final

from atalanta.cli.bench.result import BenchResult, show_results
from atalanta.cli.messages.destination import parse_destination
from atalanta.cli.messages.produce import RateLimit, first_of
from atalanta.cli.output.outcome import Refused, reported
from atalanta.cli.output.progress import Bar
from atalanta.client import (
    AddressExists,
    ClientError,
    Connection,
    Consumer,
    Message,
    Producer,
    QueueExists,
    run,
)
from atalanta.client.message import ANYCAST, MULTICAST
from atalanta.survey.broker_login import BrokerLogin

BURST_MESSAGES: Final = 50  # messages per burst; then the event loop serves other tasks
SILENCE_S: Final = 10.0
SENT: Final = "sent_ns"


class BenchLoad:
    """The parameters of a run. `rate` is messages a second of all producers together, 0 for no limit."""

    def __init__(self, destination: str, producers: int, consumers: int, size: int) -> None:
        self.destination = parse_destination(destination)
        self.producers = producers
        self.consumers = consumers
        self.size = size
        self.count: int | None = None
        self.duration_s = 10.0
        self.warmup_s = 1.0
        self.rate = 0.0
        self.window = 1_000
        self.durable = True

    @property
    def routing(self) -> str:
        return self.destination.routing or ANYCAST

    @property
    def name(self) -> str:
        return self.destination.name


def run_bench(targets: list[BrokerLogin], load: BenchLoad, json_output: bool, quiet: bool) -> None:
    """Measures one broker after the other, then prints a table with one column each."""
    with reported():
        results = []
        for target in targets:
            with Bar(target.url, load.count, quiet or json_output) as bar:
                results.append(run(Bench(target, load, bar).measure()))
        show_results(load.consumers > 0, load.producers > 0, results, json_output)


class Bench:
    """A run against one broker."""

    def __init__(self, target: BrokerLogin, load: BenchLoad, bar: Bar) -> None:
        self.load = load
        self.result = BenchResult(target.url)
        self._target = target
        self._bar = bar
        self._rate_limit = RateLimit(load.rate)
        self._made_queue = False
        self._taken = 0  # number of messages, of load.count
        self._sent = 0
        self._received = 0
        self._all_sent = load.producers == 0
        self._measure_from_ns = 0
        self._until_ns = 0

    async def measure(self) -> BenchResult:
        """Measures. All connections are opened before, so that their time is not measured."""
        load = self.load
        async with AsyncExitStack() as stack:
            admin = await stack.enter_async_context(self._target.connect())
            self.result.version = await version_of(admin)
            await self._prepare(admin)
            consumers = [await self._consumer(stack) for _ in range(load.consumers)]
            producers = [await self._producer(stack) for _ in range(load.producers)]
            await self._run(producers, consumers)
        await self._clean_up()
        return self.result

    async def _prepare(self, admin: Connection) -> None:
        """Creates the bench's own queue, deleted afterwards. A queue with messages is refused."""
        load = self.load
        if load.routing == MULTICAST:
            try:
                await admin.create_address(load.name, MULTICAST, auto_created=True)
            except AddressExists:
                pass
            return
        found = await admin.query_queue(load.name)
        if found.exists:
            if found.message_count and load.producers:
                raise Refused(
                    f"queue {load.name} holds {found.message_count} messages: purge it, or name another"
                )
            return
        try:
            await admin.create_queue(load.name, routing=ANYCAST, durable=load.durable)
            self._made_queue = True
        except QueueExists:
            pass

    async def _consumer(self, stack: AsyncExitStack) -> Consumer:
        connection = await stack.enter_async_context(self._target.connect())
        load = self.load
        queue = load.name
        if load.routing == MULTICAST:
            queue = str(uuid.uuid4())
            await connection.create_queue(
                queue, load.name, MULTICAST, durable=False, temporary=True
            )
        return await connection.consumer(queue, ack="auto")

    async def _producer(self, stack: AsyncExitStack) -> Producer:
        connection = await stack.enter_async_context(self._target.connect())
        return await connection.producer(self.load.name, self.load.routing, self.load.window)

    async def _run(self, producers: list[Producer], consumers: list[Consumer]) -> None:
        load, result = self.load, self.result
        now = time.monotonic_ns()
        self._measure_from_ns = now + int(load.warmup_s * 1e9)
        self._until_ns = self._measure_from_ns + int(load.duration_s * 1e9)
        cpu = time.process_time()
        try:
            async with asyncio.TaskGroup() as group:
                receiving = [group.create_task(self._receive(consumer)) for consumer in consumers]
                sending = [group.create_task(self._send(producer)) for producer in producers]
                if sending:
                    await asyncio.wait(sending)
                self._all_sent = True
                result.backlog = self._sent * self._copies() - self._received
                await asyncio.wait([*receiving, *sending])
        except BaseExceptionGroup as errors:
            raise first_of(errors) from None
        wall = (time.monotonic_ns() - now) / 1e9
        result.client_cpu = (time.process_time() - cpu) / wall
        result.lost = max(0, self._sent * self._copies() - self._received)

    def _copies(self) -> int:
        """Returns the number of consumers that receive each message."""
        if self.load.routing == MULTICAST:
            return self.load.consumers
        return 1 if self.load.consumers else 0

    async def _send(self, producer: Producer) -> None:
        load, result, bar = self.load, self.result, self._bar
        properties: dict[str, bool | int | float | str | bytes | None] = {SENT: 0}
        message = Message(b"x" * load.size, properties=properties, durable=load.durable)
        limited = self._rate_limit.limited
        turn = 0
        while True:
            if load.count is None:
                if time.monotonic_ns() >= self._until_ns:
                    break
            elif self._taken >= load.count:
                break
            self._taken += 1
            if limited:
                await self._rate_limit.wait()
            now = properties[SENT] = time.monotonic_ns()
            await producer.send_soon(message)
            self._sent += 1
            if now >= self._measure_from_ns:
                result.sent += 1
            turn += 1
            if turn % BURST_MESSAGES == 0:
                bar.advance(BURST_MESSAGES)
                await asyncio.sleep(0)
        await producer.drain()
        now = time.monotonic_ns()
        result.send_seconds = max(result.send_seconds, (now - self._measure_from_ns) / 1e9)

    async def _receive(self, consumer: Consumer) -> None:
        """Receives until every sent message has arrived. Without producers the time limit ends it."""
        result = self.result
        silent_since = time.monotonic()
        while not self._finished():
            message = await consumer.receive(0.1)
            if message is None:
                if self._all_sent and time.monotonic() - silent_since > SILENCE_S:
                    return
                continue
            now = time.monotonic_ns()
            silent_since = now / 1e9
            self._received += 1
            if self.load.producers == 0:
                result.received += 1
            else:
                sent = message.header(SENT)
                if isinstance(sent, int) and sent >= self._measure_from_ns:
                    result.received += 1
                    result.latencies_ns.append(now - sent)
            result.receive_seconds = (now - self._measure_from_ns) / 1e9

    def _finished(self) -> bool:
        if self.load.producers == 0:
            enough = self.load.count is not None and self._received >= self.load.count
            return enough or time.monotonic_ns() >= self._until_ns
        return self._all_sent and self._received >= self._sent * self._copies()

    async def _clean_up(self) -> None:
        """Deletes the queue; it is not used any more."""
        if self._made_queue:
            async with self._target.connect() as admin:
                await admin.delete_queue(self.load.name)


async def version_of(connection: Connection) -> str:
    """Returns the broker's version; empty where management is not allowed."""
    try:
        return str(await connection.management().get("broker", "Version"))
    except ClientError:
        return ""
