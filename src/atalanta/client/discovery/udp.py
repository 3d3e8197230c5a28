"""Discovery of servers by UDP broadcasts or by the protocol of a JGroups stack file.

A finder is asked before every pass over the servers. A discovered server is valid for refreshTimeout. After that, or
if no server could be reached, the finder listens again, up to initialWaitTimeout for the first server
(DiscoveryGroup.waitForBroadcast).
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from atalanta.message.encoding.digits import all_digits
from atalanta.wire.core.broadcast_datagram import Announcement, decode_announcement
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.client.options import Server

DATAGRAM_BYTES_MAX: Final = 65_535
POLL_S: Final = 0.2  # maximum delay until a stopped listener returns
SERVERS_MAX: Final = 10_000
INTERFACES: Final = Path("/proc/net/if_inet6")  # Linux


@dataclass
class UdpGroup:
    """`udp://address:port?…`; times in ms. local_bind_address is the interface that listens; "" means any."""

    address: str
    port: int
    local_bind_address: str = ""
    refresh_timeout_ms: int = 10_000
    initial_wait_timeout_ms: int = 10_000


class Finder:
    """The discovered servers: node id -> server and the time of its announcement. `listen` receives announcements."""

    def __init__(
        self, place: str, refresh_timeout_ms: int, initial_wait_timeout_ms: int, make: MakeServer
    ) -> None:
        self.place = place
        self.refresh_s = refresh_timeout_ms / 1000
        self.wait_s = initial_wait_timeout_ms / 1000
        self.make = make
        self.entries: dict[str, tuple[Server, float]] = {}
        self.lock = threading.Lock()  # connections of one factory share the finder

    def servers(self, stopped: Callable[[], bool]) -> list[Server]:
        """Returns the servers whose announcement is still valid. Blocks until the first one arrives or `stopped`.

        Raises OSError if there is none.
        """
        with self.lock:
            self._expire()
            if not self.entries:
                self.listen(stopped)
            if not self.entries:
                raise OSError(f"no server was discovered in {self.place} within {self.wait_s:g} s{self.hint()}")
            return [server for server, _ in self.entries.values()]

    def hint(self) -> str:
        """Returns what to do if no server is discovered, with punctuation; "" if nothing is known."""
        return ""

    def forget(self) -> None:
        """Discards every server, since none could be reached; the next call listens again."""
        with self.lock:
            self.entries.clear()

    def listen(self, stopped: Callable[[], bool]) -> None:
        """Fills `entries` until the first server or the end of the time. Raises OSError if it cannot listen."""
        raise NotImplementedError

    def add(self, announcement: Announcement) -> None:
        """Records an announcement: the node's last connector is used (DiscoveryGroup.java)."""
        if announcement.connectors and len(self.entries) < SERVERS_MAX:
            connector = announcement.connectors[-1]
            server = self.make(connector.host, connector.port)
            self.entries[announcement.node_id] = (server, time.monotonic())

    def _expire(self) -> None:
        now = time.monotonic()
        for node_id, (_, heard_s) in list(self.entries.items()):
            if now - heard_s > self.refresh_s:
                del self.entries[node_id]


MakeServer = Callable[[str, int], "Server"]


class UdpFinder(Finder):
    """A listener for Artemis' broadcasts (Artemis' UDPBroadcastEndpointFactory)."""

    def __init__(self, group: UdpGroup, make: MakeServer) -> None:
        place = f"udp://{group.address}:{group.port}"
        super().__init__(place, group.refresh_timeout_ms, group.initial_wait_timeout_ms, make)
        self.group = group

    def listen(self, stopped: Callable[[], bool]) -> None:
        """Reads datagrams until one is valid; after it only those that have already arrived."""
        until = time.monotonic() + self.wait_s
        with contextlib.closing(listening_socket(self.group)) as listener:
            while not stopped():
                left = 0.0 if self.entries else until - time.monotonic()
                if left < 0 or (not self._receive(listener, min(left, POLL_S)) and self.entries):
                    return

    def _receive(self, listener: socket.socket, timeout_s: float) -> bool:
        listener.settimeout(timeout_s)
        try:
            data = listener.recv(DATAGRAM_BYTES_MAX)
        except (TimeoutError, BlockingIOError):
            return False
        with contextlib.suppress(ProtocolError):  # any host may send datagrams
            self.receive(data)
        return True

    def receive(self, data: bytes) -> None:
        """Handles a datagram. Raises ProtocolError if it is malformed."""
        self.add(self.read(data))

    def read(self, data: bytes) -> Announcement:
        """Decodes an announcement. Raises ProtocolError if it is malformed."""
        return decode_announcement(data)


def listening_socket(group: UdpGroup) -> socket.socket:
    """Returns a socket that joined the group on the interface of that address. OSError names the group."""
    six = ":" in group.address
    listener = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if six:
            _join_6(listener, group)
        else:
            listener.bind((group.address, group.port))
            interface = socket.gethostbyname(group.local_bind_address or "0.0.0.0")
            request = socket.inet_aton(group.address) + socket.inet_aton(interface)
            listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
    except OSError as error:
        listener.close()
        text = f"cannot join {group.address}:{group.port}: {error.strerror or error}"
        raise OSError(error.errno, text) from error
    return listener


def _join_6(listener: socket.socket, group: UdpGroup) -> None:
    address = group.address.partition("%")[0]
    number = _interface_number(group.address, (group.local_bind_address or "").strip("[]"))
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind((address, group.port, 0, number))
    request = socket.inet_pton(socket.AF_INET6, address) + struct.pack("@I", number)
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)


def _interface_number(group: str, local: str) -> int:
    """Returns the interface of a zone (`ff02::77%eth0`) or of the local address; 0 follows the routing table."""
    for address in (local, group):
        zone = address.partition("%")[2]
        if zone:
            return int(zone) if all_digits(zone, 9) else socket.if_nametoindex(zone)
    if not local:
        return 0
    wanted = socket.inet_pton(socket.AF_INET6, local).hex()
    with contextlib.suppress(FileNotFoundError), INTERFACES.open(encoding="ascii") as lines:
        for line in lines:
            words = line.split()
            if words[0] == wanted:
                return int(words[1], 16)
    raise OSError(errno.EADDRNOTAVAIL, f"no interface has the address {local}")
