"""Messages of operators that name their queues: an import puts each message into exactly the queue that it was in.

The header is that of members, `_AMQ_ROUTE_TO`, as XmlDataImporter of Artemis sends it: the message goes to its
address, which is what clients see, and into the queues with these ids. Anybody may send it to an Artemis. Here the user
needs the right to manage, by which messages can be moved to any queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.errors import QUEUE_DOES_NOT_EXIST, BrokerError
from atalanta.kernel.registry.duplicate_caches import BRIDGE_DUPLICATE
from atalanta.kernel.registry.duplicate_spaces import IMPORT
from atalanta.kernel.security.security import MANAGE
from atalanta.message.internal_headers import disclaim
from atalanta.message.message import ROUTE_TO, Message

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.security.permissions import Permissions
    from atalanta.kernel.security.security import Identity


def disclaim_unless_manager(
    permissions: Permissions,
    identity: Identity,
    management: str,
    queues_by_id: dict[int, Queue],
    message: Message,
) -> None:
    """Removes the headers of members from a client's message; who may manage keeps the queues that it names.

    A message with the id of a bridge is no import: its ids are those of another node.
    `management`: the management address. BrokerError QUEUE_DOES_NOT_EXIST for an id that is no queue of applications.
    """
    ids = message.property_value(ROUTE_TO)
    bridge_id = message.property_value(BRIDGE_DUPLICATE)
    bridged = isinstance(bridge_id, bytes) and not bridge_id.startswith(IMPORT)
    disclaim(message)
    if bridged or not isinstance(ids, bytes) or not permissions.allows(identity, MANAGE, management):
        return
    for start in range(0, len(ids), 8):
        queue_id = int.from_bytes(ids[start : start + 8], "big", signed=True)
        queue = queues_by_id.get(queue_id)
        if queue is None or queue.spec.internal or len(ids) % 8 != 0:
            raise BrokerError(
                QUEUE_DOES_NOT_EXIST,
                f"AMQ229017: Queue {queue_id} does not exist, which the message to {message.address} names",
            )
    message.put_property(ROUTE_TO, ids)
