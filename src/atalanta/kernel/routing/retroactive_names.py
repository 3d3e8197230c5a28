"""Names of the internal queues and addresses behind retroactive addresses, and the copies they keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.queue.spec import ANYCAST

if TYPE_CHECKING:
    from atalanta.kernel.queue.queue import Queue
    from atalanta.kernel.settings.broker_config import BrokerConfig


SUFFIX: Final = "retro"


# A message for a topic with retroactive-marked-only, and its copy (RetainedMessageSubscriptionRecoveryPolicy).
MARK: Final = "ActiveMQ.Retain"
KEPT_MARK: Final = "ActiveMQ.Retained"


class Retained:
    """The rings of one retroactive address."""

    def __init__(self, multicast: Queue, anycast: Queue) -> None:
        self.multicast = multicast
        self.anycast = anycast

    def ring(self, routing_type: int) -> Queue:
        return self.anycast if routing_type == ANYCAST else self.multicast


def is_resource(config: BrokerConfig, name: str) -> bool:
    """Returns True if the name belongs to an internal resource of a retroactive address (ResourceNames)."""
    return name.endswith(SUFFIX) and name.startswith(config.internal_naming_prefix)
