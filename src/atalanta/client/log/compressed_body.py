"""Bodies that their senders compressed (compressLargeMessage)."""

from __future__ import annotations

from atalanta.client import ClientError, MessageTooLarge
from atalanta.client.log.log_entries import entries_of
from atalanta.client.message import inflate
from atalanta.message.message import COMPRESSED, with_body
from atalanta.wire.core.packets.log_chunk import ChunkWriter


def inflated(entry: bytes, body_bytes_max: int) -> tuple[bytes, str, bool]:
    """Returns an entry with its body as sent, why the body is incomplete (or ""), and whether it is too large.

    A damaged body stays compressed, one that is too large is omitted. Raises DecodeError for a malformed message.
    """
    (found,) = entries_of(1, entry)
    message = found.message
    if not message.has_property(COMPRESSED):
        return entry, "", False
    why = ""
    large = False
    body = message.body
    try:
        body = inflate(message.body, body_bytes_max)
    except MessageTooLarge as error:
        why, large = str(error), True
        body = b""
    except ClientError as error:
        why = str(error)
    message = with_body(message, body)
    message.remove_property(COMPRESSED)
    writer = ChunkWriter()
    writer.add(found.sequence, found.delivery_count, message)
    return writer.getvalue(), why, large
