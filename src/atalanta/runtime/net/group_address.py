"""Addresses of UDP groups and interfaces in the form that sockets take, for IPv4 and IPv6.

An IPv6 group is joined on an interface by its number. This is the number of the zone in one of the addresses
(`ff02::77%eth0`), or of the interface with the local address. Artemis' endpoint uses
NetworkInterface.getByInetAddress for the latter.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

from atalanta.message.encoding.digits import all_digits

if TYPE_CHECKING:
    from ipaddress import IPv6Address

ANY: Final = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}
INTERFACES: Final = Path("/proc/net/if_inet6")  # Linux

SocketAddress = tuple[str, int] | tuple[str, int, int, int]


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
