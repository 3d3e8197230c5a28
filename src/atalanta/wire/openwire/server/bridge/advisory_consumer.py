"""The consumer with which a bridge hears of the consumers and temporary destinations of the other broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.commands.consumers import ConsumerInfo
from atalanta.wire.openwire.commands.deliveries import MessageAck
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import ConsumerId
from atalanta.wire.openwire.conversion.destination import ADVISORY_PREFIX
from atalanta.wire.openwire.encoding.modified_utf8 import encode_modified_utf8
from atalanta.wire.openwire.server.bridge.local_side import SESSION
from atalanta.wire.openwire.server.requests.acknowledgements import STANDARD

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.messages import OpenWireMessage
    from atalanta.wire.openwire.server.bridge.rules import BridgeRules

CONSUMERS: Final = f"{ADVISORY_PREFIX}Consumer."
VIRTUAL_CONSUMERS: Final = f"{ADVISORY_PREFIX}VirtualDestination.Consumer."
TEMPORARY: Final = f"{ADVISORY_PREFIX}TempQueue,{ADVISORY_PREFIX}TempTopic"
TOPICS_BYTES_MAX: Final = 16_000  # of a name that every encoding can take
NUMBER: Final = 1  # of the consumer in the bridge's session


class AdvisoryConsumer:
    """The consumer. It acknowledges its advisories when they are more than `percentage` of its prefetch.

    `unread`: its advisories that are not acknowledged.
    """

    def __init__(self, connection_id: str, prefetch: int, percentage: int) -> None:
        self.id = ConsumerId(connection_id, SESSION, NUMBER)
        self.prefetch = prefetch
        self.percentage = percentage
        self.unread: int = 0

    def info(self, chosen: str | None, rules: BridgeRules) -> ConsumerInfo:
        """Returns the command that begins it. `chosen`: the connector's destinationFilter, None without one."""
        topics = _consumer_topics(chosen, rules)
        if rules.virtual:
            virtual = f"{topics},{topics.replace(CONSUMERS, VIRTUAL_CONSUMERS)}"
            topics = virtual if _fits(virtual) else f"{CONSUMERS}>,{VIRTUAL_CONSUMERS}>"
        if rules.temporary:
            topics = f"{topics},{TEMPORARY}"
        return ConsumerInfo(
            self.id,
            destination=ActiveMQTopic(topics),
            prefetch_size=self.prefetch,
            dispatch_async=True,
            no_local=True,
        )

    def acknowledgement(self, message: OpenWireMessage) -> MessageAck | None:
        """Counts an advisory, and returns the acknowledgement of all so far if it is due."""
        self.unread += 1
        if self.unread * 100 <= self.prefetch * self.percentage:
            return None
        count, self.unread = self.unread, 0
        return MessageAck(message.destination, None, self.id, STANDARD, None, message.message_id, count)


def _consumer_topics(chosen: str | None, rules: BridgeRules) -> str:
    """Returns the topics of advisories: all, or those of the destinations that are included (getDestinationFilter).

    It is all if they are too long: the bridge takes what is included, whatever it hears.
    """
    if chosen is not None:
        parts = [each.strip() for each in chosen.split(",")]
        topics = ",".join(each if each.startswith(CONSUMERS) else CONSUMERS + each for each in parts)
    else:
        names = rules.dynamic.names
        topics = ",".join(f"{CONSUMERS}{'Queue' if queue else 'Topic'}.{name}" for queue, name in names)
    return topics if topics and _fits(topics) else f"{CONSUMERS}>"


def _fits(topics: str) -> bool:
    return len(encode_modified_utf8(topics)) <= TOPICS_BYTES_MAX
