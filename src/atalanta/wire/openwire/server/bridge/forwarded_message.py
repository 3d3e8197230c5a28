"""The message that a bridge sends to the other broker (DemandForwardingBridgeSupport.configureMessage of Classic)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.wire.openwire.bodies import compressed
from atalanta.wire.openwire.broker_path import longer_path
from atalanta.wire.openwire.commands import codes
from atalanta.wire.openwire.commands.messages import (
    ActiveMQBytesMessage,
    ActiveMQMapMessage,
    ActiveMQMessage,
    ActiveMQObjectMessage,
    ActiveMQStreamMessage,
    ActiveMQTextMessage,
)

if TYPE_CHECKING:
    from atalanta.wire.openwire.commands.destinations import ActiveMQDestination
    from atalanta.wire.openwire.commands.identifiers import BrokerId, ProducerId
    from atalanta.wire.openwire.commands.messages import OpenWireMessage

CLASSES: Final[dict[int, type[ActiveMQMessage]]] = {
    codes.MESSAGE: ActiveMQMessage,
    codes.BYTES_MESSAGE: ActiveMQBytesMessage,
    codes.MAP_MESSAGE: ActiveMQMapMessage,
    codes.OBJECT_MESSAGE: ActiveMQObjectMessage,
    codes.STREAM_MESSAGE: ActiveMQStreamMessage,
    codes.TEXT_MESSAGE: ActiveMQTextMessage,
}


def forwarded_message(
    source: OpenWireMessage, destination: ActiveMQDestination | None, own: BrokerId, producer_id: ProducerId,
    compress: bool, command_id: int, answered: bool,
) -> ActiveMQMessage:  # fmt: skip
    """Returns the message with this broker in its path. Its id stays, so that the other broker knows a repeat."""
    content = source.content
    code = source.code()
    squeezed = compress and not source.compressed and content is not None and len(content) > 0
    if squeezed and content is not None:
        content = compressed(code, content)
    return CLASSES[code](
        producer_id=producer_id,
        destination=destination,
        original_destination=source.original_destination,
        message_id=source.message_id,
        group_id=source.group_id,
        group_sequence=source.group_sequence,
        correlation_id=source.correlation_id,
        persistent=source.persistent,
        expiration=source.expiration,
        priority=source.priority,
        reply_to=source.reply_to,
        timestamp=source.timestamp,
        jms_type=source.jms_type,
        content=content,
        marshalled_properties=source.marshalled_properties,
        compressed=source.compressed or squeezed,
        redelivery_counter=source.redelivery_counter,
        user_id=source.user_id,
        broker_path=longer_path(source.broker_path, own),
        received_by_bridge=True,
        command_id=command_id,
        response_required=answered,
    )
