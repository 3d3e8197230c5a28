"""Demand of queues whose consumers are at other members of a CORE cluster: one network consumer for each queue.

A bridge of another broker that goes to several members gets no message twice, as a message of a queue goes one way.
Topics are left out: there each member tells of its own consumers only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.routing.bindings import NODE_ID_CHARACTERS
from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.message.internal_headers import BROKER_PATH
from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.commands.identifiers import BrokerId, ConsumerId
from atalanta.wire.openwire.server.advisories.described_consumer import (
    COMPOSITE,
    ELSEWHERE,
    HIDDEN,
    PREFETCH,
)
from atalanta.wire.openwire.server.advisories.endpoints import NO_CONNECTION

if TYPE_CHECKING:
    from atalanta.kernel.ports import Timers
    from atalanta.kernel.registry.addresses import AddressRegistry
    from atalanta.kernel.routing.bindings import RemoteBinding
    from atalanta.wire.openwire.server.advisories.endpoints import EndpointAdvisories

ELSEWHERE_TIMER: Final = "wire.openwire.elsewhere"


class ConsumersElsewhere(ClientObserver):
    """The queues with consumers at other members. `changed`: those to look at behind the input that changes them."""

    def __init__(
        self, advisories: EndpointAdvisories, node_id: str, timers: Timers, addresses: AddressRegistry
    ) -> None:
        self.advisories = advisories
        self.node_id = node_id
        self.timers = timers
        self.addresses = addresses
        self.changed: dict[str, bool] = {}
        self.told: dict[str, ConsumerId] = {}
        self.last: int = 0

    def on_remote_consumers(self, now: int, remote: RemoteBinding) -> None:
        name = remote.address
        if remote.routing_name == name and not name.startswith(HIDDEN) and COMPOSITE not in name:
            self.changed[name] = True
            self.timers.set(ELSEWHERE_TIMER, 0)

    def on_timer(self, now: int) -> None:
        """Tells what has changed."""
        names = list(self.changed)
        self.changed = {}
        for name in names:
            try:
                self._tell(name)
            except Exception as error:  # what others have caused, in a timer
                self.advisories.watchers.leave_out("advisories by ConsumersElsewhere", error)

    def _tell(self, name: str) -> None:
        owner = self._owner(name)
        known = self.told.pop(name, None)
        if not owner:
            if known is not None:
                self.advisories.remove(NO_CONNECTION, known)
            return
        if known is None:
            self.last += 1
            known = ConsumerId(f"ID:{self.node_id}", ELSEWHERE, self.last)
            self.advisories.add(NO_CONNECTION, known, _info(known, name, owner), ActiveMQQueue(name))
        self.told[name] = known

    def _owner(self, name: str) -> str:
        """Returns the id of a member where a client consumes the queue, "" without one."""
        address = self.addresses.by_name.get(name)
        group = None if address is None else address.groups.get(name)
        if group is not None:
            for remote in group.remotes:
                if clients_of(remote) > 0:
                    return remote.cluster_name[-NODE_ID_CHARACTERS:]
        return ""


def clients_of(remote: RemoteBinding) -> int:
    """Returns the number of consumers without those of bridges, whose selectors ask for the path of a message."""
    count = remote.consumer_count
    for text, (_, same) in remote.selectors.items():
        if BROKER_PATH in text:
            count -= same
    return count


def _info(consumer_id: ConsumerId, name: str, owner: str) -> ConsumerInfo:
    return ConsumerInfo(
        consumer_id,
        destination=ActiveMQQueue(name),
        prefetch_size=PREFETCH,
        broker_path=[BrokerId(owner)],
        network_subscription=True,
        network_consumer_path=[consumer_id],
    )
