"""The host of a remote address, as limits and fair shares count it."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv6Address


def remote_host(remote: str) -> str:
    """Returns the host of "host:port"; of an IPv6 host its network of 64 bits, all of which one machine may use."""
    host = remote.rpartition(":")[0].strip("[]")
    if ":" not in host:
        return host or remote
    try:
        return f"{int(IPv6Address(host.partition('%')[0])) >> 64:x}::/64"
    except AddressValueError:
        return host
