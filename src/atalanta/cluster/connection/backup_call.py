"""The calls of members about hosted backups, in the bodies of QUORUM_VOTE and QUORUM_VOTE_REPLY.

The handler is ours, and only a member that has proven the cluster password gets a call. A real Artemis never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer

ASK: Final = 0  # how many backups do you host?
REQUEST: Final = 1  # host mine
RELEASE: Final = 2  # end mine: another member hosts it
OPERATIONS: Final = (ASK, REQUEST, RELEASE)
PORT_MAX: Final = 65_535


@dataclass(frozen=True)
class BackupCall:
    """A call of the primary `node_id`, which listens at host:port. The folders are those of a shared store, else ""."""

    operation: int
    node_id: str
    form: str
    group: str
    host: str
    port: int
    journal: str = ""
    paging: str = ""
    large_messages: str = ""

    def encode(self) -> bytes:
        """Returns the body of the packet."""
        writer = Writer()
        writer.int8(self.operation)
        writer.int32(self.port)
        for text in (
            self.node_id, self.form, self.group, self.host, self.journal, self.paging, self.large_messages,
        ):  # fmt: skip
            writer.simple_string(text)
        return writer.getvalue()


@dataclass(frozen=True)
class BackupAnswer:
    """The answer: the number of backups that the member hosts, and whether it has room for another one.

    To a REQUEST: `why` it hosts none, "" if it does; the backup will listen at host:port.
    """

    operation: int
    count: int
    room: bool
    why: str = ""
    host: str = ""
    port: int = 0

    def encode(self) -> bytes:
        """Returns the body of the packet."""
        writer = Writer()
        writer.int8(self.operation)
        writer.int32(self.count)
        writer.boolean(self.room)
        writer.simple_string(self.why)
        writer.simple_string(self.host)
        writer.int32(self.port)
        return writer.getvalue()


def decode_call(body: bytes) -> BackupCall:
    """Returns the call; DecodeError."""
    reader = Reader(body)
    operation = _operation(reader)
    port = _port(reader)
    names = ("node id", "form", "group", "host", "journal", "paging", "large messages")
    node_id, form, group, host, journal, paging, large = [reader.simple_string(name) for name in names]
    return BackupCall(operation, node_id, form, group, host, port, journal, paging, large)


def decode_answer(body: bytes) -> BackupAnswer:
    """Returns the answer; DecodeError."""
    reader = Reader(body)
    operation = _operation(reader)
    count = reader.int32("count")
    room = reader.boolean("room")
    why = reader.simple_string("why")
    host = reader.simple_string("host")
    return BackupAnswer(operation, count, room, why, host, _port(reader))


def _operation(reader: Reader) -> int:
    operation = reader.int8("operation")
    if operation not in OPERATIONS:
        raise DecodeError("operation", 0, f"{operation} is none of {OPERATIONS}")
    return operation


def _port(reader: Reader) -> int:
    port = reader.int32("port")
    if not 0 <= port <= PORT_MAX:
        raise DecodeError("port", 0, f"{port} is no port")
    return port
