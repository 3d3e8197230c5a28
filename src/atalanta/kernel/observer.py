"""The observer of a broker's queues and addresses: the base class of notifications and the cluster.

kernel/sessions/clients.py extends it to clients and sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import mypyc_attr

if TYPE_CHECKING:
    from atalanta.kernel.queue.consumer import QueueConsumer
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.routing.address import Address
    from atalanta.kernel.routing.bindings import RemoteBinding
    from atalanta.kernel.security.security import Identity


@mypyc_attr(allow_interpreted_subclasses=True)
class Observer:
    """Receives changes, after each change. A subclass overrides the methods it needs."""

    def on_queue_added(self, now: int, queue: Queue) -> None:
        return None

    def on_queue_removed(self, now: int, queue: Queue) -> None:
        return None

    def on_consumer_added(self, now: int, consumer: QueueConsumer) -> None:
        return None

    def on_consumer_removed(self, now: int, consumer: QueueConsumer) -> None:
        return None

    def on_remote_consumers(self, now: int, remote: RemoteBinding) -> None:
        """The consumers of another member's queue change. `remote` may not show it before the end of this input."""
        return None

    def on_address_added(self, now: int, address: Address) -> None:
        return None

    def on_address_removed(self, now: int, address: Address) -> None:
        return None

    def on_expired(self, now: int, reference: Reference) -> None:
        """The message has expired and is still in its queue."""
        return None

    def on_delivered(self, now: int, consumer: QueueConsumer, reference: Reference) -> None:
        """Called only for queues whose `deliveries` is a list."""
        return None

    def on_permission_refused(
        self, now: int, identity: Identity, permission: str, address: str
    ) -> None:
        return None

    def on_login_refused(self, now: int, user: str, remote: str) -> None:
        return None

    def on_unattended(self, now: int, queue: Queue) -> None:
        """A message arrived or remained that no local consumer takes; called once per batch of inputs."""
        return None
