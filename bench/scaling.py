"""What one delivery costs with more queues, connections, subscribers: ours only, it has to stay flat."""

from __future__ import annotations

from bench.broker_xml import Plan, topic_address
from bench.context import Context, Scenario
from bench.figures import Figure, Goal

FLAT = 1.5
MOST_QUEUES = 1_000
QUEUES = (1, 10, 1_000)
CONNECTIONS = (1, 100, 5_000)
SUBSCRIBERS = (1, 10, 100)
OUTSTANDING_EACH = 10  # messages, for every connection
REPEATS_MOST = 4
SECONDS_MOST = 2.0


def scenarios() -> dict[str, Scenario]:
    """One scenario with three groups of figures."""
    return {"scaling": scaling}


def scaling(context: Context, name: str) -> list[Figure]:
    context.brokers.close_shared()
    broker = context.brokers.new("atalanta", Plan(queues=MOST_QUEUES, topics=SUBSCRIBERS))
    broker.start()
    figures = []
    groups = {
        "queues": {count: over_queues(count) for count in QUEUES},
        "connections": {count: over_connections(count) for count in CONNECTIONS},
        "subscribers": {count: over_subscribers(count) for count in SUBSCRIBERS},
    }
    for group, loads in groups.items():
        points = {
            count: Figure(name, f"CPU a delivery, {count:,} {group}", "µs", lower_is_better=True)
            for count in loads
        }
        for _ in range(min(REPEATS_MOST, context.settings.repeats)):
            for count, options in loads.items():
                sample = context.measure(name, context.raw, options, [broker], SECONDS_MOST)
                points[count].ours.append(sample.cost_us)
        flat = Figure(name, f"dearest to one, {group}", "×", Goal.AT_MOST, FLAT)
        runs = zip(*(point.ours for point in points.values()), strict=True)
        flat.ours = [max(costs) / costs[0] for costs in runs]
        figures += [*points.values(), flat]
    broker.close()
    return figures


def over_queues(count: int) -> dict[str, object]:
    """Four connections send to all queues in turn, message by message; four consume."""
    return {
        "producers": 4,
        "consumers": 4,
        "queues": count,
        "spread": True,
        "bytes": 100,
        "burst": 500,
    }


def over_connections(count: int) -> dict[str, object]:
    """Each connection sends and consumes, ten messages at a time, at one of at most ten queues."""
    return {
        "producers": count,
        "both": True,
        "queues": min(10, count),
        "bytes": 100,
        "burst": OUTSTANDING_EACH,
        "window": OUTSTANDING_EACH * count,
    }


def over_subscribers(count: int) -> dict[str, object]:
    """One sends to a topic; one connection has all its subscriptions."""
    address = topic_address(count)
    return {
        "topic": address,
        "prefix": f"{address}.s",
        "queues": count,
        "bytes": 100,
        "burst": 50,
    }
