"""Messages of a queue at one node: pages of them by management, and one with its body by a browser."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from atalanta.client import ClientError, ManagementFailed, NotAuthorized, ReceivedMessage
from atalanta.console.nodes.failures import (
    MissingPermission,
    NotFound,
    error_text,
    missing_permission,
)
from atalanta.console.nodes.node import ClusterNode
from atalanta.message.encoding.buffer import DecodeError
from atalanta.message.message import TEXT

PAGE_SIZES: Final = (20, 50, 100, 200)
BODY_SHOWN_MAX: Final = 64 * 1024  # a larger body is a download
TEXT_BYTES_MAX: Final = 64 << 20
SCAN_PAGE: Final = 200
SCAN_PAGES_MAX: Final = 25  # messages with the same time that are looked through: 5,000
TYPES: Final = {0: "default", 2: "object", 3: "text", 4: "bytes", 5: "map", 6: "stream", 7: "embedded"}
# Fields of a row that are not properties of the application.
HEADERS: Final = (
    "messageID", "userID", "address", "type", "durable", "expiration", "timestamp", "priority", "redelivered",
    "largeMessage", "persistentSize", "text", "BodyPreview", "protocol",
)  # fmt: skip


@dataclass
class MessageRow:
    """A message in a list. `preview` is the beginning of its body, None where the node does not tell it."""

    id: int
    timestamp_ms: int = 0
    kind: int = 0
    durable: bool = False
    priority: int = 0
    expires_at_ms: int = 0
    user_id: str = ""
    address: str = ""
    redelivered: bool = False
    large: bool = False
    size: int | None = None
    preview: str | None = None
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return TYPES.get(self.kind, str(self.kind))

    @property
    def origin(self) -> str:
        """Returns the queue or address that the message came from, if it was moved, has expired or is a dead letter."""
        return self.properties.get("_AMQ_ORIG_QUEUE") or self.properties.get("_AMQ_ORIG_ADDRESS") or ""

    @property
    def reason(self) -> str:
        """Returns why it is a dead letter, where the node says that."""
        return self.properties.get("dlqDeliveryFailureCause", "")


@dataclass
class BrowsedPage:
    """A page of messages. `count` are those that match, None if nobody has counted. `note` tells what is missing."""

    rows: list[MessageRow]
    count: int | None
    note: str = ""


async def browse(node: ClusterNode, queue: str, page: int, size: int, selector: str) -> BrowsedPage:
    """Returns a page of messages in their order. Raises ManagementFailed."""
    resource = f"queue.{queue}"
    if selector:
        found = await node.call(resource, "countMessages", selector)
        answer = await node.call(resource, "browse", page, size, selector)
    else:
        found = await node.get(resource, "MessageCount")
        answer = await node.call(resource, "browse", page, size)
    count = found if isinstance(found, int) else None
    if isinstance(answer, list) and all(isinstance(row, dict) for row in answer):
        return BrowsedPage([read_row(row) for row in answer], count)
    # An Artemis node answers with serialized Java objects, which are read nowhere here.
    text = await node.call(resource, "listMessagesAsJSON", selector)
    rows = listed_rows(text)
    note = f"This node lists its first {len(rows):,} messages, without their bodies." if page == 1 else (
        "This node lists no more messages than those of the first pages."
    )
    start = (page - 1) * size
    return BrowsedPage(rows[start : start + size], count, note)


async def scheduled(node: ClusterNode, queue: str) -> list[MessageRow]:
    """Returns the messages that wait for their time."""
    text = await node.call(f"queue.{queue}", "listScheduledMessagesAsJSON")
    return listed_rows(text)


async def find(node: ClusterNode, queue: str, message_id: int, timestamp_ms: int) -> MessageRow:
    """Returns one message of the queue. `timestamp_ms` narrows the search. Raises NotFound."""
    selector = f"AMQTimestamp = {timestamp_ms}" if timestamp_ms > 0 else ""
    for page in range(1, SCAN_PAGES_MAX + 1):
        found = await browse(node, queue, page, SCAN_PAGE, selector)
        for row in found.rows:
            if row.id == message_id:
                return row
        if len(found.rows) < SCAN_PAGE:
            break
    raise NotFound(f"message {message_id} is not in {queue} any more, or is with a consumer")


class MessageBody:
    """The body of a message: its bytes, or why they are not shown."""

    def __init__(self) -> None:
        self.raw: bytes | None = None
        self.text: str | None = None
        self.entries: dict[str, str] | None = None  # of a map message
        self.size: int | None = None
        self.too_large = False
        self.problem = ""
        self.missing: MissingPermission | None = None


async def read_body(node: ClusterNode, queue: str, row: MessageRow) -> MessageBody:
    """Returns the body of a message that is small enough for a page. The user needs the permission to browse."""
    body = MessageBody()
    if row.large or (row.size is not None and row.size > 2 * BODY_SHOWN_MAX):
        body.too_large = True
        body.size = row.size
        return body
    try:
        connection = await node.connection()
        async with await connection.consumer(queue, _selector(row), browse=True) as browser:
            async for message in browser:
                if message.message_id == row.id:
                    _read(body, message)
                    return body
    except (NotAuthorized, ManagementFailed) as error:
        body.missing = missing_permission(error)
        body.problem = error_text(error)
        return body
    raise NotFound(f"message {row.id} is not in {queue} any more, or is with a consumer")


async def download(node: ClusterNode, queue: str, row: MessageRow) -> BinaryIO:
    """Returns an open, unnamed file with the whole body. Raises NotFound, or NotAuthorized without `browse`."""
    async with node.own_connection("largeMessagesFolder", tempfile.gettempdir()) as connection:
        async with await connection.consumer(queue, _selector(row), browse=True) as browser:
            async for message in browser:
                if message.message_id == row.id:
                    out = tempfile.TemporaryFile(prefix="atalanta-console-")
                    try:
                        _write(message, out)
                    except BaseException:
                        out.close()
                        raise
                    out.seek(0)
                    return out
    raise NotFound(f"message {row.id} is not in {queue} any more, or is with a consumer")


def _write(message: ReceivedMessage, out: BinaryIO) -> None:
    """Writes a body as it was sent: text in UTF-8, but a very long one in the encoding that it has on the wire."""
    text = message.text if message.type == TEXT and message.body_bytes <= TEXT_BYTES_MAX else None
    if text is None:
        message.write_to(out)
    else:
        out.write(text.encode("utf-8", "replace"))


def read_row(row: dict[str, object]) -> MessageRow:
    """Returns a row of `browse` or of listMessagesAsJSON. Fields of another type than expected are left out."""
    found = MessageRow(_number(row.get("messageID")))
    found.timestamp_ms = _number(row.get("timestamp"))
    found.kind = _number(row.get("type"))
    found.durable = row.get("durable") is True
    found.priority = _number(row.get("priority"))
    found.expires_at_ms = _number(row.get("expiration"))
    found.user_id = str(row.get("userID") or "")
    found.address = str(row.get("address") or "")
    found.redelivered = row.get("redelivered") is True
    found.large = row.get("largeMessage") is True
    size = row.get("persistentSize")
    found.size = size if isinstance(size, int) else None
    if isinstance(row.get("text"), str):
        found.preview = str(row["text"])
    elif isinstance(row.get("BodyPreview"), list):
        found.preview = _bytes_of(row["BodyPreview"]).decode("utf-8", "replace")
    found.properties = {name: _shown(value) for name, value in row.items() if name not in HEADERS}
    return found


def _selector(row: MessageRow) -> str | None:
    return f"AMQTimestamp = {row.timestamp_ms}" if row.timestamp_ms > 0 else None


def _read(body: MessageBody, message: ReceivedMessage) -> None:
    try:
        body.text = message.text
        # Bytes of a text are those of UTF-8, whatever its encoding on the wire.
        raw = message.body if body.text is None else body.text.encode("utf-8", "replace")
        body.size = len(raw)
        if len(raw) > BODY_SHOWN_MAX:
            body.too_large = True
            return
        body.raw = raw
        entries = message.map
    except (ClientError, DecodeError) as error:  # said to be text or a map, and is not
        body.problem = error_text(error)
        return
    if entries is not None:
        body.entries = {name: _shown(value) for name, value in entries.items()}


def listed_rows(text: object) -> list[MessageRow]:
    """Returns the messages of an answer of listMessagesAsJSON or the like."""
    return [read_row(row) for row in _json_rows(text)]


def _json_rows(text: object) -> list[dict[str, object]]:
    try:
        rows = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        rows = []
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _bytes_of(value: object) -> bytes:
    """Returns the bytes of a list of Java's signed numbers."""
    if not isinstance(value, list):
        return b""
    return bytes(each & 0xFF for each in value if isinstance(each, int))


def _shown(value: object) -> str:
    if isinstance(value, list):
        return _bytes_of(value).hex(" ")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.hex(" ")
    return "" if value is None else str(value)
