"""Slow consumers: a consumer that takes fewer messages than slow-consumer-threshold is notified or disconnected.

Follows QueueImpl.SlowConsumerReaperRunnable: the check skips a queue that did not get enough messages for all its
consumers to keep the rate. Unlike Artemis, a consumer is checked only after a whole period of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.sessions.session_consumer import SessionConsumer

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers, Trace
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.sessions.clients import Clients
    from atalanta.kernel.settings.repository import AddressSettings, AddressSettingsRepository

SLOW_TIMER: Final = "kernel.slow"
SECOND_NS: Final = 1_000_000_000
UNIT_S: Final = {
    "MESSAGES_PER_SECOND": 1,
    "MESSAGES_PER_MINUTE": 60,
    "MESSAGES_PER_HOUR": 3_600,
    "MESSAGES_PER_DAY": 86_400,
}


class SlowConsumers:
    """The check of consumers against slow-consumer-threshold.

    `checked`: queue id -> time (ns) of the last check, and the queue's added messages at that time. `period_s` 0: no
    address has a threshold.
    """

    def __init__(
        self,
        settings: AddressSettingsRepository,
        timers: Timers,
        trace: Trace,
        queues: dict[str, Queue],
        clients: Clients,
    ) -> None:
        self.settings = settings
        self.timers = timers
        self.trace = trace
        self.queues = queues
        self.clients = clients
        self.checked: dict[int, tuple[int, int]] = {}
        self.period_s: int = 0

    def arm(self, now: int) -> None:
        """Sets the timer of the next check, at the start and after a change of the settings."""
        self.period_s = self.settings.slow_consumer_period_s()
        if self.period_s:
            self.timers.set(SLOW_TIMER, now + self.period_s * SECOND_NS)

    def on_timer(self, now: int) -> None:
        """Checks all queues that have a threshold and whose period is over."""
        before = self.checked
        checked: dict[int, tuple[int, int]] = {}
        self.checked = checked
        for queue in list(self.queues.values()):
            settings = self.settings.match(queue.spec.address)
            if (
                settings.slow_consumer_threshold < 0
                or queue.internal
                or queue.consumer_count() == 0
            ):
                continue
            last = before.get(queue.id)
            period_ns = settings.slow_consumer_check_period_s * SECOND_NS
            if last is not None and now - last[0] < period_ns:
                checked[queue.id] = last
                continue
            checked[queue.id] = (now, queue.added)
            if last is not None:
                self._check(now, queue, settings, now - last[0], queue.added - last[1])
            else:
                for consumer in queue.consumers:
                    consumer.counts.note_checked(now, consumer.taken())
        self.arm(now)

    def _check(
        self, now: int, queue: Queue, settings: AddressSettings, elapsed_ns: int, added: int
    ) -> None:
        """Compares rates as whole numbers: count / elapsed < threshold / unit."""
        threshold = settings.slow_consumer_threshold
        unit_s = UNIT_S[settings.slow_consumer_threshold_measurement_unit]
        wanted = threshold * queue.consumer_count()
        enough_came = added * unit_s * SECOND_NS >= wanted * elapsed_ns
        enough_here = queue.message_count * unit_s >= wanted
        for consumer in list(queue.consumers):
            counts = consumer.counts
            since = counts.checked_at
            taken = consumer.taken()
            rate = taken - counts.checked_taken
            counts.note_checked(now, taken)
            if consumer.browse_only or since == 0 or not (enough_came or enough_here):
                continue
            slow = rate * unit_s * SECOND_NS < threshold * (now - since)
            if slow or (rate == 0 and threshold == 0):
                self._report(now, consumer, settings.slow_consumer_policy)

    def _report(self, now: int, consumer: QueueConsumer, policy: str) -> None:
        if not isinstance(consumer, SessionConsumer):
            return
        session = consumer.session
        client = session.client
        self.trace.event(
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
            self.clients.close(client.connection, f"slow consumer of {consumer.queue.name}")
            return
        for observer in self.clients.observers:
            observer.on_consumer_slow(now, consumer)
