"""Headers `_AMQ_ORIG_*`: the origin of a message that was moved or diverted (Message.referenceOriginalMessage)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.fqqn import split_fqqn
from atalanta.message.internal_headers import ORIGIN
from atalanta.message.properties import Byte

if TYPE_CHECKING:
    from atalanta.message.message import Message

# Atalanta's own: why a reader of the log view had the message moved (kernel/log/log_dead_letters.py).
REASON: Final = "_AMQ_ORIG_REASON"


def remember_origin(copy: Message, original: Message, queue: str | None) -> None:
    """Sets the headers of the latest move, as Artemis 2.44 does (each move replaces them).

    `queue` is the name of the queue or divert; None if no queue took the message. The address is written without the
    queue of an FQQN, so that the filters of automatic dead-letter queues match it.
    """
    properties = copy.properties
    routing_type = original.routing_type
    properties.remove(REASON)
    properties.remove(ORIGIN)  # the copy is another message to core bridges
    properties.put("_AMQ_ORIG_ADDRESS", split_fqqn(original.address)[0])
    if queue is None:
        properties.remove("_AMQ_ORIG_QUEUE")
    else:
        properties.put("_AMQ_ORIG_QUEUE", queue)
    name_origin(copy, original)
    if routing_type >= 0:
        properties.put("_AMQ_ORIG_ROUTING_TYPE", Byte(routing_type))


def name_origin(copy: Message, original: Message) -> None:
    """Sets the id of the original. Called when the message is written, since both may get their ids only then."""
    copy.properties.put("_AMQ_ORIG_MESSAGE_ID", int(original.id))
