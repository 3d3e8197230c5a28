"""A server without sockets that serves CORE, OpenWire and STOMP at one acceptor, as a node does."""

from __future__ import annotations

from tests.wire.openwire.server.openwire_rig import OpenWireServer
from tests.wire.stomp.stomp_rig import StompServer


class MixedServer(OpenWireServer, StompServer):
    """A broker with CORE, STOMP and OpenWire."""

    def beat(self) -> None:
        """The timers of the protocols that are due."""
        StompServer.beat(self)
        OpenWireServer.beat(self)
