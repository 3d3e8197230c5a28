"""A CORE connection that this node opened to another broker, over the client's CoreTransport.

The transport has frames, pings and timeouts (wire/core/client/transport.py). The kinds of link differ in their
login and in the packets they handle: cluster/links/cluster_link.py, core bridges (cluster/core_bridges/link.py) and
the pools of connection routers (cluster/connection_routers/target.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i64_be
from mypy_extensions import mypyc_attr

from atalanta.wire.connection import TransportConnection
from atalanta.wire.core.client.answer_order import NO_CORRELATION
from atalanta.wire.core.client.settings import ConnectionSettings
from atalanta.wire.core.client.transport import (
    MILLISECOND_NS,
    CoreTransport,
    DisconnectNotice,
    disconnect_notice_of,
)
from atalanta.wire.core.client.version_negotiation import VersionNegotiation
from atalanta.wire.core.packet_types import (
    ASYNC_RESPONSE_VERSION,
    NULL_RESPONSE,
    PING_CHANNEL,
    packet_name,
)
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import NullResponse, disconnect_of
from atalanta.wire.core.transport import TransportConfiguration
from atalanta.wire.http_upgrade import NONCE_BYTES, upgrade_of
from atalanta.wire.protocol_error import ProtocolError

if TYPE_CHECKING:
    from atalanta.wire.server import WireServer

PINGS_PER_TTL: Final = 3
CORRELATION_BYTES: Final = 8  # the payload of a NULL_RESPONSE


def link_settings(
    connection_ttl_ms: int, check_period_ms: int, call_timeout_ms: int
) -> ConnectionSettings:
    """Returns the settings of a link. `call_timeout_ms` limits the opening; -1: only the TTL does."""
    ttl_ns = connection_ttl_ms * MILLISECOND_NS
    return ConnectionSettings(
        ttl_ns=ttl_ns,
        ping_period_ns=min(check_period_ms * MILLISECOND_NS, ttl_ns // PINGS_PER_TTL),
        call_timeout_ns=call_timeout_ms * MILLISECOND_NS if call_timeout_ms >= 0 else -1,
    )


@mypyc_attr(allow_interpreted_subclasses=True)
class DialedLink(TransportConnection):
    """The link's state. `said_goodbye`: the other side sent DISCONNECT. `blocked`: it reads too slowly."""

    def __init__(self, host: WireServer, conn: int, now: int, settings: ConnectionSettings) -> None:
        self.host = host
        self.conn = conn
        self.transport: CoreTransport = CoreTransport(settings, now)
        self.negotiation = VersionNegotiation(self.send)
        self.out: BytesWriter = BytesWriter()
        self.dirty: bool = False
        self.gone: bool = False
        self.said_goodbye: bool = False
        self.blocked: bool = False

    # -- for subclasses -------------------------------------------------------------------------
    def log_in(self, now: int) -> None:
        """Sends the first packets behind handshake and ping. The call timeout runs until `transport.answered`."""
        raise NotImplementedError

    def on_packet(self, now: int, packet: Packet, channel: int) -> None:
        """Handles every packet but pings, DISCONNECT and PACKETS_CONFIRMED."""
        raise NotImplementedError

    def on_disconnect_notice(self, goodbye: DisconnectNotice) -> None:
        """Handles DISCONNECT of the other side; `on_lost` follows."""
        return None

    def on_answer(self, now: int, channel: int, correlation: int) -> None:
        """Handles a NULL_RESPONSE, of which there is one for each message sent.

        The correlation id is NO_CORRELATION at brokers before Artemis 2.7 (`answered_by`).
        """
        self.on_packet(now, NullResponse(correlation), channel)

    def on_lost(self, now: int, why: str) -> None:
        """Handles the end of the connection; `said_goodbye` is set if the other side sent DISCONNECT."""
        raise NotImplementedError

    # -- version --------------------------------------------------------------------------------
    @property
    def version(self) -> int:
        """Returns the protocol version in which packets are written: the newest, until the peer is known as older."""
        return self.negotiation.version

    def answered_by(self, correlation: int, unanswered: Mapping[int, object]) -> int:
        """Returns the correlation id that an answer is for, among those that are unanswered, in their order.

        Brokers before Artemis 2.7 answer in that order, without an id.
        """
        if correlation != NO_CORRELATION or self.version >= ASYNC_RESPONSE_VERSION:
            return correlation
        return next(iter(unanswered), NO_CORRELATION)

    # -- bytes ----------------------------------------------------------------------------------
    def open(self, now: int, target: TransportConfiguration | None = None) -> None:
        """Begins CORE; before that HTTP, if the connector `target` has httpUpgradeEnabled."""
        transport = self.transport
        upgrade = None
        if target is not None:
            nonce = self.host.broker.ids.secret(NONCE_BYTES)
            try:
                upgrade = upgrade_of(target.parameters, target.host, nonce)
            except ProtocolError as error:
                # Any peer may announce such a connector. Nothing is written there.
                self.close(str(error))
                return
        self._append(transport.begin(now, upgrade))
        transport.await_answer(now)
        self.log_in(now)

    def feed(self, now: int, data: bytes) -> None:
        transport = self.transport
        released = transport.receive(now, data)
        if released:
            self._append(released)
        framer = transport.framer
        command = self.host.broker.command
        command.begin()
        while transport.step():
            if self.gone:
                return
            if framer.type == NULL_RESPONSE and framer.end - framer.start == CORRELATION_BYTES:
                correlation = int(read_i64_be(framer.data, framer.start))
                command.begin_change()
                self.on_answer(now, framer.channel, correlation)
            elif framer.type == NULL_RESPONSE and framer.end == framer.start:
                command.begin_change()
                self.on_answer(now, framer.channel, NO_CORRELATION)
            else:
                packet = transport.packet(self.version)
                command.begin_change()
                self._packet(now, packet, framer.channel)
            command.begin()

    def _packet(self, now: int, packet: Packet, channel: int) -> None:
        if self.negotiation.on_packet(packet, channel):
            return
        goodbye = disconnect_notice_of(packet)
        if goodbye is None:
            self.on_packet(now, packet, channel)
            return
        self.said_goodbye = True
        self.on_disconnect_notice(goodbye)
        self.close(f"the peer said {packet_name(packet.type)}")

    def send(self, packet: Packet, channel: int) -> None:
        """Sends a packet of the link itself; the link ends if it cannot be encoded."""
        try:
            frame = codec.encode(packet, channel, self.version)
        except Exception as error:  # nothing was written, whatever it is
            broker = self.host.broker
            self.close(broker.failures.report(broker.now, "CORE", packet_name(packet.type), self.peer(), error))
            return
        self.write(frame)

    def write(self, data: bytes) -> None:
        if not self.transport.hold(data):
            self._append(data)

    def _append(self, data: bytes) -> None:
        if not self.dirty:
            self.dirty = True
            self.host.dirty.append(self.conn)
        self.out.write(data)

    def flush(self, now: int) -> None:
        self.dirty = False
        if len(self.out):
            data = self.out.getvalue()
            self.out.truncate(0)
            self.host.wire.write(self.conn, data)

    def close(self, why: str) -> None:
        """Closes the connection at the end of the event-loop iteration, after the bytes written so far."""
        self.host.closing.append((self.conn, why))

    # -- life -----------------------------------------------------------------------------------
    def on_blocked(self, now: int, blocked: bool) -> None:
        self.blocked = blocked

    def check_alive(self, now: int) -> bool:
        transport = self.transport
        if transport.failure(now):
            return False
        if transport.ping_due(now):
            self.write(transport.ping(now))
        return True

    def stop(self, now: int) -> None:
        """Sends DISCONNECT as Artemis does, also on connections that this node opened."""
        self.send(disconnect_of(self.version, self.host.broker.node_id), PING_CHANNEL)
        self.close("the node stops")

    def closed(self, now: int, why: str) -> None:
        if not self.gone:
            self.gone = True
            self.on_lost(now, why)
