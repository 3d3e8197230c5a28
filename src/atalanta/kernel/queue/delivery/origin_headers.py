"""`_AMQ_ORIG_*`: where a message that was moved or diverted comes from (Message.referenceOriginalMessage)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atalanta.message.fqqn import split_fqqn
from atalanta.message.internal_headers import ORIGIN
from atalanta.message.properties import Byte

if TYPE_CHECKING:
    from atalanta.message.message import Message


def remember_origin(copy: Message, original: Message, queue: str | None) -> None:
    """Of the last move, as in Artemis 2.44 (each move says anew where it came from).

    `queue` is the name of the queue or divert, None where no queue took the message. The address is said without the
    queue of an FQQN, so that the filters of automatic dead-letter queues find it.
    """
    properties = copy.properties
    routing_type = original.routing_type
    properties.remove(ORIGIN)  # another message for core bridges
    properties.put("_AMQ_ORIG_ADDRESS", split_fqqn(original.address)[0])
    if queue is None:
        properties.remove("_AMQ_ORIG_QUEUE")
    else:
        properties.put("_AMQ_ORIG_QUEUE", queue)
    name_origin(copy, original)
    if routing_type >= 0:
        properties.put("_AMQ_ORIG_ROUTING_TYPE", Byte(routing_type))


def name_origin(copy: Message, original: Message) -> None:
    """The id of the original: both may get theirs only when they are written."""
    copy.properties.put("_AMQ_ORIG_MESSAGE_ID", int(original.id))
