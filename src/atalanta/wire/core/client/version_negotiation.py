"""The protocol version of one connection, agreed on by its dialer: every link between nodes, and every client.

A broker refuses a session of a version that it does not know with code 108. The dialer then requests the session again
in the next lower version, on the same connection (ActiveMQClientProtocolManager.createSessionContext). Brokers from
version 131 on name their version in the topology before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from atalanta.kernel.errors import INCOMPATIBLE
from atalanta.wire.core.client.settings import SessionSettings, session_creation
from atalanta.wire.core.packet_types import (
    CLIENT_ID_VERSION,
    NEWEST_VERSION,
    OLDEST_VERSION,
    PING_CHANNEL,
    SESSION_CHANNEL,
)
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.session import CreateSessionResponse
from atalanta.wire.core.packets.topology import (
    ClusterTopology,
    ClusterTopologyV4,
    SubscribeTopologyV2,
)


class SessionRequest:
    """A session that is requested. `version` is the one of the last request for it."""

    def __init__(self, settings: SessionSettings, channel: int) -> None:
        self.settings = settings
        self.channel = channel
        self.version: int = NEWEST_VERSION


class VersionNegotiation:
    """The state of one negotiation. `version` is what the connection speaks; `known`: the broker has agreed or told.

    `send` sends a packet on a channel.
    """

    def __init__(self, send: Callable[[Packet, int], None]) -> None:
        self.version: int = NEWEST_VERSION
        self.known: bool = False
        self._send = send
        self._subscribed: bool = False
        self._waiting: deque[SessionRequest] = deque()
        self._unanswered: deque[SessionRequest] = deque()

    def subscribe(self, as_cluster: bool) -> None:
        """Subscribes to the topology. The broker serves the connection in the version that is named here."""
        self._subscribed = True
        self._send(SubscribeTopologyV2(as_cluster, self.version), PING_CHANNEL)

    def create(self, settings: SessionSettings, channel: int, wait: bool = False) -> None:
        """Requests a session.

        Only brokers of version 131 and later know the packet with a client id. Others close the connection, so such a
        request waits for the topology, and any request with `wait`.
        """
        request = SessionRequest(settings, channel)
        if self.known or not (wait or settings.client_id is not None):
            self._request(request)
            return
        self._waiting.append(request)
        if not self._subscribed:
            self.subscribe(False)

    def _request(self, request: SessionRequest) -> None:
        request.version = self.version
        self._unanswered.append(request)
        with_client_id = self.known and self.version >= CLIENT_ID_VERSION
        self._send(
            session_creation(request.settings, request.channel, self.version, with_client_id),
            SESSION_CHANNEL,
        )

    def on_packet(self, packet: Packet, channel: int) -> bool:
        """Takes a packet of the broker. Returns True if it was a refusal after which the request was sent again."""
        if isinstance(packet, ClusterTopology):
            self._told(packet)
        elif channel == SESSION_CHANNEL and self._unanswered:
            if isinstance(packet, CreateSessionResponse):
                request = self._unanswered.popleft()
                self._agree(min(request.version, packet.server_version))
            elif isinstance(packet, ExceptionResponse):
                return self._refused(self._unanswered.popleft(), packet.code)
        return False

    def _told(self, packet: ClusterTopology) -> None:
        if self.known or packet.exit:  # a leaving member is told in an old form by every version
            return
        if isinstance(packet, ClusterTopologyV4):
            self._agree(packet.server_version)
        else:
            self._agree(CLIENT_ID_VERSION - 1)

    def _agree(self, version: int) -> None:
        """Lowers the version to what the broker knows, and sends the requests that waited for it."""
        self.version = max(OLDEST_VERSION, min(self.version, version))
        self.known = True
        while self._waiting:
            self._request(self._waiting.popleft())

    def _refused(self, request: SessionRequest, code: int) -> bool:
        if code != INCOMPATIBLE or request.version <= OLDEST_VERSION:
            return False
        self.version = min(self.version, request.version - 1)
        self._request(request)
        return True
