"""The demand behind one consumer of a bridge at its own broker (DemandSubscription of ActiveMQ Classic)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.kernel.routing.wildcard_addresses import AddressPattern
from atalanta.wire.openwire.conversion.destination import CLASSIC_WILDCARDS

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.consumers import ConsumerInfo
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import ConsumerId


class Demand:
    """The demand for one destination. `info` is the consumer at the bridge's own broker, `id` and `destination` its.

    `remote`: the consumers at the other broker. `subscriptions`: the durable ones among them, by client id and name.
    `ways`: the ids of the consumers on the way to the application. `permanent`: it needs no consumers. `network`: a
    bridge of the other broker has made it. `sent`: messages that are not answered. `ending`: no more are sent.
    `refused`: the broker does not serve it.
    """

    def __init__(
        self, info: ConsumerInfo, consumer_id: ConsumerId, destination: ActiveMQDestination, network: bool,
        permanent: bool = False,
    ) -> None:  # fmt: skip
        self.info = info
        self.id = consumer_id
        self.destination = destination
        self.network = network
        self.permanent = permanent
        self.durable: bool = info.subscription_name is not None
        self.remote: dict[ConsumerId, bool] = {}
        self.subscriptions: dict[tuple[str, str], bool] = {}
        self.ways: list[ConsumerId] = list(info.network_consumer_path or [])
        self.suppressible: bool = False
        self.returning: bool = False
        self.refused: bool = False
        self.opened: bool = False
        self.ending: bool = False
        self.sent: int = 0
        self._pattern = AddressPattern(destination.physical_name or "", CLASSIC_WILDCARDS)

    def covers(self, destination: ActiveMQDestination) -> bool:
        """Returns True if the consumer gets the messages of that destination."""
        if destination.code() != self.destination.code():
            return False
        return destination == self.destination or self._pattern.matches(destination.physical_name or "")

    def join(self, consumer_id: ConsumerId, subscription: tuple[str, str] | None) -> None:
        """Adds a consumer at the other broker."""
        self.remote[consumer_id] = True
        if subscription is not None:
            self.subscriptions[subscription] = True

    def take_over(self, other: Demand) -> None:
        """Adds the consumers of another demand."""
        self.remote.update(other.remote)

    def leave(self, consumer_id: ConsumerId) -> bool:
        """Removes a consumer at the other broker; returns True if it was there."""
        return self.remote.pop(consumer_id, None) is not None

    def end_subscription(self, subscription: tuple[str, str]) -> bool:
        """Removes a durable subscription; returns True if it was there."""
        return self.subscriptions.pop(subscription, None) is not None

    def is_needed(self, durables_stay: bool) -> bool:
        """Returns True while it has a reason. `durables_stay`: durable subscriptions without a consumer are one."""
        return self.permanent or len(self.remote) > 0 or (durables_stay and len(self.subscriptions) > 0)

    # -- state ----------------------------------------------------------------------------------
    def open(self) -> None:
        """Records that its consumer exists."""
        self.refused = False
        self.opened = True
        self.ending = False

    def close(self) -> None:
        """Records that its consumer has ended."""
        self.opened = False
        self.ending = False
        self.sent = 0

    def count_sent(self) -> None:
        self.sent += 1

    def count_answered(self) -> None:
        self.sent -= 1
