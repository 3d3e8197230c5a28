"""The message of a SEND frame. A frame without content-length is a text, one with it is bytes, as in Artemis; ActiveMQ
Classic's header `amq-msg-type` (text, bytes) decides before.

Headers of STOMP become fields of the message, under the names that JMS clients read; all others are text properties.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.message.codec import text_body
from atalanta.message.instant import later_ms
from atalanta.message.message import BYTES, COMPRESSED, LARGE_SIZE, TEXT, Message
from atalanta.message.properties import Byte, Int
from atalanta.message.repetition import (
    BROKERS_ONLY,
    CRON_OPTION,
    PERIOD_OPTION,
    REPETITION_OPTIONS,
    SCHEDULED,
    TIMES_OPTION,
    wanted_repetition,
)
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.stomp.destination import Destination
from atalanta.wire.stomp.frame import Frame

if TYPE_CHECKING:
    from atalanta.kernel.settings.scheduler import Scheduler

GROUP_ID: Final = "_AMQ_GROUP_ID"
GROUP_SEQUENCE: Final = "_AMQ_GROUP_SEQUENCE"
CONTENT_TYPE: Final = "_AMQ_CONTENT_TYPE"
ROUTING_TYPE: Final = "_AMQ_ROUTING_TYPE"
CORRELATION_ID: Final = "JMSCorrelationID"
REPLY_TO: Final = "JMSReplyTo"
TYPE: Final = "JMSType"
MESSAGE_TYPE: Final = "amq-msg-type"  # another one than text and bytes is a property only
# Headers that are text fields of the message, by the name of the property.
TEXT_HEADERS: Final = {
    "correlation-id": CORRELATION_ID,
    "type": TYPE,
    "content-type": CONTENT_TYPE,
    "JMSXGroupID": GROUP_ID,
}
SCHEDULE: Final = ("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME", *REPETITION_OPTIONS)
# Headers of the frame, those that are converted one by one, fields that have a header of STOMP, and properties of the
# broker that are no texts: no properties.
NO_PROPERTIES: Final = dict.fromkeys((
    "destination", "destination-type", "content-length", "receipt", "transaction", "persistent", "priority", "expires",
    "reply-to", "JMSXGroupSeq", CORRELATION_ID, REPLY_TO, TYPE, *SCHEDULE, *BROKERS_ONLY, GROUP_SEQUENCE, SCHEDULED,
    ROUTING_TYPE, LARGE_SIZE, COMPRESSED,
), True)  # fmt: skip
NO_PROPERTIES_IN_CLASSIC: Final = {
    **NO_PROPERTIES, **dict.fromkeys(("timestamp", "message-id", "redelivered", "subscription", "JMSXUserID"), True)
}  # fmt: skip
OWN_ID: Final = "amqMessageId"
PRIORITY: Final = 4
PRIORITY_MAX: Final = 9
INT_MAX: Final = (1 << 31) - 1


def sent_body(frame: Frame) -> tuple[int, bytes]:
    """Returns the kind and the body of the message, which its copies share. ProtocolError for a text that is none."""
    wanted = frame.headers.get(MESSAGE_TYPE, "").lower()
    if wanted == "bytes" or (frame.sized and wanted != "text"):
        return BYTES, frame.body
    return TEXT, text_body(text_of(frame))


def sent_message(
    frame: Frame,
    body: tuple[int, bytes],
    destination: Destination,
    reply_to: str | None,
    scheduler: Scheduler,
    now: int,
    classic: bool = False,
    own_id: str = "",
) -> Message:
    """Returns the message with that `sent_body`. ProtocolError.

    `reply_to` is the destination for answers, as JMS clients read it.
    If the `scheduler` is off, the headers of a schedule are texts like others. `classic`: `timestamp` is the message's,
    and headers of MESSAGE are no properties. `own_id`: its property amqMessageId, "" without one.
    """
    now_ms = now // 1_000_000
    timestamp_ms = max(frame.number("timestamp", now_ms), 0) if classic else now_ms
    no_properties = NO_PROPERTIES_IN_CLASSIC if classic else NO_PROPERTIES
    kind, data = body
    priority = min(max(frame.number("priority", PRIORITY), 0), PRIORITY_MAX)
    message = Message.create(
        destination.name, data, kind, frame.flag("persistent"), timestamp_ms, priority
    )
    message.expiration = max(frame.number("expires", 0), 0)
    properties = message.properties
    if destination.routing_type >= 0:
        properties.put(ROUTING_TYPE, Byte(destination.routing_type))
    if reply_to is not None:
        properties.put(REPLY_TO, reply_to)
    if scheduler.on:
        _schedule(message, frame, scheduler.period_ms_min, now_ms)
    if "JMSXGroupSeq" in frame.headers:
        properties.put(GROUP_SEQUENCE, Int(min(max(frame.number("JMSXGroupSeq", 0), 0), INT_MAX)))
    for name, value in frame.headers.items():
        known = TEXT_HEADERS.get(name)
        if known is not None:
            properties.put(known, value)
        elif name not in no_properties or (name in SCHEDULE and not scheduler.on):
            properties.put(name, value)
    if own_id:
        properties.put(OWN_ID, own_id)
    # Messages may wait long, and there may be many; the kernel searches no properties that it knows to be usual ones.
    message.settle()
    return message


def text_of(frame: Frame) -> str:
    """Returns the body of a text frame. ProtocolError unless it is UTF-8."""
    try:
        return frame.body.decode()
    except UnicodeDecodeError as error:
        remedy = f"{MESSAGE_TYPE}:bytes" if MESSAGE_TYPE in frame.headers else "a content-length"
        raise ProtocolError(
            f"{frame.command}: byte {error.start} of the body is not UTF-8; bytes need {remedy}"
        ) from None


def wants_schedule(frame: Frame) -> bool:
    """Returns True if the client asks for a delivery at another time than now."""
    return frame.first(SCHEDULE) is not None


def _schedule(message: Message, frame: Frame, period_ms_min: int, now_ms: int) -> None:
    """Schedules the message, once or repeatedly. ProtocolError."""
    at_ms = scheduled_ms(frame, now_ms)
    try:
        repetition = wanted_repetition(
            frame.number(PERIOD_OPTION, 0), frame.number(TIMES_OPTION, 0), frame.headers.get(CRON_OPTION, ""),
            period_ms_min,
        )  # fmt: skip
    except ValueError as error:
        raise ProtocolError(f"SEND: {error}") from None
    if repetition is not None:
        at_ms = repetition.first_ms(now_ms, at_ms - now_ms)
        if message.expiration > 0:
            message.expiration = later_ms(message.expiration, at_ms - now_ms)
        repetition.put(message, at_ms)
    elif at_ms > 0:
        message.properties.put(SCHEDULED, at_ms)


def scheduled_ms(frame: Frame, now_ms: int) -> int:
    """Returns the time of delivery in ms since the epoch; 0: at once. The delay has priority over the time."""
    delay_ms = frame.number("AMQ_SCHEDULED_DELAY", 0)
    if delay_ms > 0:
        return later_ms(now_ms, delay_ms)
    return max(frame.number("AMQ_SCHEDULED_TIME", 0), 0)
