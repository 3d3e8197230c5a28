"""Discovery by a JGroups stack: the addresses of its discovery protocol, and messages of our own form (ATLMEET1).

The messages are not JGroups' own, and a real member logs an error for each (those it takes: wire/jgroups/). Nodes of
ours send them only where no real member can be met; else they are understood when an earlier release sends them. Files
of FILE_PING have this form, too. Every message has the channel's name: clusters that share a stack file differ in that
name only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from atalanta.message.encoding.buffer import DecodeError, Reader, Writer
from atalanta.wire.protocol_error import ProtocolError

MAGIC: Final = b"ATLMEET1"
MULTICAST: Final = "multicast"
HOSTS: Final = "hosts"
DNS: Final = "dns"
FOLDER: Final = "folder"
MPING: Final = "mping"
STACK_KINDS: Final = (MULTICAST, HOSTS, DNS, FOLDER)
CHANNEL_BYTES_MAX: Final = 1_000
MESSAGE_BYTES_MAX: Final = 65_535
ANSWERS_MAX: Final = 200
ANSWER_BYTES_MAX: Final = 1 << 20
FILE_SUFFIX: Final = ".atalanta"


@dataclass
class JgroupsStack:
    """The addresses of one discovery, of one of five kinds. Only the fields of its kind have a meaning.

    multicast: `address`, `port`, `interface`; `group_address` and its fields are those of a second group, where nodes
    of earlier releases announce themselves. mping: the group `address`, `group_port`, and the address to listen on as
    below. hosts: `hosts`, and the addresses to listen on: the first free port
    from `port` to `port + port_range` of `interface`. dns: `names` are used in place of the hosts; `srv`: the names
    have ports of their own. folder: `folder`, with a subfolder for the channel.

    `version`: the version of JGroups for the first word to real members (wire/jgroups/version.py), 0 without.
    `unmet`: why no real member is found by this stack, "" if they are; `unmet_line` is the line of the file.
    """

    kind: str
    protocol: str  # name in the stack file, for the log
    channel: str
    address: str = ""
    port: int = 0
    port_range: int = 0
    interface: str = ""
    hosts: list[tuple[str, int]] = field(default_factory=list)
    host_port_range: int = 0  # further ports to try on each of `hosts`
    names: list[str] = field(default_factory=list)
    srv: bool = False
    folder: str = ""
    group_address: str = ""
    group_port: int = 0
    group_interface: str = ""
    version: int = 0
    unmet: str = ""
    unmet_line: int = 0

    def describe(self) -> str:
        """Returns a text for logs."""
        if self.kind == MULTICAST:
            return f"group {self.address}:{self.port}"
        if self.kind == MPING:
            return f"group {self.address}:{self.group_port}"
        if self.kind == FOLDER:
            return f"folder {self.folder}"
        listed = [f"{host}:{port}" for host, port in self.hosts]
        return f"{self.kind} {' '.join(listed if self.kind == HOSTS else self.names)}"

    def targets(self, hosts: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Returns every port of a host that may listen, each once."""
        found: dict[tuple[str, int], None] = {}
        for host, port in hosts:
            for further in range(self.host_port_range + 1):
                if port + further <= 65_535:
                    found[host, port + further] = None
        return list(found)


def encode_channel_message(channel: str, announcement: bytes) -> bytes:
    """Encodes a datagram, a file's content, or a connection's first message; a client announces nothing (b"")."""
    name = channel.encode("utf-8")
    writer = Writer()
    writer.raw(MAGIC)
    writer.int16(len(name))
    writer.raw(name)
    writer.int32(len(announcement))
    writer.raw(announcement)
    return writer.getvalue()


def decode_channel_message(channel: str, data: bytes) -> bytes | None:
    """Decodes the announcement; None if it belongs to another channel. ProtocolError for any other message."""
    size = channel_message_size(data)
    if size is None or size != len(data):
        raise ProtocolError("incomplete message")
    reader = Reader(data[len(MAGIC) :])
    try:
        name = bytes(reader.take(reader.int16("channel.length"), "channel"))
        announcement = bytes(reader.take(reader.int32("announcement.length"), "announcement"))
    except DecodeError as error:
        raise ProtocolError(f"JGroups discovery: {error}") from error
    return announcement if name == channel.encode("utf-8") else None


def channel_message_size(data: bytes) -> int | None:
    """Returns the size of the message that begins `data`; None until enough bytes are there. ProtocolError."""
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise ProtocolError("not one of our nodes or clients: perhaps a JGroups member")
    at = len(MAGIC)
    if len(data) < at + 2:
        return None
    name_bytes = int.from_bytes(data[at : at + 2], "big")
    if name_bytes > CHANNEL_BYTES_MAX:
        raise ProtocolError("JGroups discovery: the name of the channel is too long")
    at += 2 + name_bytes
    if len(data) < at + 4:
        return None
    size = int.from_bytes(data[at : at + 4], "big")
    if size > MESSAGE_BYTES_MAX:
        raise ProtocolError("JGroups discovery: an announcement is too long")
    return at + 4 + size


def encode_posted(channel: str, time_ms: int, announcement: bytes) -> bytes:
    """Encodes a file's content. The content has the time, so every write changes the file."""
    writer = Writer()
    writer.int64(time_ms)
    writer.raw(announcement)
    return encode_channel_message(channel, writer.getvalue())


def decode_posted(channel: str, data: bytes) -> tuple[int, bytes] | None:
    """Returns (time in ms, announcement); None if the file belongs to another channel. ProtocolError."""
    content = decode_channel_message(channel, data)
    if content is None:
        return None
    if len(content) < 8:
        raise ProtocolError("JGroups discovery: a file without time")
    return int.from_bytes(content[:8], "big", signed=True), content[8:]


def encode_answer(announcements: list[bytes]) -> bytes:
    """Encodes a listener's answer: its own announcement, and those it received lately."""
    body = Writer()
    count = 0
    for announcement in announcements[:ANSWERS_MAX]:
        if len(body.getvalue()) + len(announcement) > ANSWER_BYTES_MAX - 100:
            break
        body.int32(len(announcement))
        body.raw(announcement)
        count += 1
    writer = Writer()
    writer.raw(MAGIC)
    writer.int32(len(body.getvalue()))
    writer.int16(count)
    writer.raw(body.getvalue())
    return writer.getvalue()


def decode_answer(data: bytes) -> list[bytes] | None:
    """Decodes the announcements; None while the answer is incomplete. ProtocolError."""
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise ProtocolError("not one of our nodes: perhaps a JGroups member")
    head = len(MAGIC) + 6
    if len(data) < head:
        return None
    size = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 4], "big")
    count = int.from_bytes(data[len(MAGIC) + 4 : head], "big")
    if size > ANSWER_BYTES_MAX or count > ANSWERS_MAX:
        raise ProtocolError("JGroups discovery: an answer is too long")
    if len(data) < head + size:
        return None
    reader = Reader(data[head : head + size])
    try:
        return [
            bytes(reader.take(reader.int32("announcement.length"), "announcement"))
            for _ in range(count)
        ]
    except DecodeError as error:
        raise ProtocolError(f"JGroups discovery: {error}") from error
