"""Slow consumers: who takes fewer messages than slow-consumer-threshold is told about, or loses its connection.

Follows QueueImpl.SlowConsumerReaperRunnable: a queue that did not get enough messages for all its consumers to
keep the rate is left alone. Other than there, a consumer is judged only after a whole period of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.queue.consumer import Consumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.settings.repository import AddressSettings

SLOW_TIMER: Final = "kernel.slow"
SECOND_NS: Final = 1_000_000_000
UNIT_S: Final = {
    "MESSAGES_PER_SECOND": 1,
    "MESSAGES_PER_MINUTE": 60,
    "MESSAGES_PER_HOUR": 3_600,
    "MESSAGES_PER_DAY": 86_400,
}


class SlowConsumers:
    """When queues with a threshold were last looked at, and what had been added by then: queue id -> both."""

    def __init__(self) -> None:
        self.looked: dict[int, tuple[int, int]] = {}
        self.period_s: int = 0  # 0: no address has a threshold


def arm(broker: Broker, now: int) -> None:
    """Called when the settings are known, or have changed."""
    period_s = broker.settings.slow_consumer_period_s()
    broker.slow_consumers.period_s = period_s
    if period_s:
        broker.timers.set(SLOW_TIMER, now + period_s * SECOND_NS)


def on_timer(broker: Broker, now: int) -> None:
    before = broker.slow_consumers.looked
    looked: dict[int, tuple[int, int]] = {}
    broker.slow_consumers.looked = looked
    for queue in list(broker.queues.values()):
        settings = broker.settings_of(queue.spec.address)
        if settings.slow_consumer_threshold < 0 or queue.internal or queue.consumer_count() == 0:
            continue
        last = before.get(queue.id)
        if last is not None and now - last[0] < settings.slow_consumer_check_period_s * SECOND_NS:
            looked[queue.id] = last
            continue
        looked[queue.id] = (now, queue.added)
        if last is not None:
            _look(broker, now, queue, settings, now - last[0], queue.added - last[1])
        else:
            for consumer in queue.consumers:
                _remember(consumer, now)
    arm(broker, now)


def _look(
    broker: Broker,
    now: int,
    queue: Queue,
    settings: AddressSettings,
    elapsed_ns: int,
    added: int,
) -> None:
    """Rates are compared as whole numbers: count / elapsed < threshold / unit."""
    threshold = settings.slow_consumer_threshold
    unit_s = UNIT_S[settings.slow_consumer_threshold_measurement_unit]
    wanted = threshold * queue.consumer_count()
    enough_came = added * unit_s * SECOND_NS >= wanted * elapsed_ns
    enough_here = queue.message_count * unit_s >= wanted
    for consumer in list(queue.consumers):
        taken = _taken(consumer)
        since = consumer.checked_at
        rate = taken - consumer.checked_taken
        _remember(consumer, now)
        if consumer.browse_only or since == 0 or not (enough_came or enough_here):
            continue
        if rate * unit_s * SECOND_NS < threshold * (now - since) or (rate == 0 and threshold == 0):
            _slow(broker, now, consumer, settings.slow_consumer_policy)


def _taken(consumer: Consumer) -> int:
    """What was delivered and is not held any more."""
    return consumer.delivered - len(consumer.unacknowledged)


def _remember(consumer: Consumer, now: int) -> None:
    consumer.checked_at = now
    consumer.checked_taken = _taken(consumer)


def _slow(broker: Broker, now: int, consumer: Consumer, policy: str) -> None:
    session = consumer.session
    if session is None:
        return
    client = session.client
    broker.trace.event(
        "slow_consumer",
        {
            "queue": consumer.queue.name,
            "consumer": consumer.id,
            "session": session.name,
            "remote": client.remote,
            "policy": policy,
        },
    )
    if policy == "KILL":
        broker.clients.close(client.connection, f"slow consumer of {consumer.queue.name}")
        return
    for observer in broker.observers:
        observer.on_consumer_slow(now, consumer, session)
