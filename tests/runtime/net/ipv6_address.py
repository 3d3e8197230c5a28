"""An IPv6 address of this machine that multicast can use."""

from __future__ import annotations

from atalanta.runtime.net.multicast import own_addresses


def six() -> tuple[str, str]:
    """An IPv6 address of an interface that has a way for groups (the loopback interface has none), and its zone."""
    for number, address in own_addresses():
        if not address.is_loopback and not address.is_link_local:
            return str(address), f"%{number}"
    return "", ""


SIX, ZONE = six()
