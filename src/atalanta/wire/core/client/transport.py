"""The client's end of one CORE transport, without I/O: greeting, frames, pings, silence, HTTP upgrade, DISCONNECT.

Client connections (wire/core/client/connection.py) and links between nodes (cluster/links/outbound_link.py) own one
each. Bytes to write are returned to the owner. `now` is integer nanoseconds.
"""

from __future__ import annotations

from typing import Final

from atalanta.wire.core.client.settings import ConnectionSettings
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import (
    HANDSHAKE,
    NEWEST_VERSION,
    PACKETS_CONFIRMED,
    PING,
    PING_CHANNEL,
)
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import Disconnect, DisconnectV2, DisconnectV3, Ping
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.http_upgrade import UpgradeRequest
from atalanta.wire.protocol_error import ProtocolError

NO_REASON: Final = -1
TLS_ALERT: Final = b"\x15\x03"
TLS_THERE: Final = "the broker speaks TLS there: add sslEnabled=true to the URL or the connector"
# A broker that speaks OpenWire sends its WireFormatInfo at once: length, type 1, "ActiveMQ".
OPENWIRE_MARK: Final = b"\x01ActiveMQ"
OPENWIRE_MARK_AT: Final = 4
OPENWIRE_THERE: Final = (
    "the broker speaks OpenWire there, as ActiveMQ Classic does, but CORE is needed: an Artemis or Atalanta node"
)
MILLISECOND_NS: Final = 1_000_000


class DisconnectNotice:
    """A DISCONNECT packet of any version.

    `reason` is one of REASON_*, or NO_REASON in versions before 131. `target_node_id` and `target` name the broker
    that takes over, if there is one.
    """

    def __init__(
        self,
        node_id: str | None,
        reason: int,
        target_node_id: str | None,
        target: TransportConfiguration | None,
    ) -> None:
        self.node_id = node_id
        self.reason = reason
        self.target_node_id = target_node_id
        self.target = target


def disconnect_notice_of(packet: Packet) -> DisconnectNotice | None:
    """Returns the content of a DISCONNECT packet, and None for any other packet."""
    if isinstance(packet, DisconnectV3):
        return DisconnectNotice(packet.node_id, packet.reason, packet.target_node_id, packet.target)
    if isinstance(packet, DisconnectV2):
        return DisconnectNotice(packet.node_id, NO_REASON, packet.scale_down_node_id, None)
    if isinstance(packet, Disconnect):
        return DisconnectNotice(packet.node_id, NO_REASON, None, None)
    return None


class CoreTransport:
    """The transport's state. `framer` holds the frame that `step` found; `last_seen` is the time of the last bytes.

    Before `begin`, and while the answer to an HTTP upgrade is awaited, frames are held back.
    """

    def __init__(self, settings: ConnectionSettings, now: int = 0) -> None:
        self.settings = settings
        self.framer: Framer = Framer(False)
        self.last_seen: int = now
        self._open: bool = False
        self._first: bool = True  # nothing was received yet
        self._held: list[bytes] = []
        self._upgrade: UpgradeRequest | None = None
        self._next_ping: int = 0
        self._deadline: int = 0  # for the answer that the owner awaits; 0 for none

    def begin(self, now: int, upgrade: UpgradeRequest | None) -> bytes:
        """Starts a new transport. Returns the bytes that must be written first.

        These are the handshake and a ping, or the HTTP request; then handshake and ping follow the answer to it.
        """
        self.framer = Framer(False)
        self.last_seen = now
        self._deadline = 0
        self._first = True
        self._held.clear()
        self._upgrade = upgrade
        self._open = upgrade is None
        greeting = HANDSHAKE + self.ping(now)
        if upgrade is None:
            return greeting
        self._held.append(greeting)
        return upgrade.request

    def hold(self, frame: bytes) -> bool:
        """Returns True if the frame must not be written yet. `receive` returns it when CORE may begin."""
        if self._open:
            return False
        self._held.append(frame)
        return True

    # -- bytes in -------------------------------------------------------------------------------
    def receive(self, now: int, data: bytes) -> bytes:
        """Takes bytes of the broker, for `step`. Returns the held frames, once they may be written.

        ProtocolError: the other side does not accept the HTTP upgrade, or speaks TLS or OpenWire.
        """
        self.last_seen = now
        if self._first:
            self._first = False
            if data.startswith(TLS_ALERT):
                raise ProtocolError(TLS_THERE)
            if data.startswith(OPENWIRE_MARK, OPENWIRE_MARK_AT):
                raise ProtocolError(OPENWIRE_THERE)
        released = b""
        upgrade = self._upgrade
        if upgrade is not None:
            upgrade.feed(data)
            data = upgrade.rest
            if upgrade.done:
                self._upgrade = None
                self._open = True
                released = b"".join(self._held)
                self._held.clear()
        self.framer.begin(data)
        return released

    def step(self) -> bool:
        """Returns True if `framer` holds another frame. Pings and PACKETS_CONFIRMED are skipped.

        ProtocolError: the bytes are no frames.
        """
        framer = self.framer
        while framer.step():
            if framer.type != PING and framer.type != PACKETS_CONFIRMED:
                return True
        return False

    def packet(self, version: int) -> Packet:
        """Returns the packet in the frame that `step` found. ProtocolError names packet and field."""
        framer = self.framer
        return codec.decode_range(framer.type, framer.data, framer.start, framer.end, version)

    # -- time -----------------------------------------------------------------------------------
    def await_answer(self, now: int) -> None:
        """Starts the call timeout for the answer that the owner awaits now."""
        timeout_ns = self.settings.call_timeout_ns
        self._deadline = now + timeout_ns if timeout_ns >= 0 else 0

    def answered(self) -> None:
        """Ends the call timeout."""
        self._deadline = 0

    def failure(self, now: int) -> str:
        """Returns the reason why the transport must be closed, or "" if it is alive."""
        ttl_ns = self.settings.ttl_ns
        if ttl_ns >= 0 and now - self.last_seen > ttl_ns:
            return f"nothing was heard for {ttl_ns // 1_000_000_000} s"
        if self._deadline and now >= self._deadline:
            return "the broker did not answer a login within callTimeout"
        return ""

    def resumed(self, now: int) -> None:
        """Allows half of the TTL for the next bytes: this program was suspended, so it may have read none."""
        self.last_seen = max(self.last_seen, now - self.settings.ttl_ns // 2)

    def ping_due(self, now: int) -> bool:
        """Returns True if the ping period is over."""
        return self.settings.ping_period_ns >= 0 and now >= self._next_ping

    def ping(self, now: int) -> bytes:
        """Returns a PING frame. The next one is due after the ping period, at the latest after half of the TTL."""
        ttl_ns = self.settings.ttl_ns
        period_ns = self.settings.ping_period_ns
        if ttl_ns >= 0:
            period_ns = min(period_ns, ttl_ns // 2) if period_ns >= 0 else ttl_ns // 2
        self._next_ping = now + period_ns
        ttl_ms = ttl_ns // MILLISECOND_NS if ttl_ns >= 0 else -1
        return codec.encode(Ping(ttl_ms), PING_CHANNEL, NEWEST_VERSION)
