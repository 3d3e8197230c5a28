"""UDP groups for discovery: sending and receiving with one membership.

The receiver is bound to the group's own address and joins on the given interface. With 127.0.0.1 a cluster forms
on the loopback interface, without any route.
"""

from __future__ import annotations

import asyncio
import errno
import random
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from atalanta.cluster.inputs import NodeInputs
from atalanta.message.encoding.digits import all_digits
from atalanta.runtime.driver import Driver
from atalanta.runtime.net.limits import Limits
from atalanta.runtime.trace import LogTrace

if TYPE_CHECKING:
    from ipaddress import IPv6Address

# The default of Java's multicast sockets: the local network.
TIME_TO_LIVE = 1
DATAGRAM_BYTES_MAX = 65_535
BIND_PORTS = (3000, 4000)
BIND_ATTEMPTS = 100
REASONS_MAX: Final = 8  # in the log for one group
ANY: Final = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}
INTERFACES: Final = Path("/proc/net/if_inet6")  # Linux
SocketAddress = tuple[str, int] | tuple[str, int, int, int]


@dataclass(frozen=True)
class Group:
    """A UDP group and its local options. `interface` "" and `local_port` -1 mean any.

    Without `receives` it is only for sending.
    """

    name: str
    address: str
    port: int
    interface: str
    local_port: int
    receives: bool = True


class Membership:
    """The two sockets of a joined group."""

    def __init__(self, group: Group, limits: Limits) -> None:
        self.group = group
        self.receiver = receiving_socket(group, limits) if group.receives else None
        address = without_brackets(group.address).partition("%")[0]
        # The sender's interface is set, so an IPv6 group needs no zone here.
        self.to = (address, group.port)
        try:
            self.sender = sending_socket(group)
        except OSError:
            if self.receiver is not None:
                self.receiver.close()
            raise

    def close(self) -> None:
        """Closes both sockets, which leaves the group."""
        if self.receiver is not None:
            self.receiver.close()
        self.sender.close()


class Multicast:
    """The groups of one node, by the node's names for them."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, driver: Driver, limits: Limits, trace: LogTrace
    ) -> None:
        self._loop = loop
        self._driver = driver
        self._limits = limits
        self._trace = trace
        self._joined: dict[str, Membership] = {}
        self._retries: dict[str, asyncio.TimerHandle] = {}
        self._told: dict[str, list[str]] = {}  # why a group fails, since it was joined last

    def join(
        self,
        name: str,
        address: str,
        port: int,
        interface: str,
        local_port: int,
        receives: bool = True,
    ) -> None:
        """Joins a group and begins to receive. A group that cannot be joined is logged and retried."""
        self.leave(name)
        self._try_to_join(Group(name, address, port, interface, local_port, receives))

    def _try_to_join(self, group: Group) -> None:
        self._retries.pop(group.name, None)
        try:
            membership = Membership(group, self._limits)
        except OSError as error:
            if self._is_news(group.name, str(error)):
                self._trace.event("multicast_join_failed", {"group": group.name, "why": str(error)})
            retry = self._loop.call_later(self._limits.join_retry_s, self._try_to_join, group)
            self._retries[group.name] = retry
            return
        if self._told.pop(group.name, None):
            self._trace.event("multicast_joined", {"group": group.name})
        self._joined[group.name] = membership
        if membership.receiver is not None:
            self._loop.add_reader(
                membership.receiver, self._receive, membership, membership.receiver
            )

    def _receive(self, membership: Membership, receiver: socket.socket) -> None:
        for _ in range(self._limits.datagrams_per_turn):
            try:
                data = receiver.recv(DATAGRAM_BYTES_MAX)
            except BlockingIOError:
                return
            except OSError as error:
                self._failed(membership.group.name, error)
                return
            self._driver.post(NodeInputs.on_datagram, membership.group.name, data)
            if self._joined.get(membership.group.name) is not membership:
                return  # an input made the node leave the group

    def send(self, name: str, data: bytes) -> None:
        """Sends one datagram. The datagram is lost while the group is not joined, or on a network error."""
        membership = self._joined.get(name)
        if membership is None:
            self._trace.count("multicast.failed")
            return
        try:
            membership.sender.sendto(data, membership.to)
        except OSError as error:
            self._failed(name, error)

    def _failed(self, name: str, error: OSError) -> None:
        if self._is_news(name, str(error)):
            self._trace.event("multicast_failed", {"group": name, "why": str(error)})

    def _is_news(self, name: str, why: str) -> bool:
        """Counts a failure. Returns whether it is to be told: each reason once, as it is tried again and again."""
        self._trace.count("multicast.failed")
        told = self._told.setdefault(name, [])
        if why in told or len(told) >= REASONS_MAX:
            return False
        told.append(why)
        return True

    def leave(self, name: str) -> None:
        """Leaves a group; no effect if it was not joined."""
        retry = self._retries.pop(name, None)
        if retry is not None:
            retry.cancel()
        membership = self._joined.pop(name, None)
        if membership is not None:
            if membership.receiver is not None:
                self._loop.remove_reader(membership.receiver)
            membership.close()

    def close(self) -> None:
        """Leaves every group."""
        for name in [*self._joined, *self._retries]:
            self.leave(name)


def receiving_socket(group: Group, limits: Limits) -> socket.socket:
    """Returns a socket that is a member of the group. Several nodes of one machine may share its port."""
    family = family_of(group.address)
    receiver = socket.socket(family, socket.SOCK_DGRAM)
    try:
        receiver.setblocking(False)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, limits.datagram_buffer_bytes)
        if family == socket.AF_INET6:
            _join_6(receiver, group)
        else:
            receiver.bind((group.address, group.port))
            interface = socket.gethostbyname(group.interface or ANY[family])
            request = socket.inet_aton(group.address) + socket.inet_aton(interface)
            receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, request)
    except OSError as error:
        receiver.close()
        text = f"cannot join the group {group.address}:{group.port}: {error.strerror or error}"
        raise OSError(error.errno, text) from error
    return receiver


def _join_6(receiver: socket.socket, group: Group) -> None:
    number = interface_number(group.address, group.interface)
    address = without_brackets(group.address).partition("%")[0]
    receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    receiver.bind((address, group.port, 0, number))
    request = socket.inet_pton(socket.AF_INET6, address) + struct.pack("@I", number)
    receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, request)


def sending_socket(group: Group) -> socket.socket:
    """Returns a socket that sends to the group from the configured interface and port."""
    family = family_of(group.address)
    sender = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sender.setblocking(False)
        if family == socket.AF_INET6:
            number = struct.pack("@I", interface_number(group.address, group.interface))
            sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, TIME_TO_LIVE)
            sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 1)
            sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, number)
        else:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, TIME_TO_LIVE)
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 1)
            if group.interface:
                interface = socket.inet_aton(socket.gethostbyname(group.interface))
                sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, interface)
        if group.local_port > 0:
            sender.bind(socket_address(group.interface, group.local_port, family))
        elif group.interface:
            bind_sender(sender, group.interface, family)
    except OSError as error:
        sender.close()
        place = f"{group.interface}:{group.local_port}"
        text = f"cannot send to the group from {place}: {error.strerror or error}"
        raise OSError(error.errno, text) from error
    return sender


def bind_sender(sender: socket.socket, interface: str, family: socket.AddressFamily) -> None:
    """Binds one of the ports that Artemis uses, since firewalls may allow them (UDPBroadcastEndpointFactory); else
    any port."""
    for _ in range(BIND_ATTEMPTS):
        try:
            sender.bind(socket_address(interface, random.randrange(*BIND_PORTS), family))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return
    sender.bind(socket_address(interface, 0, family))


def without_brackets(address: str) -> str:
    return address[1:-1] if address.startswith("[") and address.endswith("]") else address


def family_of(group: str) -> socket.AddressFamily:
    """Returns the family of a group's IP address."""
    return socket.AF_INET6 if ":" in group else socket.AF_INET


def socket_address(address: str, port: int, family: socket.AddressFamily) -> SocketAddress:
    """Resolves an address of that family; OSError if there is none."""
    wanted = without_brackets(address) or ANY[family]
    found = socket.getaddrinfo(wanted, port, family, socket.SOCK_DGRAM)[0][4]
    if family == socket.AF_INET6:
        host, at, flow, scope = found  # type: ignore[misc]
        return str(host).partition("%")[0], int(at), int(flow), int(scope)
    return str(found[0]), int(found[1])


def interface_number(group: str, interface: str) -> int:
    """Returns the interface number for an IPv6 group; 0: by the routing table. OSError for an unknown interface."""
    for address in (interface, group):
        zone = without_brackets(address).partition("%")[2]
        if zone:
            return int(zone) if all_digits(zone, 9) else socket.if_nametoindex(zone)
    if not without_brackets(interface):
        return 0
    host = socket_address(interface, 0, socket.AF_INET6)[0]
    from ipaddress import IPv6Address  # Imported here: nodes start without it.

    wanted = IPv6Address(host)
    if wanted.is_unspecified:
        return 0
    for number, known in own_addresses():
        if known == wanted:
            return number
    raise OSError(f"no interface has the address {interface} (write address%interface)")


def own_addresses() -> list[tuple[int, IPv6Address]]:
    """Returns (interface number, address) pairs; empty on systems without such a list."""
    from ipaddress import IPv6Address  # Imported here: nodes start without it.

    try:
        lines = INTERFACES.read_text("ascii").splitlines()
    except OSError:
        return []
    found: list[tuple[int, IPv6Address]] = []
    for line in lines:
        words = line.split()
        if len(words) == 6:
            found.append((int(words[1], 16), IPv6Address(int(words[0], 16))))
    return found
