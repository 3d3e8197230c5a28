"""Discovery of ActiveMQ Classic by UDP multicast (MulticastDiscoveryAgent): the addresses of groups, and the datagrams.

A datagram is a text, `<group>.ActiveMQ-4.alive.%localhost%<url>`, or `dead` at the end of a broker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from atalanta.wire.uri import UriError, parse_authority, parse_params

SCHEME: Final = "multicast://"
DEFAULT: Final = "default"
ADDRESS: Final = "239.255.2.3"
PORT: Final = 6155
PERIOD_MS: Final = 500
DATAGRAM_BYTES_MAX: Final = 8192
TYPE: Final = ".ActiveMQ-4."
ALIVE: Final = "alive."
DEAD: Final = "dead."
BROKER: Final = "%localhost%"
ADDRESS_TEXT: Final = re.compile(r"[\d.]+|.*:.*")
URL: Final = re.compile(r"[a-z+]{2,20}://[!-~]{1,1000}")
# Options of Classic's agent for those who dial what they hear; a publisher needs none of them.
OF_LISTENERS: Final = (
    "initialReconnectDelay", "maxReconnectDelay", "backOffMultiplier", "useExponentialBackOff", "maxReconnectAttempts",
    "loopBackMode",
)  # fmt: skip

@dataclass(frozen=True)
class MulticastGroup:
    """A group of brokers, at a UDP group. `interface` is the local address, "" the system's choice."""

    name: str = DEFAULT
    address: str = ADDRESS
    port: int = PORT
    interface: str = ""
    period_ms: int = PERIOD_MS


def parse_group(uri: str) -> MulticastGroup:
    """Reads `multicast://default` or `multicast://address:port?group=name`. UriError.

    A word in place of the address is the name of a group at Classic's own address.
    """
    if not uri.startswith(SCHEME):
        raise UriError(f"'{uri}' is not {SCHEME}{DEFAULT}: brokers are discovered by UDP multicast only")
    place, _, query = uri[len(SCHEME) :].partition("?")
    host, port = parse_authority(place or DEFAULT)
    params = parse_params(query)
    named = ADDRESS_TEXT.fullmatch(host) is None
    name = params.pop("group", host if named else DEFAULT)
    interface = params.pop("interface", "")
    period = params.pop("keepAliveInterval", str(PERIOD_MS))
    if not period.isdecimal() or not 0 < int(period) <= 60_000:
        raise UriError(f"keepAliveInterval: '{period}' is not 1 to 60000 ms")
    for key in params:
        if key not in OF_LISTENERS:
            raise UriError(f"'{key}' of {uri} has no meaning here: write group, interface=ADDRESS or keepAliveInterval")
    return MulticastGroup(name, ADDRESS if named else host, PORT if port is None else port, interface, int(period))


def decode_datagram(group: str, data: bytes) -> tuple[str, str] | None:
    """Returns ALIVE or DEAD and the URL of a broker; None for what is none of this group. Any host can send such."""
    prefix = f"{group}{TYPE}"
    text = data[: DATAGRAM_BYTES_MAX + 1].decode(errors="replace")
    if len(data) > DATAGRAM_BYTES_MAX or not text.startswith(prefix):
        return None
    state, _, rest = text[len(prefix) :].partition("%")
    url = rest.partition("%")[2]  # behind the broker's name
    if state not in (ALIVE, DEAD) or not URL.fullmatch(url):
        return None
    return state, url


def encode_datagram(group: str, state: str, url: str) -> bytes:
    """Returns the datagram that announces a broker's URL: state ALIVE or DEAD."""
    return f"{group}{TYPE}{state}{BROKER}{url}".encode()
