"""The leases of a queue's log view (Spark): who holds the queue, and their end by an operator. Only in Atalanta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.management.request.call import Call, Operations, Parameters, number_of
from atalanta.management.request.json_text import encode_json

if TYPE_CHECKING:
    from atalanta.kernel.log.lease import ReaderLease
    from atalanta.kernel.log.log_views import LogViews
    from atalanta.kernel.queue.queue import Queue

MS_NS: Final = 1_000_000


class LeaseOperations:
    """The operations of the resource `queue.NAME` on its leases."""

    def __init__(self, log_views: LogViews) -> None:
        self.log_views = log_views
        self.operations: Operations = {
            "listLeasesAsJSON": [("", self.list_leases_as_json)],
            "endLease": [("", self.end_lease), ("l", self.end_lease)],
        }

    def list_leases_as_json(self, call: Call, given: Parameters) -> object:
        """Returns the lease of each group that has ever leased the queue; at most one is active."""
        leases = call.queue.log.leases.values()
        return encode_json([lease_details(call.queue, lease, call.now) for lease in leases])

    def end_lease(self, call: Call, given: Parameters) -> object:
        """Ends the active lease, or only that with the given epoch. Returns it as it was before."""
        epoch = number_of(given, 0) if given else -1
        active = call.queue.active_lease()
        before = None if active is None else lease_details(call.queue, active, call.now)
        self.log_views.end_lease(call.now, call.queue, operator_text(call), epoch)
        return encode_json(before)


def operator_text(call: Call) -> str:
    """Returns who makes the request, for the one that is told: `user admin from 192.0.2.7:5012`."""
    if call.session is None:
        return "the node itself"
    return f"user {call.session.identity.user or 'without a name'} from {call.session.client.remote}"


def active_lease_text(queue: Queue, now: int) -> str:
    """Returns the active lease of a queue as JSON, "" without one."""
    lease = queue.active_lease()
    return "" if lease is None else encode_json(lease_details(queue, lease, now))


def lease_details(queue: Queue, lease: ReaderLease, now: int) -> dict[str, object]:
    """Returns a lease as JSON shows it. Times in ms are lengths that end now, but `endsInMs`; -1: never.

    `unacknowledgedMax`: at most so many messages were shown to a reader and are not acknowledged: its current batch may
    have them.
    """
    shown = max(0, queue.log.shown_through - queue.log.reader_position())
    return {
        "group": lease.group,
        "owner": lease.owner,
        "epoch": lease.epoch,
        "active": lease.active,
        "ageMs": (now - lease.begun_at) // MS_NS,
        "sinceRenewalMs": (now - lease.until + lease.ttl_ns) // MS_NS if lease.active else -1,
        "endsInMs": lease.rest_ns(now) // MS_NS,
        "timeoutMs": lease.ttl_ns // MS_NS,
        "refusals": lease.refusals,
        "sinceRefusalMs": (now - lease.refused_at) // MS_NS if lease.refusals else -1,
        "unacknowledgedMax": min(queue.message_count, shown),
        "endedBy": lease.ended_by,
    }
