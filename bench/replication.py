"""Durable messages at a replicated pair: CPU of both nodes, latency, and the cost over a single node."""

from __future__ import annotations

from bench.brokers import KINDS, Broker
from bench.context import Context, Scenario, order
from bench.figures import Figure, Goal
from bench.generators import Generator
from bench.measure import Sample
from bench.pairs import REPLICATION, pair
from bench.throughput import PACED_DURABLE, RAW_LOADS

THROUGHPUT = "replicated-durable-1k-1000"
LATENCY = "replicated-latency-2000"
LOADS = {THROUGHPUT: RAW_LOADS["raw-durable-1k-1000"][0], LATENCY: PACED_DURABLE}


def scenarios() -> dict[str, Scenario]:
    """By name, in the order of the report."""
    return {THROUGHPUT: throughput, LATENCY: latency}


def throughput(context: Context, name: str) -> list[Figure]:
    """Messages for each CPU-second of both nodes; beside the other kind, and beside our single node."""
    pairs, singles = _samples(context, name)
    figure = Figure(name, "messages per CPU-second of both nodes", "", Goal.RATIO, 4)
    figure.ours = [sample.per_cpu_second for sample in pairs["atalanta"]]
    figure.theirs = [sample.per_cpu_second for sample in pairs["artemis"]]
    rate = Figure(name, "messages a second", "", Goal.RATIO, 1)
    rate.ours = [sample.rate for sample in pairs["atalanta"]]
    rate.theirs = [sample.rate for sample in pairs["artemis"]]
    cost = Figure(name, "CPU of a message at our pair, beside our single node", "µs", lower_is_better=True)
    cost.ours = [sample.cost_us for sample in pairs["atalanta"]]
    cost.theirs = [sample.cost_us for sample in singles]
    return [figure, rate, cost]


def latency(context: Context, name: str) -> list[Figure]:
    """From a durable send to its confirmation at a steady rate."""
    pairs, singles = _samples(context, name)
    half = Figure(name, "p50, durable", "µs", Goal.NO_WORSE, lower_is_better=True)
    most = Figure(name, "p99, durable", "µs", Goal.NO_WORSE, lower_is_better=True)
    alone = Figure(name, "p50 at our pair, beside our single node", "µs", lower_is_better=True)
    half.ours = [sample.p50_us for sample in pairs["atalanta"]]
    half.theirs = [sample.p50_us for sample in pairs["artemis"]]
    most.ours = [sample.p99_us for sample in pairs["atalanta"]]
    most.theirs = [sample.p99_us for sample in pairs["artemis"]]
    alone.ours = list(half.ours)
    alone.theirs = [sample.p50_us for sample in singles]
    return [half, most, alone]


def _samples(context: Context, name: str) -> tuple[dict[str, list[Sample]], list[Sample]]:
    """Returns the samples of new pairs of each kind in turns, and those of our single node between them."""
    pairs: dict[str, list[Sample]] = {kind: [] for kind in KINDS}
    singles = []
    for run in range(context.settings.repeats):
        for kind in order(run):
            with pair(context, kind, REPLICATION) as brokers:
                pairs[kind].append(_measured(context, name, context.raw, brokers))
        singles.append(_measured(context, name, context.raw, [context.brokers.singles("atalanta")]))
    return pairs, singles


def _measured(context: Context, name: str, generator: Generator, nodes: list[Broker]) -> Sample:
    """Clients use the first node only; the CPU of all nodes counts."""
    return context.measure(name, generator, LOADS[name], nodes, at_first=True)
