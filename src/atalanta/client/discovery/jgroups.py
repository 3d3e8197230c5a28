"""`jgroups://channel?file=stack.xml`: nodes found by the discovery protocol of a JGroups stack.

Real nodes are found by UDP only: over TCP they send to members of their cluster, and a client is none. A client
announces nothing: it greets, listens or reads.
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
from atalanta.wire.core.broadcast_datagram import Announcement, decode_announcement
from atalanta.wire.jgroups.bundle import decode_datagram
from atalanta.wire.jgroups.connection_start import MemberFrames, encode_greeting
from atalanta.wire.jgroups.member_request import decode_member_request
from atalanta.wire.jgroups.version import to_try
from atalanta.wire.jgroups_discovery import (
    DNS,
    FILE_SUFFIX,
    FOLDER,
    MAGIC,
    MPING,
    MULTICAST,
    JgroupsStack,
    decode_channel_message,
    decode_posted,
)
from atalanta.wire.protocol_error import ProtocolError

PAUSE_S: Final = 0.2
CALL_S: Final = 2.0
FIRST_PAUSE_S: Final = 10.0
LONGEST_PAUSE_S: Final = 3_600.0
USE_TCP: Final = "Use tcp:// with the addresses of the nodes"
FRESH_S: Final = 60.0  # the nodes' limit for files (cluster/discovery/jgroups_channels.py)
FILE_BYTES_MAX: Final = 1 << 17
FILES_MAX: Final = 10_000

Place = tuple[str, int]


class MulticastFinder(UdpFinder):
    """Discovery by a UDP multicast group: nodes of ours and real ones."""

    def __init__(self, stack: JgroupsStack, refresh_ms: int, wait_ms: int, make: MakeServer) -> None:
        group = UdpGroup(stack.address, stack.port, stack.interface, refresh_ms, wait_ms)
        super().__init__(group, make)
        self.place = f"{stack.protocol}'s {stack.describe()}"
        self.stack = stack

    def hint(self) -> str:
        return f"; {self.stack.unmet}. {USE_TCP}" if self.stack.unmet else ""

    def read(self, data: bytes) -> Announcement:
        channel = self.stack.channel
        if data[: len(MAGIC)] == MAGIC:
            announcement = decode_channel_message(channel, data)
        else:
            payloads = [payload for payload in decode_datagram(channel, data).payloads if payload]
            announcement = payloads[-1] if payloads else None
        if announcement is None:
            raise ProtocolError("another channel, or no announcement")
        return decode_announcement(announcement)


class Visits:
    """The hosts that a client greets. One that answers nothing, or refuses the greeting, is let alone for a while: a
    member of JGroups logs each refusal."""

    def __init__(self, stack: JgroupsStack) -> None:
        self._stack = stack
        self._due: dict[Place, tuple[float, int]] = {}  # time, how often it refused
        self.silent: dict[Place, None] = {}
        self.refused: dict[Place, None] = {}

    def announcements(self, place: Place, timeout_s: float) -> list[Announcement]:
        """Returns what a node of ours knows, nothing from any other host. OSError without a connection."""
        due_s, refusals = self._due.get(place, (0.0, 0))
        if time.monotonic() < due_s:
            return []
        tried = to_try(self._stack.version, [])
        try:
            found = fetch(place, self._stack.channel, tried[refusals % len(tried)], timeout_s)
            announced = [decode_announcement(data) for data in found or [] if data]
        except ProtocolError:
            found, announced = [], []
        if found is None:
            self.silent[place] = None
            self._due[place] = (time.monotonic() + FIRST_PAUSE_S, 0)
        elif not announced:
            self.refused[place] = None
            pause_s = min(FIRST_PAUSE_S * 2 ** min(refusals, 10), LONGEST_PAUSE_S)
            self._due[place] = (time.monotonic() + pause_s, refusals + 1)
        else:
            self._due.pop(place, None)
            self.silent.pop(place, None)
            self.refused.pop(place, None)
        return announced

    def hint(self) -> str:
        """Returns what to do if no node was found, for an error."""
        if self._stack.unmet:
            return f"; {self._stack.unmet}. {USE_TCP}"
        if self.silent:
            host, port = next(iter(self.silent))
            return f"; {host}:{port} is a member of JGroups: over TCP no real member is found by a client. {USE_TCP}"
        if self.refused:
            host, port = next(iter(self.refused))
            return (
                f"; {host}:{port} refuses this client: it has another version of JGroups (option jgroupsVersion), or"
                f" another protocol. {USE_TCP}"
            )
        return ""


class MpingFinder(MulticastFinder):
    """Discovery by the group of MPING: nodes of ours ask there, with the address at which they answer."""

    def __init__(self, stack: JgroupsStack, refresh_ms: int, wait_ms: int, make: MakeServer) -> None:
        super().__init__(stack, refresh_ms, wait_ms, make)
        self.group = UdpGroup(stack.address, stack.group_port, stack.group_interface, refresh_ms, wait_ms)
        self.visits = Visits(stack)

    def hint(self) -> str:
        return self.visits.hint() or f"; over TCP no real member is found by a client. {USE_TCP}"

    def receive(self, data: bytes) -> None:
        if data[: len(MAGIC)] == MAGIC:
            super().receive(data)
            return
        asked = decode_member_request(self.stack.channel, data)
        if asked is not None and asked[1] is not None:
            with contextlib.suppress(OSError):
                for announcement in self.visits.announcements(asked[1], CALL_S):
                    self.add(announcement)


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

    def hint(self) -> str:
        if self.stack.unmet:
            return f"; {self.stack.unmet}. {USE_TCP}"
        return f"; over TCP no real member is found by a client. {USE_TCP}"

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

    def __init__(self, stack: JgroupsStack, refresh_ms: int, wait_ms: int, make: MakeServer) -> None:
        super().__init__(stack, refresh_ms, wait_ms, make)
        self.visits = Visits(stack)

    def hint(self) -> str:
        return self.visits.hint()

    def poll(self, until: float) -> None:
        hosts = resolved_names(self.stack) if self.stack.kind == DNS else self.stack.hosts
        for host, port in self.stack.targets(hosts):
            left = until - time.monotonic()
            if left <= 0 or self.entries:
                return
            # A host that fails, or is another server, does not prevent the request to the next one.
            with contextlib.suppress(OSError):
                for announcement in self.visits.announcements((host, port), min(left, CALL_S)):
                    self.add(announcement)


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


def fetch(place: Place, channel: str, version: int, timeout_s: float) -> list[bytes] | None:
    """Greets a host. Returns the announcements that a node of ours knows; None if it takes the greeting and says
    nothing, as a member of JGroups does. OSError without a connection, ProtocolError for one that closes it, or says
    anything else."""
    until = time.monotonic() + timeout_s
    with socket.create_connection(place, timeout_s) as connection:
        host, port = connection.getsockname()[:2]
        connection.sendall(encode_greeting(version, (host, port)))
        frames = MemberFrames()
        with contextlib.suppress(TimeoutError):
            while (left := until - time.monotonic()) > 0:
                connection.settimeout(left)
                piece = connection.recv(65_536)
                if not piece:
                    raise ProtocolError("the connection was closed")
                for frame in frames.feed(piece):
                    datagram = decode_datagram(channel, frame)
                    if datagram.ours:
                        return datagram.payloads
    return None


def finder_for(stack: JgroupsStack, refresh_ms: int, wait_ms: int, make: MakeServer) -> Finder:
    """Returns the finder for this discovery protocol."""
    if stack.kind == MULTICAST:
        return MulticastFinder(stack, refresh_ms, wait_ms, make)
    if stack.kind == MPING:
        return MpingFinder(stack, refresh_ms, wait_ms, make)
    if stack.kind == FOLDER:
        return FolderFinder(stack, refresh_ms, wait_ms, make)
    return HostsFinder(stack, refresh_ms, wait_ms, make)
