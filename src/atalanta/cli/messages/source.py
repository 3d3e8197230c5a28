"""The messages that `atalanta produce` sends: created from a text or a size, or read line by line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from atalanta.cli.messages.json_lines import QUEUE, is_definition, message_of
from atalanta.cli.output.outcome import USAGE, Refused
from atalanta.client import Message, Property
from atalanta.client.message import SCHEDULED, now_ms

BATCH: Final = 100
READ_BYTES: Final = 1 << 16
LINE_BYTES_MAX: Final = 256 << 20
PATTERN: Final = bytes(range(251))


@dataclass
class Template:
    """The common parts of all messages, and the source of their bodies."""

    properties: dict[str, Property] = field(default_factory=dict)
    priority: int = 4
    ttl_ms: int = 0
    delay_ms: int = 0
    durable: bool = True
    duplicate_prefix: str | None = None
    group_id: str | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    count: int | None = None
    text: str | None = None
    data: bytes | None = None
    file: Path | None = None
    json_lines: bool = False
    body_file: Path | None = None

    def body(
        self,
        count: int | None,
        size: int | None,
        text: str | None,
        file: Path | None,
        json_lines: bool,
        body_file: Path | None = None,
    ) -> None:
        """Sets the source of the bodies. Refused (2) for options that do not fit together."""
        given = [
            name
            for name, value in (
                ("--size", size),
                ("--text", text),
                ("--file", file),
                ("--body-file", body_file),
            )
            if value is not None
        ]
        if len(given) > 1:
            raise Refused(f"{' and '.join(given)} cannot be given together", USAGE)
        if self.ttl_ms and self.ttl_ms <= self.delay_ms:
            raise Refused("--ttl ends before --delay: both begin with the send", USAGE)
        if json_lines and file is None:
            raise Refused("--json-lines needs --file", USAGE)
        if body_file == Path("-") and count is not None and count > 1:
            raise Refused("--body-file - can be sent once only: stdin cannot be read again", USAGE)
        self.text, self.file, self.json_lines = text, file, json_lines
        self.body_file = body_file
        self.data = None if size is None else (PATTERN * (size // len(PATTERN) + 1))[:size]
        self.count = 1 if count is None and file is None else count

    def message(self, number: int, line: str | None = None, place: str = "") -> Message:
        """Returns message `number`, beginning with 1. Refused (65) for an invalid line of JSON."""
        properties = self.properties
        if self.delay_ms:
            properties = {**properties, SCHEDULED: now_ms() + self.delay_ms}
        if line is not None and self.json_lines:
            message = message_of(line, place)
            message.properties = {**(message.properties or {}), **properties}
        else:
            text = line if line is not None else self.text
            stream = None
            if self.body_file is not None:
                stream = opened(self.body_file)
            elif text is None and self.data is None:
                text = f"test message {number}"
            message = Message(
                self.data if text is None else None,
                text=text,
                stream=stream,
                properties=properties,
                durable=self.durable,
                priority=self.priority,
                group_id=self.group_id,
                correlation_id=self.correlation_id,
                reply_to=self.reply_to,
            )
        if self.ttl_ms:
            message.expires_at_ms = now_ms() + self.ttl_ms
        if self.duplicate_prefix is not None:
            message.duplicate_id = f"{self.duplicate_prefix}-{number}"
        return message

    async def batches(self) -> AsyncIterator[list[Message]]:
        """Iterates over all messages in batches; input from a terminal or pipe is passed on at once."""
        if self.file is None:
            last = self.count or 0
            batch_size = BATCH if self.body_file is None else 1  # each has an open file
            for first in range(1, last + 1, batch_size):
                yield [self.message(n) for n in range(first, min(first + batch_size, last + 1))]
            return
        number = queues = 0
        name = "stdin" if self.file == Path("-") else str(self.file)
        async for lines in read_lines(self.file, name):
            for at in range(0, len(lines), BATCH):
                batch: list[Message] = []
                for line in lines[at : at + BATCH]:
                    if self.count is not None and number >= self.count:
                        break
                    if self.json_lines and is_definition(line):
                        queues += line.startswith(f'{{"{QUEUE}":')
                        if queues > 1:
                            raise Refused(
                                f"{name}: an export of several queues, and all would be sent to one: `atalanta data "
                                "import` sends each message to its queue, `data export --queue` writes one queue",
                                USAGE,
                            )
                        continue
                    number += 1
                    batch.append(self.message(number, line, f"{name}:{number}"))
                if batch:
                    yield batch
            if self.count is not None and number >= self.count:
                return


def opened(path: Path) -> BinaryIO:
    """Opens a file for reading, stdin for "-". OSError."""
    if path == Path("-"):
        return sys.stdin.buffer
    return path.open("rb")


async def read_lines(path: Path, name: str) -> AsyncIterator[list[str]]:
    """Iterates over complete lines in UTF-8, without line ends. Refused (65) for invalid UTF-8; OSError."""
    loop = asyncio.get_running_loop()
    number = 0
    with nullcontext(sys.stdin.buffer) if path == Path("-") else path.open("rb") as file:
        rest = b""
        while True:
            # In a thread: a pipe may be silent for long, and pings must continue.
            data = await loop.run_in_executor(None, read_some, file)
            *lines, rest = (rest + data).split(b"\n") if data else (rest, b"") if rest else (b"",)
            if len(rest) > LINE_BYTES_MAX:
                raise Refused(
                    f"{name}:{number + 1}: a line of more than {LINE_BYTES_MAX} bytes", 65
                )
            found: list[str] = []
            for line in lines:
                number += 1
                try:
                    found.append(line.decode("utf-8").removesuffix("\r"))
                except UnicodeDecodeError as error:
                    raise Refused(f"{name}:{number}: not UTF-8: {error}", 65) from None
            if found:
                yield found
            if not data:
                return


def read_some(file: BinaryIO) -> bytes:
    """Reads the available bytes, at least one; empty at the end."""
    read1 = getattr(file, "read1", None)
    data = file.read(READ_BYTES) if read1 is None else read1(READ_BYTES)
    return bytes(data)
