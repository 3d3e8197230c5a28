"""`discovery:(multicast://group)`: brokers that announce themselves as ActiveMQ Classic's agents do.

A node of Atalanta announces an acceptor with `discoveryUri`. What was announced with ssl:// is dialled only with
TLS, and the other way round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from atalanta.client.discovery.udp import MakeServer, UdpFinder, UdpGroup
from atalanta.wire.core.broadcast_datagram import Announcement
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.openwire.multicast_discovery import DEAD, MulticastGroup, decode_datagram
from atalanta.wire.protocol_error import ProtocolError
from atalanta.wire.uri import DEFAULT_PORT, UriError, parse_uri

if TYPE_CHECKING:
    from atalanta.client.options import ClientOptions

PLAIN: Final = ("tcp", "nio", "auto", "auto+nio")
ENCRYPTED: Final = ("ssl", "nio+ssl", "auto+ssl", "auto+nio+ssl")


class ClassicFinder(UdpFinder):
    """A listener for the announcements of one group of Classic's multicast agent."""

    def __init__(self, group: MulticastGroup, options: ClientOptions, make: MakeServer) -> None:
        place = UdpGroup(
            group.address, group.port, group.interface, options.refresh_timeout_ms, options.initial_wait_timeout_ms
        )
        super().__init__(place, make)
        self.place = f"multicast://{group.address}:{group.port}?group={group.name}"
        self.name = group.name
        self.options = options

    def read(self, data: bytes) -> Announcement:
        """Decodes an announcement; its URL stands for a node id. Raises ProtocolError for any other datagram."""
        found = decode_datagram(self.name, data)
        if found is None:
            raise ProtocolError("another group")
        state, url = found
        if state == DEAD:
            self.entries.pop(url, None)
            raise ProtocolError("a broker that ends")
        try:
            uri = parse_uri(url, PLAIN if self.options.secure is None else ENCRYPTED)
        except UriError as error:
            raise ProtocolError(str(error)) from error
        port = DEFAULT_PORT if uri.port is None else uri.port
        return Announcement(url, "", [TransportConfiguration.tcp("", uri.host, port)])
