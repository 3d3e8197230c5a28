"""Redistribution between two nodes, starts, and memory."""

from __future__ import annotations

import time

from bench.broker_xml import Plan
from bench.brokers import KINDS, Broker
from bench.context import Context, Scenario, order
from bench.figures import Figure, Goal
from bench.measure import rss_mib

KIB = 1024
REDISTRIBUTED = 20_000
STORED = 200_000
HELD_IN_MEMORY = 50_000
IDLE_CONNECTIONS = 10_000
SETTLE_SECONDS = 1.5
FILL: dict[str, object] = {"consumers": 0, "bytes": KIB, "burst": 500, "window": 5_000}


def scenarios() -> dict[str, Scenario]:
    """By name, in the order of the report."""
    return {
        "redistribution-20000": redistribution,
        "start-empty": start_empty,
        "start-200k-durable": start_full,
        "rss-idle": idle_memory,
        "rss-10000-connections": connections_memory,
        "rss-per-message": message_memory,
    }


def redistribution(context: Context, name: str) -> list[Figure]:
    """Filled at the first node with nobody consuming; from the start of a consumer at the second to the last one."""
    figure = Figure(name, "until all arrived", "s", Goal.RATIO, 2, lower_is_better=True)
    fill = {**FILL, "durable": True, "count": REDISTRIBUTED}
    drain: dict[str, object] = {"producers": 0, "consumers": 1, "expect": REDISTRIBUTED}
    for run in range(context.settings.repeats):
        for kind in order(run):
            first, second = context.brokers.cluster(kind)
            context.load(first.port, fill)
            seconds, _ = context.load(second.port, drain)
            _values(figure, kind).append(seconds)
    return [figure]


def start_empty(context: Context, name: str) -> list[Figure]:
    figure = Figure(name, "to ready", "s", Goal.AT_MOST_AND_BETTER, 0.5, lower_is_better=True)
    brokers = {kind: _fresh(context, kind) for kind in KINDS}
    for broker in brokers.values():  # its journal files are made now: that does not count
        broker.start()
        broker.stop()
    _restarts(context, figure, brokers)
    return [figure]


def start_full(context: Context, name: str) -> list[Figure]:
    figure = Figure(name, "to ready", "s", Goal.AT_MOST_AND_BETTER, 2, lower_is_better=True)
    brokers = {kind: _fresh(context, kind) for kind in KINDS}
    fill = {**FILL, "durable": True, "count": STORED}
    for broker in brokers.values():
        broker.start()
        context.load(broker.port, fill)
        broker.stop()
    _restarts(context, figure, brokers)
    return [figure]


def idle_memory(context: Context, name: str) -> list[Figure]:
    figure = Figure(name, "RSS", "MB", Goal.AT_MOST, 60, lower_is_better=True)
    for kind in KINDS:
        broker = _fresh(context, kind)
        broker.start()
        time.sleep(SETTLE_SECONDS)
        _values(figure, kind).append(_megabytes(broker))
        broker.close()
    return [figure]


def connections_memory(context: Context, name: str) -> list[Figure]:
    figure = Figure(
        name, "RSS with a session each, idle", "MB", Goal.AT_MOST, 300, lower_is_better=True
    )
    hold: dict[str, object] = {"producers": IDLE_CONNECTIONS, "consumers": 0, "idle": True}
    for kind in KINDS:
        broker = _fresh(context, kind)
        broker.start()
        try:
            context.raw.start(broker.port, hold)
            time.sleep(SETTLE_SECONDS)
            _values(figure, kind).append(_megabytes(broker))
        finally:
            context.raw.close()
            broker.close()
    return [figure]


def message_memory(context: Context, name: str) -> list[Figure]:
    figure = Figure(name, "RSS for a 1 KiB message", "KiB", Goal.AT_MOST, 1.6, lower_is_better=True)
    figure.note = (
        f"{HELD_IN_MEMORY:,} non-durable messages; Artemis' heap hides much of what it takes"
    )
    for kind in KINDS:
        broker = _fresh(context, kind)
        broker.start()
        time.sleep(SETTLE_SECONDS)
        # What the first messages bring with them (buffers, code) is not theirs.
        context.load(broker.port, {**FILL, "count": HELD_IN_MEMORY // 10})
        time.sleep(SETTLE_SECONDS)
        before = rss_mib(broker.pid)
        context.load(broker.port, {**FILL, "count": HELD_IN_MEMORY})
        time.sleep(SETTLE_SECONDS)
        grown = rss_mib(broker.pid) - before
        _values(figure, kind).append(grown * 1024 / HELD_IN_MEMORY)
        broker.close()
    return [figure]


def _restarts(context: Context, figure: Figure, brokers: dict[str, Broker]) -> None:
    for run in range(context.settings.repeats):
        for kind in order(run):
            _values(figure, kind).append(brokers[kind].start())
            brokers[kind].stop()
    for kind in KINDS:
        brokers[kind].close()


def _fresh(context: Context, kind: str) -> Broker:
    context.brokers.close_shared()
    return context.brokers.new(kind, Plan())


def _megabytes(broker: Broker) -> float:
    return rss_mib(broker.pid) * 1024 * 1024 / 1e6


def _values(figure: Figure, kind: str) -> list[float]:
    return figure.ours if kind == "atalanta" else figure.theirs
