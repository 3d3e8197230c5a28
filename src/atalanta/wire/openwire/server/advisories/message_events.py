"""Advisories about messages that have expired, and about slow consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.kernel.sessions.clients import ClientObserver
from atalanta.wire.openwire.conversion.delivered_message import delivered_message, message_id_of
from atalanta.wire.openwire.conversion.message_id import Correlations, IdTexts, id_text
from atalanta.wire.openwire.server.advisories.described_consumer import (
    HIDDEN,
    consumer_info,
    destination_of,
)
from atalanta.wire.openwire.server.advisories.endpoints import NO_CONNECTION, topic_of

if TYPE_CHECKING:
    from atalanta.kernel.queue.reference import Reference
    from atalanta.kernel.routing.wildcard import WildcardConfiguration
    from atalanta.kernel.sessions.session_consumer import SessionConsumer
    from atalanta.wire.openwire.server.advisories.watchers import Watchers

EXPIRED: Final = "Expired"
SLOW: Final = "SlowConsumer"
NO_CONNECTIONS: Final = Correlations()  # a correlation id is shown as it is
MESSAGE_ID: Final = "orignalMessageId"  # as AdvisorySupport of Classic spells it


class MessageEvents(ClientObserver):
    """Reports what happens to messages. `temporary` as in `delivered_message`."""

    def __init__(
        self, watchers: Watchers, node_id: str, wildcard: WildcardConfiguration, temporary: dict[str, int]
    ) -> None:
        self.watchers = watchers
        self.node_id = node_id
        self.wildcard = wildcard
        self.temporary = temporary

    def on_expired(self, now: int, reference: Reference) -> None:
        message, spec = reference.message, reference.queue.spec
        if not self.watchers.by_id or message.large is not None or spec.internal or spec.address.startswith(HIDDEN):
            return
        destination = destination_of(spec, self.wildcard)
        topic = topic_of(EXPIRED, destination)
        if not self.watchers.has_watcher(topic):
            return
        try:
            message_id = message_id_of(message, self.node_id, 0, IdTexts())
            shown = delivered_message(message, message.body, destination, message_id, 0, self.temporary, NO_CONNECTIONS)
        except Exception as error:  # nothing was changed, whatever it is
            self.watchers.leave_out(f"{EXPIRED} advisory", error)
            return  # it cannot be shown to any OpenWire client
        self.watchers.publish(NO_CONNECTION, topic, shown, {MESSAGE_ID: id_text(message_id)})

    def on_consumer_slow(self, now: int, consumer: SessionConsumer) -> None:
        info = consumer_info(consumer, self.node_id, self.wildcard)
        if info.destination is not None:
            topic = topic_of(SLOW, info.destination)
            self.watchers.publish(NO_CONNECTION, topic, info, {"consumerId": str(info.consumer_id)})
