"""The limit `maxBodyBytes` for received messages."""

from __future__ import annotations

from atalanta.client import MessageTooLarge, ReceivedMessage
from atalanta.spark.errors import body_too_large
from atalanta.spark.options import ERROR, ReadOptions


def body_error(
    message: ReceivedMessage, options: ReadOptions, queue: str, node_id: str, at_ms: int
) -> str:
    """Returns why the row has no body; "" if it has.

    Raises Undecodable for a body above the limit, unless `undecodable=error`, or the message was expired `at_ms` and so
    is no row. Raises ClientError for a damaged one.
    """
    expired = not options.include_expired and 0 < message.expires_at_ms <= at_ms
    try:
        size = len(message.body)
        why = f"the body has {size} bytes, more than {options.max_body_bytes}"
        if size <= options.max_body_bytes:
            return ""
    except MessageTooLarge as error:
        why = str(error)
    if options.undecodable != ERROR and not expired:
        raise body_too_large(message.message_id, queue, node_id, why)
    return why
