"""The rules of one direction of a bridge: what it forwards (NetworkBridgeConfiguration of ActiveMQ Classic)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from atalanta.kernel.routing.wildcard_addresses import AddressPattern
from atalanta.wire.openwire.conversion.destination import CLASSIC_WILDCARDS, is_queue, is_temporary

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination

REPLAY_DELAY_MS: Final = 5_000
PRIORITY_MIN: Final = -128
PRIORITY_MAX: Final = 127


class DestinationList:
    """Destinations with Classic's wildcards. `names`: (True for a queue, name)."""

    def __init__(self, names: list[tuple[bool, str]]) -> None:
        self.names = names
        self._patterns = [(queue, AddressPattern(name, CLASSIC_WILDCARDS)) for queue, name in names]

    def contains(self, queue: bool, name: str) -> bool:
        """Returns True if the destination is in the list."""
        for for_queue, pattern in self._patterns:
            if for_queue == queue and pattern.matches(name):
                return True
        return False


def nothing() -> DestinationList:
    return DestinationList([])


@dataclass(frozen=True)
class BridgeNames:
    """The names of the connector and of the brokers, and what parts the words of client ids."""

    connector: str = "NC"
    local: str = ""
    remote: str = ""
    token: str = "_"

    def local_client_id(self) -> str:
        """Returns the client id of the bridge at this broker, which the names of its durable subscriptions have."""
        return self.token.join((self.connector, self.remote, "inbound", self.local))

    def remote_client_id(self) -> str:
        """Returns the client id of the bridge at the other broker."""
        return self.token.join((self.connector, self.local, "outbound"))

    def subscription_name(self, topic: str) -> str:
        """Returns the name of the durable subscription that keeps a topic's messages for the other broker."""
        return f"NC-DS_{self.local}_{topic}"


@dataclass(frozen=True)
class BridgeRules:
    """The options of one direction.

    TTLs are in brokers, -1 any. `dynamic`: if it is not empty, only these are forwarded by demand. `replay_delay_ms`:
    how long a queue has no consumer before its messages go back to where they came from, -1 never.
    """

    names: BridgeNames = field(default_factory=BridgeNames)
    conduit: bool = True
    conduit_network_queues: bool = False
    dynamic_only: bool = False
    lower_priority: bool = True
    priority_base: int = -5
    prefetch: int = 1_000
    message_ttl: int = 1
    consumer_ttl: int = 1
    suppress_queues: bool = False
    suppress_topics: bool = True
    temporary: bool = True
    always_sync_send: bool = True
    compress: bool = False
    virtual: bool = False  # consumers behind virtual destinations of the other broker are demand for these
    replay_delay_ms: int = REPLAY_DELAY_MS
    excluded: DestinationList = field(default_factory=nothing)
    dynamic: DestinationList = field(default_factory=nothing)
    static: DestinationList = field(default_factory=nothing)

    def permits(self, destination: ActiveMQDestination) -> bool:
        """Returns True if the bridge forwards messages of the destination: excluded before static before dynamic."""
        if is_temporary(destination):
            return self.temporary
        queue = is_queue(destination)
        name = destination.physical_name or ""
        if self.excluded.contains(queue, name):
            return False
        if self.static.contains(queue, name) or not self.dynamic.names:
            return True
        return self.dynamic.contains(queue, name)

    def suppresses(self, queue: bool) -> bool:
        """Returns True if of several ways to one consumer only one is used."""
        return self.suppress_queues if queue else self.suppress_topics

    def priority(self, hops: int) -> int:
        """Returns the priority of a consumer that is `hops` brokers away: the farther, the lower."""
        if not self.lower_priority:
            return 0
        lowered = self.priority_base - (hops + 1 if hops > 1 else 0)
        return min(max(lowered, PRIORITY_MIN + 1), PRIORITY_MAX)
