"""Scenarios with a steady load at one node or across two: messages, CPU, latency."""

from __future__ import annotations

from bench.brokers import KINDS
from bench.context import Context, Scenario, order
from bench.figures import Figure, Goal
from bench.generators import Generator
from bench.measure import Sample
from bench.settings import LATENCY_REPEATS

KIB = 1024
RATE = 2000  # messages a second, for "one at a time" and latency


def jms(producers: int, consumers: int, **more: object) -> dict[str, object]:
    """Options of the JMS generator: as many queues as producers, 1 KiB."""
    counts = {"producers": producers, "consumers": consumers, "queues": producers}
    return {**counts, "bytes": KIB, **more}


def raw(count: int, size: int, **more: object) -> dict[str, object]:
    """Options of the raw generator: as many producers, consumers and queues."""
    return {"producers": count, "consumers": count, "queues": count, "bytes": size, **more}


JMS_LOADS: dict[str, tuple[dict[str, object], float]] = {
    "jms-nondurable-1x1": (jms(1, 1), 4),
    "jms-nondurable-4x4": (jms(4, 4), 4),
    "jms-durable-async-1x1": (jms(1, 1, durable=True), 4),
    "jms-durable-async-4x4": (jms(4, 4, durable=True), 4),
}
RAW_LOADS: dict[str, tuple[dict[str, object], float]] = {
    "raw-100b-1x1": (raw(1, 100, burst=500, window=20_000), 5),
    "raw-100b-4x4": (raw(4, 100, burst=500, window=20_000), 5),
    "raw-durable-1k-1000": (raw(1, KIB, durable=True, burst=500, window=1_000), 5),
}
STOMP_LOADS: dict[str, dict[str, object]] = {
    "stomp-nondurable-1x1": {"bytes": 100, "burst": 500, "window": 20_000},
    "stomp-durable-1x1": {"bytes": 100, "burst": 100, "window": 500, "durable": 1},
}
STOMP_TIMES_BETTER = 3
PACED = raw(1, KIB, rate=RATE)
PACED_DURABLE = raw(1, KIB, rate=RATE, durable=True)
BLOCKING = {"durable-blocking-1": 1, "durable-blocking-4": 4}


def scenarios() -> dict[str, Scenario]:
    """By name, in the order of the report."""
    found: dict[str, Scenario] = dict.fromkeys(JMS_LOADS, jms_load)
    found |= dict.fromkeys(RAW_LOADS, raw_load)
    found["rate-2000"] = one_at_a_time
    found |= dict.fromkeys(BLOCKING, blocking)
    found["latency-2000"] = latency
    found["cross-node"] = cross_node
    found |= dict.fromkeys(STOMP_LOADS, stomp_load)
    return found


def jms_load(context: Context, name: str) -> list[Figure]:
    options, target = JMS_LOADS[name]
    return _throughput(name, target, _alternate(context, name, "jms", options))


def raw_load(context: Context, name: str) -> list[Figure]:
    options, target = RAW_LOADS[name]
    return _throughput(name, target, _alternate(context, name, "raw", options))


def stomp_load(context: Context, name: str) -> list[Figure]:
    """Small messages, auto acknowledged; each durable one has a receipt."""
    return _throughput(name, STOMP_TIMES_BETTER, _alternate(context, name, "stomp", STOMP_LOADS[name]))


def one_at_a_time(context: Context, name: str) -> list[Figure]:
    return _throughput(name, 2, _alternate(context, name, "raw", PACED), paced=True)


def blocking(context: Context, name: str) -> list[Figure]:
    count = BLOCKING[name]
    options = jms(count, count, durable=True, blocking=True)
    figures = _throughput(name, 0, _alternate(context, name, "jms", options))
    figures[1].target = 1.5
    return figures


def latency(context: Context, name: str) -> list[Figure]:
    samples = _alternate(context, name, "raw", PACED_DURABLE, LATENCY_REPEATS)
    half = Figure(name, "p50, durable", "µs", Goal.RATIO, 1, lower_is_better=True)
    most = Figure(name, "p99, durable", "µs", Goal.NO_WORSE, lower_is_better=True)
    half.ours = [sample.p50_us for sample in samples["atalanta"]]
    half.theirs = [sample.p50_us for sample in samples["artemis"]]
    most.ours = [sample.p99_us for sample in samples["atalanta"]]
    most.theirs = [sample.p99_us for sample in samples["artemis"]]
    return [half, most, _per_cpu(name, 0, samples)]


def cross_node(context: Context, name: str) -> list[Figure]:
    """Produce at the first node, consume at the second, both nodes' CPU."""
    options = jms(1, 1, settleMs=1_000)
    samples = _alternate(context, name, "jms", options, cluster=True)
    return _throughput(name, 4, samples)


def _alternate(
    context: Context,
    name: str,
    tool: str,
    options: dict[str, object],
    repeats: int = 0,
    cluster: bool = False,
) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {kind: [] for kind in KINDS}
    generators: dict[str, Generator] = {"jms": context.jms, "raw": context.raw, "stomp": context.stomp}
    single = context.brokers.stomp if tool == "stomp" else context.brokers.singles
    for run in range(repeats or context.settings.repeats):
        for kind in order(run):
            nodes = context.brokers.cluster(kind) if cluster else [single(kind)]
            samples[kind].append(context.measure(name, generators[tool], options, nodes))
    return samples


def _throughput(
    name: str, target: float, samples: dict[str, list[Sample]], paced: bool = False
) -> list[Figure]:
    """A paced load gives no throughput, and none is wanted of it but that it kept the pace."""
    rate = Figure(name, "messages a second", "", Goal.RATIO, 1)
    if paced:
        rate.goal = Goal.NONE
    rate.ours = [sample.rate for sample in samples["atalanta"]]
    rate.theirs = [sample.rate for sample in samples["artemis"]]
    cores = [sample.client_cpu / sample.seconds for sample in samples["atalanta"]]
    other = [s.other_cpu / s.seconds for kind in KINDS for s in samples[kind]]
    rate.note = (
        f"generator {max(cores):.2f} cores beside Atalanta, neighbours up to {max(other):.2f}"
    )
    return [_per_cpu(name, target, samples), rate]


def _per_cpu(name: str, target: float, samples: dict[str, list[Sample]]) -> Figure:
    goal = Goal.RATIO if target else Goal.NONE
    figure = Figure(name, "messages per broker CPU-second", "", goal, target)
    figure.ours = [sample.per_cpu_second for sample in samples["atalanta"]]
    figure.theirs = [sample.per_cpu_second for sample in samples["artemis"]]
    return figure
