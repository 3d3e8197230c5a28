"""A listener to the notifications of a broker."""

from __future__ import annotations

from atalanta.message.properties import PropertyValue
from tests.kernel.broker_rig import Bench, notifications_of


def listening(bench: Bench) -> None:
    bench.broker.add_observer(notifications_of(bench.broker))
    bench.queue("listener", "activemq.notifications", 0, durable=False)


def told(bench: Bench, kind: str) -> list[dict[str, PropertyValue]]:
    bench.settle()
    found = []
    for reference in bench.broker.queues["listener"].live():
        properties = dict(reference.message.properties.items())
        if properties.get("_AMQ_NotifType") == kind:
            found.append(properties)
    return found
