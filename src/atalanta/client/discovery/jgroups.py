"""`jgroups://channel?file=stack.xml`: Atalanta nodes found by the discovery protocol of a JGroups stack
(wire/jgroups_discovery.py).

Members of a real JGroups cluster are not found. A client announces nothing: it asks, listens or reads.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import dns.exception
import dns.rdatatype
import dns.resolver
from dns.rdtypes.IN.SRV import SRV

from atalanta.client.discovery.udp import Finder, MakeServer, UdpFinder, UdpGroup
from atalanta.files.regular import NotRegular, read_regular
from atalanta.wire.connection import ProtocolError
from atalanta.wire.core.broadcast_datagram import Announcement, decode_announcement
from atalanta.wire.jgroups_discovery import (
    ANSWER_BYTES_MAX,
    DNS,
    FILE_SUFFIX,
    FOLDER,
    MULTICAST,
    JgroupsStack,
    decode_answer,
    decode_channel_message,
    decode_posted,
    encode_channel_message,
)

PAUSE_S: Final = 0.2
CALL_S: Final = 2.0
FRESH_S: Final = 60.0  # the nodes' limit for files (cluster/discovery/jgroups_channels.py)
FILE_BYTES_MAX: Final = 1 << 17
FILES_MAX: Final = 10_000


class MulticastFinder(UdpFinder):
    """Discovery by UDP multicast: UDP, MPING."""

    def __init__(self, stack: JgroupsStack, refresh_ms: int, wait_ms: int, make: MakeServer) -> None:
        group = UdpGroup(stack.address, stack.port, stack.interface, refresh_ms, wait_ms)
        super().__init__(group, make)
        self.place = f"{stack.protocol}'s {stack.describe()}"
        self.channel = stack.channel

    def read(self, data: bytes) -> Announcement:
        announcement = decode_channel_message(self.channel, data)
        if announcement is None:
            raise ProtocolError("another channel")
        return decode_announcement(announcement)


class PolledFinder(Finder):
    """Discovery by polling, repeated until a node is found."""

    def __init__(self, stack: JgroupsStack, refresh_ms: int, wait_ms: int, make: MakeServer) -> None:
        super().__init__(f"{stack.protocol}'s {stack.describe()}", refresh_ms, wait_ms, make)
        self.stack = stack

    def listen(self, stopped: Callable[[], bool]) -> None:
        until = time.monotonic() + self.wait_s
        while not stopped():
            self.poll(until)
            left = until - time.monotonic()
            if self.entries or left <= 0:
                return
            time.sleep(min(PAUSE_S, left))

    def poll(self, until: float) -> None:
        """Polls once. Raises OSError if that fails."""
        raise NotImplementedError


class FolderFinder(PolledFinder):
    """Discovery by files: FILE_PING."""

    def poll(self, until: float) -> None:
        folder = Path(self.stack.folder) / self.stack.channel
        if not folder.is_dir():
            return
        for path in sorted(folder.glob(f"*{FILE_SUFFIX}"))[:FILES_MAX]:
            with contextlib.suppress(ProtocolError, FileNotFoundError, NotRegular):
                data = read_regular(path, FILE_BYTES_MAX)[:FILE_BYTES_MAX]
                posted = decode_posted(self.stack.channel, data)
                if posted is not None and abs(time.time() - posted[0] / 1000) <= FRESH_S:
                    self.add(decode_announcement(posted[1]))


class HostsFinder(PolledFinder):
    """Discovery by known hosts: TCPPING, DNS_PING. The first node that answers names the others."""

    def poll(self, until: float) -> None:
        hosts = resolved_names(self.stack) if self.stack.kind == DNS else self.stack.hosts
        for host, port in self.stack.targets(hosts):
            left = until - time.monotonic()
            if left <= 0 or self.entries:
                return
            # A host that fails, or is another server, does not prevent the request to the next one.
            with contextlib.suppress(OSError, ProtocolError):
                for announcement in fetch(host, port, self.stack.channel, min(left, CALL_S)):
                    self.add(decode_announcement(announcement))


def resolved_names(stack: JgroupsStack) -> list[tuple[str, int]]:
    """Returns the current addresses of DNS_PING's names. Names that do not resolve are left out."""
    found: dict[tuple[str, int], None] = {}
    for name in stack.names:
        with contextlib.suppress(OSError, dns.exception.DNSException, UnicodeError):
            if not stack.srv:
                for *_, address in socket.getaddrinfo(name, stack.port, type=socket.SOCK_STREAM):
                    found[str(address[0]), stack.port] = None
                continue
            for record in dns.resolver.resolve(name, dns.rdatatype.SRV, search=True):
                if isinstance(record, SRV) and record.port:
                    found[record.target.to_text(omit_final_dot=True), record.port] = None
    return list(found)


def fetch(host: str, port: int, channel: str, timeout_s: float) -> list[bytes]:
    """Returns the announcements that a node knows. Raises OSError or ProtocolError."""
    with socket.create_connection((host, port), timeout_s) as connection:
        connection.sendall(encode_channel_message(channel, b""))
        data = b""
        while len(data) <= ANSWER_BYTES_MAX:
            piece = connection.recv(65_536)
            if not piece:
                break
            data += piece
            answer = decode_answer(data)
            if answer is not None:
                return answer
    raise ProtocolError("no whole answer")


def finder_for(stack: JgroupsStack, refresh_ms: int, wait_ms: int, make: MakeServer) -> Finder:
    """Returns the finder for this discovery protocol."""
    if stack.kind == MULTICAST:
        return MulticastFinder(stack, refresh_ms, wait_ms, make)
    if stack.kind == FOLDER:
        return FolderFinder(stack, refresh_ms, wait_ms, make)
    return HostsFinder(stack, refresh_ms, wait_ms, make)
