"""Hosts that only this machine reaches."""

from __future__ import annotations


def is_loopback(host: str) -> bool:
    """Returns whether only this machine reaches the host: `localhost`, 127.0.0.0/8, or ::1 in any of its forms.

    An IPv6 address may have its brackets. A name that begins like an address is a name, which may lead anywhere.
    """
    if host.lower() == "localhost":
        return True
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host.startswith("127.") and ":" not in host:
        return False
    from ipaddress import IPv6Address, ip_address  # Imported here: nodes start without it.

    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
