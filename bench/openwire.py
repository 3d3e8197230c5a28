"""Scenarios of OpenWire: activemq-client at our node, at a real Artemis and at a real Classic."""

from __future__ import annotations

from collections.abc import Callable

from bench.brokers import CLASSIC, CLASSIC_VERSION
from bench.context import Context, Scenario
from bench.figures import Figure, Goal
from bench.measure import Sample
from bench.throughput import jms

KINDS = ("artemis", CLASSIC, "atalanta")
# The client waits for every durable send, unless it is told otherwise (`jms.useAsyncSend`).
LOADS: dict[str, dict[str, object]] = {
    "openwire-nondurable-1x1": jms(1, 1),
    "openwire-nondurable-4x4": jms(4, 4),
    "openwire-text-4x4": jms(4, 4, text=True),
    "openwire-durable-4x4": jms(4, 4, durable=True, blocking=True),
    "openwire-durable-async-4x4": jms(4, 4, durable=True),
}
TIMES_BETTER = 3


def scenarios() -> dict[str, Scenario]:
    """By name, in the order of the report."""
    return dict.fromkeys(LOADS, load)


def load(context: Context, name: str) -> list[Figure]:
    """The brokers in turns; a figure beside each of the others. Two builds are compared without Classic."""
    kinds = KINDS if context.settings.peer_build is None else ("artemis", "atalanta")
    samples: dict[str, list[Sample]] = {kind: [] for kind in kinds}
    for run in range(context.settings.repeats):
        first = run % len(kinds)
        for kind in kinds[first:] + kinds[:first]:
            broker = context.brokers.openwire(kind)
            samples[kind].append(context.measure(name, context.openwire, LOADS[name], [broker]))
    cores = [sample.client_cpu / sample.seconds for sample in samples["atalanta"]]
    other = [s.other_cpu / s.seconds for kind in kinds for s in samples[kind]]
    figures = []
    for peer, shown in (("artemis", ""), (CLASSIC, f" beside Classic {CLASSIC_VERSION}")):
        if peer not in samples:
            continue
        figures += [
            _figure(name, f"messages per broker CPU-second{shown}", TIMES_BETTER, samples, peer, _per_cpu_second),
            _figure(name, f"messages a second{shown}", 1, samples, peer, _rate),
        ]
    figures[0].note = f"generator {max(cores):.2f} cores beside Atalanta, neighbours up to {max(other):.2f}"
    return figures


def _figure(
    scenario: str,
    name: str,
    target: float,
    samples: dict[str, list[Sample]],
    peer: str,
    value: Callable[[Sample], float],
) -> Figure:
    """`theirs` are the values of the peer, which for Classic the name of the figure tells."""
    figure = Figure(scenario, name, "", Goal.RATIO, target)
    figure.ours = [value(sample) for sample in samples["atalanta"]]
    figure.theirs = [value(sample) for sample in samples[peer]]
    return figure


def _per_cpu_second(sample: Sample) -> float:
    return sample.per_cpu_second


def _rate(sample: Sample) -> float:
    return sample.rate
