"""What two browsers at the console cost the nodes, and how long a page takes: many queues, many connections."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import aiohttp

import atalanta
from atalanta.client import connect
from bench.broker_xml import Plan
from bench.brokers import Broker
from bench.context import Context, Scenario
from bench.figures import Figure, Goal
from bench.measure import BadRun, cpu_seconds
from bench.settings import CHECKOUT
from tests.ports import free_port

QUEUES = 10_000  # at each node: those of a cluster are at all of them
CONNECTIONS = 1_000  # at all nodes together
AT_ONCE = 50  # that are opened
SHARE_OF_60_S = 60.0 / 3.0  # of the usual counted window
REFRESH_S = 5.0
PAGE_S_MOST = 1.0
CPU_PERCENT_MOST = 2.0
SETTLE_S = 5.0
REPEATS_MOST = 2
USER = PASSWORD = "admin"
# What each browser asks for, again and again: the script of a page asks for the page, and that for its picture.
PICTURE = ("", "picture.svg")
LIST = ("queues?sort=messageCount&order=desc",)


def scenarios() -> dict[str, Scenario]:
    """One scenario; an Artemis has no such console."""
    return {"console": console}


def console(context: Context, name: str) -> list[Figure]:
    """Two windows at the same nodes: one without a console, one with two browsers that look at it from its start."""
    context.brokers.close_shared()
    ports = [free_port(), free_port()]
    nodes = [
        context.brokers.new("atalanta", Plan(queues=QUEUES, peer_ports=(peer,)), port)
        for port, peer in zip(ports, reversed(ports), strict=True)
    ]
    cost = Figure(name, "CPU of the node with most for it", "% of a core", Goal.AT_MOST, CPU_PERCENT_MOST)
    slowest = Figure(name, "slowest page", "s", Goal.AT_MOST, PAGE_S_MOST)
    try:
        for node in nodes:
            node.start()
        seconds = context.settings.seconds * SHARE_OF_60_S
        for _ in range(min(REPEATS_MOST, context.settings.repeats)):
            percent, page_s = asyncio.run(_measured(nodes, seconds))
            cost.ours.append(percent)
            slowest.ours.append(page_s)
    finally:
        for node in nodes:
            node.close()
    cost.lower_is_better = slowest.lower_is_better = True
    cost.note = (
        f"two nodes with {QUEUES:,} queues each and {CONNECTIONS:,} connections; two browsers for {seconds:g} s, one "
        f"at the picture, one at the list of queues, every {REFRESH_S:g} s; their use without is taken off"
    )
    return [cost, slowest]


async def _measured(nodes: list[Broker], seconds: float) -> tuple[float, float]:
    """Returns the CPU of the node with most, in percent of a core, and the time of the slowest page."""
    async with _connected(nodes):
        await asyncio.sleep(SETTLE_S)
        without = await _used(nodes, asyncio.sleep(seconds))
        with _served(nodes) as address:
            looking = asyncio.gather(_browser(address, PICTURE, seconds), _browser(address, LIST, seconds))
            used = await _used(nodes, looking)
            slowest_s = max(looking.result())
    each = [100.0 * (b - a) / seconds for a, b in zip(without, used, strict=True)]
    return max(0.0, *each), slowest_s


async def _used(nodes: list[Broker], doing: object) -> list[float]:
    """Returns the CPU seconds of each node while something is done."""
    before = [cpu_seconds(node.pids) for node in nodes]
    await doing  # type: ignore[misc]
    return [cpu_seconds(node.pids) - spent for node, spent in zip(nodes, before, strict=True)]


@asynccontextmanager
async def _connected(nodes: list[Broker]) -> AsyncIterator[None]:
    """Connections that only are there, shared by the nodes."""
    async with AsyncExitStack() as stack:
        room = asyncio.Semaphore(AT_ONCE)

        async def open_one(number: int) -> None:
            url = f"tcp://127.0.0.1:{nodes[number % len(nodes)].port}?stay=true&clientID=bench-{number}"
            async with room:
                await stack.enter_async_context(connect(url, user=USER, password=PASSWORD))

        await asyncio.gather(*(open_one(number) for number in range(CONNECTIONS)))
        yield


@contextmanager
def _served(nodes: list[Broker]) -> Iterator[str]:
    """A console as a process; its address."""
    places = [f"127.0.0.1:{node.port}" for node in nodes]
    command = [sys.executable, "-m", "atalanta", "console", *places, "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(atalanta.__file__).parents[1]), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=CHECKOUT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.search(r"http://\S+", line)
            if found is None:
                raise BadRun(f"the console did not start: {line}")
            yield found[0]
        finally:
            process.terminate()


async def _browser(address: str, paths: tuple[str, ...], seconds: float) -> float:
    """Logs in, and looks at the paths every REFRESH_S seconds. Returns the time of the slowest answer."""
    began_s = time.monotonic()
    slowest_s = 0.0
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(f"{address}login") as answer:
            found = re.search(r'name="entry_token" value="([^"]+)"', await answer.text())
        if found is None:
            raise BadRun("the console has no page of the log-in")
        form = {"entry_token": found[1], "user": USER, "password": PASSWORD}
        origin = {"Origin": address.rstrip("/"), "Sec-Fetch-Site": "same-origin"}
        async with session.post(f"{address}login", data=form, headers=origin, allow_redirects=False) as answer:
            if answer.status != 303:
                raise BadRun(f"log-in: status {answer.status}")
        headers: dict[str, str] = {}
        while (left_s := began_s + seconds - time.monotonic()) > 0:
            round_s = time.monotonic()
            for path in paths:
                asked_s = time.monotonic()
                async with session.get(f"{address}{path}", headers=headers) as answer:
                    await answer.read()
                    if answer.status != 200:
                        raise BadRun(f"/{path}: status {answer.status}")
                slowest_s = max(slowest_s, time.monotonic() - asked_s)
            headers = {"X-Atalanta-Refresh": "1"}
            await asyncio.sleep(min(left_s, max(0.0, REFRESH_S - (time.monotonic() - round_s))))
    return slowest_s
