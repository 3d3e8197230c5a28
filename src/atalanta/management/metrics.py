"""The metrics of a broker in Prometheus' text format, produced in slices so that clients are not delayed.

Names are those of Artemis' meters (BrokerMetricNames, AddressMetricNames, QueueMetricNames with the prefix
"artemis." and dots as underscores). Labels are the tags of MetricsManager. Atalanta's own metrics begin with
"atalanta_".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.reference import DELIVERING, READY
from atalanta.management.controls.address import limit_percent, page_count
from atalanta.management.metrics_text import escape, head

if TYPE_CHECKING:
    from atalanta.kernel.broker.broker import Broker
    from atalanta.kernel.log.lease import ReaderLease
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.security.permissions import Permissions
    from atalanta.kernel.sessions.clients import Clients
    from atalanta.management.request.jobs import Jobs
    from atalanta.management.resources.registry import ResourceRegistry
    from atalanta.management.status import NodeStatus

SLICE_LINES: Final = 500  # about a millisecond of work
ADDRESSES_PER_SLICE: Final = 100  # their settings may have to be merged again

TallyFigure = tuple[str, str, Callable[["Tally"], int]]
QueueFigure = tuple[str, str, Callable[["Queue"], int]]
AddressFigure = tuple[str, str, Callable[["Address"], int]]

QUEUE_FIGURES: Final[list[QueueFigure]] = [
    ("message_count", "messages in the queue, delivered and scheduled ones too",
     lambda queue: queue.message_count),
    ("persistent_size", "bytes of the messages in the queue", lambda queue: queue.bytes),
    ("delivering_message_count", "messages that consumers hold",
     lambda queue: queue.delivering_count),
    ("scheduled_message_count", "messages whose time has not come",
     lambda queue: queue.scheduled_count),
    ("scheduled_durable_message_count", "durable ones among them",
     lambda queue: queue.scheduled_durable_count),
    ("scheduled_persistent_size", "bytes of messages whose time has not come",
     lambda queue: queue.scheduled_bytes),
    ("scheduled_durable_persistent_size", "bytes of the durable ones among them",
     lambda queue: queue.scheduled_durable_bytes),
    ("messages_acknowledged", "messages acknowledged since the start",
     lambda queue: queue.acknowledged),
    ("messages_added", "messages added since the start", lambda queue: queue.added),
    ("messages_killed", "messages removed or sent to the dead letters since the start",
     lambda queue: queue.killed),
    ("messages_expired", "messages expired since the start", lambda queue: queue.expired),
    ("consumer_count", "consumers of the queue", lambda queue: queue.consumer_count()),
]  # fmt: skip
TALLY_FIGURES: Final[list[TallyFigure]] = [
    ("durable_message_count", "durable messages in the queue, and all in page files",
     lambda tally: tally.durable_count),
    ("durable_persistent_size", "bytes of them", lambda tally: tally.durable_bytes),
    ("delivering_durable_message_count", "durable messages that consumers hold",
     lambda tally: tally.delivering_durable_count),
    ("delivering_persistent_size", "bytes of the messages that consumers hold",
     lambda tally: tally.delivering_bytes),
    ("delivering_durable_persistent_size", "bytes of the durable ones among them",
     lambda tally: tally.delivering_durable_bytes),
]  # fmt: skip
ADDRESS_FIGURES: Final[list[AddressFigure]] = [
    ("routed_message_count", "messages that a queue took since the start",
     lambda address: address.routed),
    ("unrouted_message_count", "messages that no queue took since the start",
     lambda address: address.unrouted),
    ("address_size", "bytes of memory its messages take", lambda address: address.account.bytes),
    ("limit_percent", "used part of max-size-bytes", limit_percent),
    ("number_of_pages", "page files with messages that were not read yet", page_count),
]  # fmt: skip


END: Final = 1 << 62  # after every sequence
REFERENCES_MAX: Final = 10_000  # per slice: references, and queues without any


PREFIX: Final = "atalanta_"
ReaderFigure = tuple[str, str, str, Callable[["Queue", "ReaderLease", int], float]]

# Name, meaning, type; the last argument is the time of the broker in ns.
READER_FIGURES: Final[list[ReaderFigure]] = [
    ("reader_lag_messages", "messages of the queue that the group has not acknowledged", "gauge",
     lambda queue, lease, now: queue.message_count),
    ("reader_acknowledged_messages_total", "messages acknowledged since the start", "counter",
     lambda queue, lease, now: queue.acknowledged),
    ("reader_acknowledged_sequence", "everything up to this sequence is acknowledged", "gauge",
     lambda queue, lease, now: queue.log.acked_through),
    ("reader_retained_messages", "acknowledged messages that are kept for a replay", "gauge",
     lambda queue, lease, now: 0 if queue.log.retained is None else queue.log.retained.messages()),
    ("reader_retained_bytes", "the bytes of these messages", "gauge",
     lambda queue, lease, now: 0 if queue.log.retained is None else queue.log.retained.total_bytes()),
    ("reader_lease_epoch", "grows by one each time that a query takes the group over", "gauge",
     lambda queue, lease, now: lease.epoch),
    ("reader_lease_seconds", "the rest of the lease, 0 once it has ended", "gauge",
     lambda queue, lease, now: lease.rest_ns(now) / 1e9),
    ("reader_lease_age_seconds", "since when the group has this lease, 0 once it has ended", "gauge",
     lambda queue, lease, now: (now - lease.begun_at) / 1e9 if lease.active else 0),
    ("reader_lease_silence_seconds", "since the last renewal, 0 once the lease has ended", "gauge",
     lambda queue, lease, now: (now - lease.until + lease.ttl_ns) / 1e9 if lease.active else 0),
    ("reader_lease_refusals_total", "consumers and groups that this lease has kept from the queue", "counter",
     lambda queue, lease, now: lease.refusals),
]  # fmt: skip


def reader_figures(queues: list[tuple[Queue, str]], now: int) -> Iterator[str]:
    """Yields the figures of every group that has ever leased one of the queues; `now` in ns.

    The label `queue` is that of the queue's other metrics, `group` is added to it.
    """
    readers: list[tuple[Queue, ReaderLease, str]] = []
    for queue, label in queues:
        if not queue.deleted:
            for lease in queue.log.leases.values():
                readers.append((queue, lease, f'{label[:-1]},group="{escape(lease.group)}"}}'))
    if not readers:
        return
    for figure, why, kind, of_reader in READER_FIGURES:
        yield head(figure, why, kind, PREFIX) + "".join(
            f"{PREFIX}{figure}{label} {of_reader(queue, lease, now):.15g}\n"
            for queue, lease, label in readers
        )
    yield head("reader_lease_info", "1 while the group has the lease; its owner as errors name it", "gauge", PREFIX) + (
        "".join(
            f'{PREFIX}reader_lease_info{label[:-1]},owner="{escape(lease.owner)}"}} 1\n'
            for _, lease, label in readers
            if lease.active
        )
    )


class Tally:
    """The figures of one queue that have no counter: they are summed when metrics are requested. Sizes are in bytes.

    Every reference in memory is read once, in slices. Messages in page files count as durable without being read, like
    in Artemis (QueueImpl.getDurableMessageCount counts the messages of its page subscription).
    """

    def __init__(self, queue: Queue) -> None:
        self.durable_count: int = 0
        self.durable_bytes: int = 0
        self.delivering_bytes: int = 0
        self.delivering_durable_count: int = 0
        self.delivering_durable_bytes: int = 0
        if queue.durable:
            self.durable_count = queue.scheduled_durable_count
            self.durable_bytes = queue.scheduled_durable_bytes
            if queue.paged is not None:
                self.durable_count += queue.paged.count
                self.durable_bytes += queue.paged.bytes

    def add(self, queue: Queue, sequence: int, most: int) -> int:
        """Counts up to `most` references from `sequence` on. Returns the sequence to continue with, or END."""
        references = queue.references
        index = queue.index_of(sequence)
        stop = min(len(references), index + most)
        for reference in references[index:stop]:
            state = reference.state
            if state == DELIVERING:
                self.delivering_bytes += reference.size
                if reference.durable:
                    self.delivering_durable_count += 1
                    self.delivering_durable_bytes += reference.size
            elif state != READY:
                continue
            if reference.durable:
                self.durable_count += 1
                self.durable_bytes += reference.size
        return references[stop - 1].sequence + 1 if stop < len(references) else END


def tally(queues: list[Queue], found: list[Tally]) -> Iterator[None]:
    """Appends a Tally of each queue to `found`, in this order. Changes in the meantime may be missing."""
    left = REFERENCES_MAX
    for queue in queues:
        figures = Tally(queue)
        found.append(figures)
        sequence = 0 if queue.durable or queue.delivering_count > 0 else END
        left -= 1
        while sequence != END:
            if left <= 0:
                left = REFERENCES_MAX
                yield
            most = min(left, len(queue.references))
            sequence = figures.add(queue, sequence, most)
            left -= most


class Metrics:
    """The metrics of one broker."""

    def __init__(
        self, broker: Broker, resources: ResourceRegistry, status: NodeStatus, jobs: Jobs
    ) -> None:
        self.broker = broker
        self.resources = resources
        self.status = status
        self.jobs = jobs

    def slices(self) -> Iterator[str]:
        """Yields the text format (version 0.0.4), SLICE_LINES at a time. Changes in the meantime may be missing."""
        yield self.broker_figures()
        yield from self.own_figures()
        for slices in self.resources.metrics:
            yield from slices()
        broker = self.broker
        name = escape(broker.config.name)
        addresses: list[tuple[Address, str]] = []
        queues: list[tuple[Queue, str]] = []
        for looked, address in enumerate(list(broker.addresses.values()), 1):
            if broker.settings.match(address.name).enable_metrics:
                label = f'{{address="{escape(address.name)}",broker="{name}"'
                addresses.append((address, label + "}"))
                for queue in address.queues():
                    queues.append((queue, f'{label},queue="{escape(queue.name)}"}}'))
            if looked % ADDRESSES_PER_SLICE == 0:
                yield ""
        for figure, why, of_address in ADDRESS_FIGURES:
            yield head(figure, why)
            for start in range(0, len(addresses), SLICE_LINES):
                part = addresses[start : start + SLICE_LINES]
                yield "".join(
                    f"artemis_{figure}{label} {of_address(address)}\n" for address, label in part
                )
        for figure, why, of_queue in QUEUE_FIGURES:
            yield head(figure, why)
            for start in range(0, len(queues), SLICE_LINES):
                yield "".join(
                    f"artemis_{figure}{label} {of_queue(queue)}\n"
                    for queue, label in queues[start : start + SLICE_LINES]
                    if not queue.deleted
                )
        yield from tally_figures(queues)
        yield from reader_figures(queues, broker.now)

    def broker_figures(self) -> str:
        broker = self.broker
        clients = broker.clients
        memory = broker.memory
        label = f'{{broker="{escape(broker.config.name)}"}}'
        percentage = 100 * memory.used_bytes // memory.limit_bytes if memory.limit_bytes > 0 else 0
        figures: list[tuple[str, str, float]] = [
            ("connection_count", "connections that have logged in", len(clients.connected)),
            ("total_connection_count", "connections since the start", clients.connections_total),
            ("session_count", "sessions", clients.session_count()),
            ("total_session_count", "sessions since the start", clients.sessions_total),
            ("address_memory_usage", "bytes of memory that messages take", memory.used_bytes),
            ("address_memory_usage_percentage", "used part of global-max-size", percentage),
            ("active", "1 while clients are served", 0 if broker.stopping else 1),
            ("replica_sync", "1 while a replica is in step", int(self.status.ha.replica_sync)),
            ("epoch", "takeovers of the shared store or the replicated group so far", self.status.ha.epoch),
        ]
        if self.status.disk_used >= 0:
            figures.append(
                ("disk_store_usage", "used part of the data folder's disk", self.status.disk_used)
            )
        plain = "".join(
            f"{head(name, why)}artemis_{name}{label} {value}\n" for name, why, value in figures
        )
        return plain + self._replica_figures() + security_figures(
            escape(broker.config.name), clients, broker.permissions
        )

    def _replica_figures(self) -> str:
        """Returns how far each follower of a replicated group is."""
        replicas = self.status.ha.replicas
        if not replicas:
            return ""
        name = escape(self.broker.config.name)
        labels = [
            f'{{broker="{name}",replica="{escape(each.member)}",in_sync="{int(each.in_sync)}",'
            f'asynchronous="{int(each.asynchronous)}"}}'
            for each in replicas
        ]
        lines = [head("replica_lag_records", "records that a follower has not confirmed yet")]
        for label, each in zip(labels, replicas, strict=True):
            lines.append(f"artemis_replica_lag_records{label} {each.behind}\n")
        lines.append(head("replica_lag_seconds", "since when a follower has not had everything"))
        for label, each in zip(labels, replicas, strict=True):
            lines.append(f"artemis_replica_lag_seconds{label} {each.behind_s:.3f}\n")
        return "".join(lines)

    def own_figures(self) -> Iterator[str]:
        """Yields the journal's progress, the number of queues, and the counters of the trace port."""
        broker = self.broker
        label = f'{{broker="{escape(broker.config.name)}"}}'
        now = max(broker.now, self.status.started_at)
        figures: list[tuple[str, str, str, float]] = [
            ("uptime_seconds", "since the start", "gauge", (now - self.status.started_at) / 1e9),
            ("queues", "queues, internal ones too", "gauge", len(broker.queues)),
            ("addresses", "addresses", "gauge", len(broker.addresses)),
            ("stored_messages", "durable messages in memory", "gauge", len(broker.store.messages)),
            ("stored_bytes", "bytes of them", "gauge", broker.store.stored_bytes),
            ("scheduled_messages", "messages for later", "gauge", len(broker.scheduled.waiting)),
            ("journal_records_total", "records written", "counter", broker.journal.last),
            ("journal_durable_records_total", "records on disk", "counter", broker.journal.durable),
            ("management_jobs", "long operations under way", "gauge", len(self.jobs.running)),
        ]
        for name, why, kind, value in figures:
            yield f"{head(name, why, kind, 'atalanta_')}atalanta_{name}{label} {value}\n"
        for counter, count in sorted(broker.trace.counts().items()):
            name = counter_name(counter)
            text = head(name, f"events counted as {counter}", "counter", "atalanta_")
            yield f"{text}atalanta_{name}{label} {count}\n"


def tally_figures(queues: list[tuple[Queue, str]]) -> Iterator[str]:
    found: list[Tally] = []
    for _ in tally([queue for queue, _ in queues], found):
        yield ""
    for figure, why, of_tally in TALLY_FIGURES:
        yield head(figure, why)
        for start in range(0, len(queues), SLICE_LINES):
            part = zip(
                queues[start : start + SLICE_LINES],
                found[start : start + SLICE_LINES],
                strict=True,
            )
            yield "".join(
                f"artemis_{figure}{label} {of_tally(figures)}\n"
                for (queue, label), figures in part
                if not queue.deleted
            )


def security_figures(broker_name: str, clients: Clients, permissions: Permissions) -> str:
    """Returns the login and permission counters. A permission cached by a session counts once for an address."""
    lines = head("authentication_count", "logins since the start")
    for result, count in (("success", clients.logins_total), ("failure", clients.logins_refused)):
        lines += f'artemis_authentication_count{{broker="{broker_name}",result="{result}"}} {count}\n'
    lines += head("authorization_count", "permissions asked for since the start")
    answers = (("success", permissions.granted), ("failure", permissions.refused))
    for result, count in answers:
        lines += f'artemis_authorization_count{{broker="{broker_name}",result="{result}"}} {count}\n'
    return lines


def counter_name(counter: str) -> str:
    """Returns a name of the trace port in the characters that Prometheus allows."""
    plain = "".join(one if one.isascii() and one.isalnum() else "_" for one in counter)
    return f"{plain}_total"
