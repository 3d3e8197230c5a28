"""A connection this node opened to another broker: CORE frames both ways, pings, and the other's good-bye.

Who logs in how, and what is said then, is up to the kind of link: the cluster's (cluster/links/cluster_link.py) or a
core bridge's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i64_be
from mypy_extensions import mypyc_attr

from atalanta.wire.connection import Connection, ProtocolError
from atalanta.wire.core.frames import Framer
from atalanta.wire.core.packet_types import (
    NEWEST_VERSION,
    NULL_RESPONSE,
    PACKETS_CONFIRMED,
    PING_CHANNEL,
    packet_name,
)
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import (
    Disconnect,
    DisconnectV2,
    DisconnectV3,
    NullResponse,
    Ping,
)
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.http_upgrade import NONCE_BYTES, UpgradeRequest, upgrade_of

if TYPE_CHECKING:
    from atalanta.wire.host import Host

PINGS_PER_TTL: Final = 3
CORRELATION_BYTES: Final = 8  # the payload of a NULL_RESPONSE


class LinkTimes:
    """How long a link may be silent (`connection_ttl_ms`), how often it is looked after, how long opening may take.

    `call_timeout_ms` -1: as long as the link is not silent.
    """

    def __init__(self, connection_ttl_ms: int, check_period_ms: int, call_timeout_ms: int) -> None:
        self.connection_ttl_ms = connection_ttl_ms
        self.check_period_ms = check_period_ms
        self.call_timeout_ms = call_timeout_ms


@mypyc_attr(allow_interpreted_subclasses=True)
class DialedLink(Connection):
    """`said_goodbye` when the other side left in good order; `blocked` while it does not take what was written."""

    def __init__(self, host: Host, conn: int, now: int, times: LinkTimes) -> None:
        self.host = host
        self.conn = conn
        self.times = times
        self.out: BytesWriter = BytesWriter()
        self.dirty: bool = False
        self.framer: Framer = Framer(False)
        self.gone: bool = False
        self.said_goodbye: bool = False
        self.blocked: bool = False
        self.last_seen: int = now
        self.last_ping: int = now
        self.upgrade: UpgradeRequest | None = None  # CORE waits for the answer to it
        self.waiting_since: int = now  # for the answers that open the link; 0 once it is open

    # -- what a kind of link does ---------------------------------------------------------------
    def on_packet(self, now: int, packet: Packet, channel: int) -> None:
        """Anything that is not about the connection itself."""
        raise NotImplementedError

    def on_goodbye(self, packet: Disconnect | DisconnectV2 | DisconnectV3) -> None:
        """The other side leaves in good order; `on_lost` follows."""
        return None

    def on_answer(self, now: int, channel: int, correlation: int) -> None:
        """A plain answer (NULL_RESPONSE), of which there is one for every message sent."""
        self.on_packet(now, NullResponse(correlation), channel)

    def on_lost(self, now: int, why: str) -> None:
        """The connection is gone; `said_goodbye` tells how."""
        raise NotImplementedError

    # -- bytes ----------------------------------------------------------------------------------
    def feed(self, now: int, data: bytes) -> None:
        self.last_seen = now
        if self.upgrade is not None:
            data = self._upgraded(self.upgrade, data)
            if not data:
                return
        framer = self.framer
        framer.begin(data)
        while framer.step():
            if self.gone:
                return
            if framer.type == NULL_RESPONSE and framer.end - framer.start == CORRELATION_BYTES:
                correlation = int(read_i64_be(framer.data, framer.start))
                self.on_answer(now, framer.channel, correlation)
            elif framer.type != PACKETS_CONFIRMED:
                self._frame(now, framer.type, framer.channel, framer.data[framer.start : framer.end])

    def _frame(self, now: int, packet_type: int, channel: int, payload: bytes) -> None:
        packet = codec.decode(packet_type, payload, NEWEST_VERSION)
        if isinstance(packet, Ping):
            return
        if isinstance(packet, Disconnect | DisconnectV2 | DisconnectV3):
            self.said_goodbye = True
            self.on_goodbye(packet)
            self.close(f"the peer said {packet_name(packet.type)}")
        else:
            self.on_packet(now, packet, channel)

    def through(self, target: TransportConfiguration) -> None:
        """Before anything else is said: an HTTP request that asks for CORE, if the connector wants it so."""
        nonce = self.host.broker.ids.secret(NONCE_BYTES)
        try:
            self.upgrade = upgrade_of(target.parameters, target.host, nonce)
        except ProtocolError as error:
            # Anybody may announce such a connector. Nothing is said there.
            self.upgrade = UpgradeRequest("", nonce)
            self.close(str(error))
            return
        if self.upgrade is not None:
            self.host.wire.write(self.conn, self.upgrade.request)

    def _upgraded(self, upgrade: UpgradeRequest, data: bytes) -> bytes:
        """What came behind the answer; what waited for it goes out with this turn."""
        upgrade.feed(data)
        if upgrade.done:
            self.upgrade = None
            self.write(b"")
        return upgrade.rest

    def send(self, packet: Packet, channel: int) -> None:
        self.write(codec.encode(packet, channel, NEWEST_VERSION))

    def write(self, data: bytes) -> None:
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)
        self.out.write(data)

    def flush(self, now: int) -> None:
        self.dirty = False
        if len(self.out) and self.upgrade is None:
            data = self.out.getvalue()
            self.out.truncate(0)
            self.host.wire.write(self.conn, data)

    def close(self, why: str) -> None:
        """At the end of the turn, after what was written."""
        self.host.closing.append((self.conn, why))

    # -- life -----------------------------------------------------------------------------------
    def on_blocked(self, now: int, blocked: bool) -> None:
        self.blocked = blocked

    def check_alive(self, now: int) -> bool:
        times = self.times
        limit_ns = times.call_timeout_ms * 1_000_000
        if self.waiting_since and 0 <= limit_ns < now - self.waiting_since:
            return False
        ttl_ns = times.connection_ttl_ms * 1_000_000
        if now - self.last_ping >= min(times.check_period_ms * 1_000_000, ttl_ns // PINGS_PER_TTL):
            self.last_ping = now
            self.send(Ping(times.connection_ttl_ms), PING_CHANNEL)
        return now - self.last_seen <= ttl_ns

    def stop(self, now: int) -> None:
        """Our own good-bye, also on connections we opened (fact sheet, "Leaving")."""
        self.send(DisconnectV3(node_id=self.host.broker.node_id), PING_CHANNEL)
        self.close("the node stops")

    def closed(self, now: int, why: str) -> None:
        if not self.gone:
            self.gone = True
            self.on_lost(now, why)
