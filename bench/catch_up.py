"""A backup that comes back without data: how long until it is in sync, and what the clients notice meanwhile."""

from __future__ import annotations

import time

from bench.brokers import KINDS, Broker
from bench.context import Context, Scenario, order
from bench.figures import Figure, Goal
from bench.measure import BadRun
from bench.pairs import REPLICATION, could_take_over, pair
from bench.throughput import PACED_DURABLE, raw

NAME = "replicated-catch-up-1gb"
MESSAGES = 100_000
BYTES = 10_240
# Of queue bench.q10: the paced load has bench.q0.
STORED = raw(1, BYTES, durable=True, burst=50, window=1_000) | {
    "consumers": 0,
    "prefix": "bench.q1",
    "count": MESSAGES,
}
QUEUES = 11
FILL_SECONDS = 300.0
CATCH_UP_SECONDS = 300.0


def scenarios() -> dict[str, Scenario]:
    """By name, in the order of the report."""
    return {NAME: catch_up}


def catch_up(context: Context, name: str) -> list[Figure]:
    """A new pair of each kind in turns; its backup is started when the primary has stored 1 GB."""
    seconds = Figure(name, "from the start of the backup to in sync, 2,000 a second served", "s", lower_is_better=True)
    most = Figure(name, "p99 until then, durable", "µs", Goal.NO_WORSE, lower_is_better=True)
    beside = Figure(name, "p99 until then at ours, beside p99 without a backup", "µs", lower_is_better=True)
    for run in range(context.settings.repeats):
        for kind in order(run):
            with pair(context, kind, REPLICATION, queues=QUEUES, alone=True) as brokers:
                lasted, before_us, during_us = _caught_up(context, *brokers)
            found = (seconds.ours, most.ours) if kind == KINDS[1] else (seconds.theirs, most.theirs)
            found[0].append(lasted)
            found[1].append(during_us)
            if kind == KINDS[1]:
                beside.ours.append(during_us)
                beside.theirs.append(before_us)
    return [seconds, most, beside]


def _caught_up(context: Context, active: Broker, passive: Broker) -> tuple[float, float, float]:
    """Returns the seconds until the backup is in sync, and the p99 (µs) before its start and from then on."""
    context.load(active.port, STORED, FILL_SECONDS)
    generator = context.raw
    try:
        generator.start(active.port, PACED_DURABLE)
        time.sleep(context.settings.jvm_warm_up_seconds)
        generator.count()
        time.sleep(context.settings.seconds)
        before = generator.count()
        begin = time.monotonic()
        passive.process.launch()
        while not could_take_over(passive, active, REPLICATION):
            if time.monotonic() > begin + CATCH_UP_SECONDS:
                raise BadRun(f"{passive.kind} is not in sync:\n{passive.process.tail()}")
            time.sleep(0.02)
        lasted = time.monotonic() - begin
        during = generator.count()
    finally:
        generator.close()
    if before.bad or during.bad:
        raise BadRun(f"{before.bad + during.bad} errors")
    return lasted, before.p99_us, during.p99_us
