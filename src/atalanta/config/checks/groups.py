"""Faults of broadcast and discovery groups: addresses by which no member is ever met."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from atalanta.cluster.config import BroadcastGroupConfig, DiscoveryConfig
from atalanta.config.checks.findings import ERROR, WARNING
from atalanta.config.configuration import Configuration
from atalanta.config.problems import ConfigProblem

if TYPE_CHECKING:
    import ipaddress

RESERVED: Final = ("224.0.0.0", "ff00::")  # never a group: RFC 1112, section 4; RFC 4291, section 2.7
GROUPS: Final = "239.0.0.0 to 239.255.255.255, or IPv6: ff02::1 to ff0e:ffff:…"


@dataclass(frozen=True)
class GroupFault:
    """A fault of the group `name`, an element `kind`. `hint` says what to write."""

    level: str
    kind: str
    name: str
    text: str
    hint: str = ""


def group_faults(configuration: Configuration) -> Iterator[GroupFault]:
    """Iterates over the faults of the UDP groups of a file."""
    for broadcast in configuration.broadcast_groups:
        if broadcast.stack is None:
            yield from _address_faults("broadcast-group", broadcast, broadcast.local_bind_address)
            yield from _port_faults(broadcast)
        if not broadcast.connectors:
            text = f"broadcast-group '{broadcast.name}' announces no connector"
            yield GroupFault(ERROR, "broadcast-group", broadcast.name, text, "name one in <connector-ref>")
    for discovery in configuration.discovery_groups.values():
        if discovery.stack is None:
            yield from _address_faults("discovery-group", discovery, discovery.local_bind_address)


def group_warnings(configuration: Configuration) -> list[str]:
    """Returns a line for each fault, for a start. A node whose group is impossible serves, and is alone."""
    return [
        str(ConfigProblem(*configuration.position(fault.kind, fault.name), fault.text, fault.hint))
        for fault in group_faults(configuration)
    ]


def ip_address(text: str | None) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parses an IP address; None for a name. Java also accepts brackets around IPv6."""
    from ipaddress import ip_address as parsed  # Imported here: nodes start without it.

    try:
        return parsed((text or "").removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


def _address_faults(kind: str, config: DiscoveryConfig, local: str | None) -> Iterator[GroupFault]:
    group, own = ip_address(config.group_address), ip_address(local)
    about = f"{kind} '{config.name}': {config.group_address}"
    if group is None or not group.is_multicast:
        yield GroupFault(ERROR, kind, config.name, f"{about} is not a multicast address", GROUPS)
    elif str(group) in RESERVED:
        yield GroupFault(ERROR, kind, config.name, f"{about} is reserved, and never a group", GROUPS)
    if group is not None and own is not None and group.version != own.version:
        text = f"{kind} '{config.name}': {local} is not an address of an interface for the group {config.group_address}"
        yield GroupFault(ERROR, kind, config.name, text, f"an IPv{group.version} address")
    elif own is not None and not _is_of_this_host(str(own), own.version):
        text = f"{kind} '{config.name}': this host does not have the address {local} of local-bind-address"
        yield GroupFault(WARNING, kind, config.name, text, "if the node runs here, nobody is met by this group")


def _port_faults(config: BroadcastGroupConfig) -> Iterator[GroupFault]:
    if config.local_bind_port > 0 and not config.local_bind_address:
        text = f"broadcast-group '{config.name}': local-bind-port without local-bind-address takes it on all interfaces"
        hint = "write local-bind-address, too, or leave it out"
        yield GroupFault(WARNING, "broadcast-group", config.name, text, hint)


def _is_of_this_host(address: str, version: int) -> bool:
    """Returns whether a socket could have that address. Nothing is sent."""
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    place, _, zone = address.partition("%")
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((place, 0) if version == 4 else (place, 0, 0, socket.if_nametoindex(zone) if zone else 0))
    except OSError:
        return False
    return True
