"""The host of a remote address, as limits and fair shares count it, and the limit of logged refusals."""

from __future__ import annotations

from typing import Final

MINUTE_NS: Final = 60_000_000_000
ONCE_NS: Final = 1 << 60  # longer than any node runs
REFUSALS_MAX: Final = 1_000


def remote_host(remote: str) -> str:
    """Returns the host of "host:port"; of an IPv6 host its network of 64 bits, all of which one machine may use."""
    host = remote.rpartition(":")[0].strip("[]")
    if ":" not in host:
        return host or remote
    from ipaddress import AddressValueError, IPv6Address  # Imported here: nodes start without it.

    try:
        return f"{int(IPv6Address(host.partition('%')[0])) >> 64:x}::/64"
    except AddressValueError:
        return host


class RefusalLimit:
    """The refusals that are logged: one in each period for each reason and host. Times are in ns."""

    def __init__(self, period_ns: int = MINUTE_NS) -> None:
        self.period_ns = period_ns
        self._logged: dict[tuple[str, str], int] = {}

    def admits(self, now: int, remote: str, why: str) -> bool:
        """Returns True, and records it, if this refusal is to be logged."""
        key = (remote_host(remote), why)
        last = self._logged.get(key)
        if last is not None and now - last < self.period_ns:
            return False
        if len(self._logged) >= REFUSALS_MAX:
            self._logged.clear()
        self._logged[key] = now
        return True
