"""The durable subscriptions that a bridge has at its own broker: they keep messages while the other one is away.

Their names follow from what the other broker says of itself. So they belong to the user who made them: a bridge takes
up only those of its own user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.errors import SECURITY, BrokerError
from atalanta.kernel.queue.changes import QueueChanges
from atalanta.wire.openwire.server.advisories.subscription_name import durable_name

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.registry.queues import QueueRegistry
    from atalanta.kernel.security.security import Identity, Security

# The user of such queues in folders of earlier builds, which did not say whose they are. Who may consume takes them up.
EARLIER_USERS: Final = ("", "network bridge")


class KeptSubscriptions:
    """The subscriptions of the client id of a bridge, for the user that it runs as."""

    def __init__(self, queues: QueueRegistry, security: Security, client_id: str, identity: Identity) -> None:
        self.queues = queues
        self.security = security
        self.client_id = client_id
        self.identity = identity

    def queue_of(self, name: str) -> Queue | None:
        """Returns the queue of the subscription of that name, None without one."""
        return self.queues.by_name.get(durable_name(self.client_id, name))

    def beginning(self, name: str) -> list[Queue]:
        """Returns the queues of the subscriptions whose names begin so."""
        prefix = durable_name(self.client_id, name)
        return [queue for queue in self.queues.by_name.values() if queue.name.startswith(prefix)]

    def check(self, queue: Queue) -> None:
        """Raises BrokerError SECURITY unless the bridge's user may take up the subscription."""
        identity, owner = self.identity, queue.spec.user or ""
        if identity.cluster or not self.security.enabled or owner == identity.user or owner in EARLIER_USERS:
            return
        raise BrokerError(
            SECURITY,
            f"durable subscription {queue.name} belongs to user '{owner}', and the bridge has logged in as "
            f"'{identity.user}': let it log in as before, or delete the queue",
        )

    def take(self, now: int, queue: Queue) -> None:
        """Records that the subscription is the bridge's user's now, also over a restart."""
        user = self.identity.user
        if self.security.enabled and queue.spec.user != user:
            changes = QueueChanges()
            changes.user = user
            self.queues.update(now, queue.name, changes)
