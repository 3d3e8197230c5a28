"""Bodies within a limit, also those that their senders compressed (compressLargeMessage)."""

from __future__ import annotations

from atalanta.client import ClientError, MessageTooLarge
from atalanta.client.log.log_entries import entries_of
from atalanta.client.message import inflate
from atalanta.message.message import COMPRESSED, Message, with_body
from atalanta.wire.core.packets.log_chunk import ChunkWriter, LogEntry


def inflated(entry: bytes, body_bytes_max: int) -> tuple[bytes, str, bool]:
    """Returns an entry with its body as sent, why the body is incomplete (or ""), and whether it is too large.

    A damaged body stays compressed, one that is too large is omitted. Raises DecodeError for a malformed message.
    """
    (found,) = entries_of(1, entry)
    message = found.message
    body = message.body
    if not message.has_property(COMPRESSED):
        if len(body) <= body_bytes_max:
            return entry, "", False
        why = f"the body has {len(body)} bytes, more than {body_bytes_max}"
        return encoded(found, with_body(message, b"")), why, True
    why = ""
    large = False
    try:
        body = inflate(message.body, body_bytes_max)
    except MessageTooLarge as error:
        why, large = str(error), True
        body = b""
    except ClientError as error:
        why = str(error)
    message = with_body(message, body)
    message.remove_property(COMPRESSED)
    return encoded(found, message), why, large


def encoded(found: LogEntry, message: Message) -> bytes:
    """Returns the entry with another message."""
    writer = ChunkWriter()
    writer.add(found.sequence, found.delivery_count, message)
    return writer.getvalue()
