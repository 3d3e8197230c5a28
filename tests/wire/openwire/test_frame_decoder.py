"""The decoder of a connection: negotiation, pieces of any size, and what is accepted before login."""

from __future__ import annotations

import pytest

from atalanta.message.encoding.buffer import DecodeError
from atalanta.wire.openwire.commands.brokers import BrokerInfo
from atalanta.wire.openwire.commands.connections import (
    ConnectionControl,
    ConnectionInfo,
    KeepAliveInfo,
    ShutdownInfo,
    WireFormatInfo,
)
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue
from atalanta.wire.openwire.commands.identifiers import ConnectionId, SessionId
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage
from atalanta.wire.openwire.commands.producers import SessionInfo
from atalanta.wire.openwire.encoding.structure import DataStructure
from atalanta.wire.openwire.frame_decoder import FrameDecoder
from atalanta.wire.openwire.options import HANDSHAKE, WireFormatOptions, info_of, negotiated
from atalanta.wire.openwire.wire_format import WireFormat
from atalanta.wire.protocol_error import ProtocolError

OURS = WireFormatOptions()
LOGIN = ConnectionInfo(ConnectionId("c"), "client", command_id=1, response_required=True)
SESSION = SessionInfo(SessionId("c", 1), command_id=2)
MESSAGE = ActiveMQTextMessage(destination=ActiveMQQueue("q"), content=bytes(200_000))


class Client:
    """Writes the bytes of a client with these options."""

    def __init__(self, options: WireFormatOptions = OURS) -> None:
        self.hello = WireFormat(HANDSHAKE).encode(info_of(options))
        self.wire = WireFormat(negotiated(OURS, options))

    def bytes_of(self, *commands: DataStructure) -> bytes:
        return b"".join(self.wire.encode(each) for each in commands)


def fed(decoder: FrameDecoder, data: bytes, step: int = 1 << 30) -> list[DataStructure]:
    """Feeds the bytes in pieces, and logs in at a ConnectionInfo."""
    found = []
    for at in range(0, len(data), step):
        decoder.feed(data[at : at + step])
        while (command := decoder.next()) is not None:
            found.append(command)
            if isinstance(command, ConnectionInfo):
                decoder.open()
    return found


@pytest.mark.parametrize("step", [1, 3, 7, 1000, 70_000, 1 << 30])
@pytest.mark.parametrize(
    "options", [OURS, WireFormatOptions(tight=False, cache=False), WireFormatOptions(version=3)]
)
def test_commands_come_in_pieces_of_any_size(step: int, options: WireFormatOptions) -> None:
    client = Client(options)
    content = MESSAGE if step > 100 else ActiveMQTextMessage(content=bytes(2000))
    sent = [KeepAliveInfo(), LOGIN, SESSION, content, SESSION]
    found = fed(FrameDecoder(OURS), client.hello + client.bytes_of(*sent), step)
    assert isinstance(found[0], WireFormatInfo) and found[1:] == sent


def test_both_sides_know_the_options_that_hold() -> None:
    decoder = FrameDecoder(OURS)
    theirs = WireFormatOptions(
        version=9, tight=False, cache_size=500, inactivity_ms=5000, frame_bytes_max=70_000, host="a"
    )
    fed(decoder, Client(theirs).hello)
    assert decoder.theirs == theirs
    options = decoder.format.options
    assert (options.version, options.tight, options.cache, options.cache_size) == (9, False, True, 500)
    assert (options.inactivity_ms, options.frame_bytes_max, options.host) == (5000, 70_000, "a")


def test_a_backup_link_may_stay_before_login() -> None:
    client = Client()
    sent = [KeepAliveInfo(), ConnectionControl(fault_tolerant=True), BrokerInfo(), KeepAliveInfo()]
    found = fed(FrameDecoder(OURS), client.hello + client.bytes_of(*sent, ShutdownInfo()))
    assert len(found) == 6


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ([SESSION], "type 4 before ConnectionInfo"),
        ([ActiveMQTextMessage()], "type 28 before ConnectionInfo"),
        ([BrokerInfo(), BrokerInfo()], "a second BrokerInfo before ConnectionInfo"),
        ([BrokerInfo(broker_url="x" * 30_000, broker_name="x" * 30_000, network_properties="x" * 9000)],
         "a frame of 69"),
        ([LOGIN, info_of(OURS)], "a second WireFormatInfo"),
    ],
)  # fmt: skip
def test_what_is_refused(commands: list[DataStructure], message: str) -> None:
    client = Client()
    decoder = FrameDecoder(OURS)
    with pytest.raises(ProtocolError, match=message):
        fed(decoder, client.hello + client.bytes_of(*commands))


@pytest.mark.parametrize(
    ("start", "message"),
    [
        ("00000001 0a", "begins with type 10, not WireFormatInfo"),
        ("00100000", "a frame of 1048576 bytes: 1 to 16384"),
        ("00000000", "a frame of 0 bytes"),
        ("ffffffff", "a frame of -1 bytes"),
    ],
)
def test_a_connection_begins_with_its_options(start: str, message: str) -> None:
    decoder = FrameDecoder(OURS)
    decoder.feed(bytes.fromhex(start))
    with pytest.raises(ProtocolError, match=message):
        decoder.next()


def test_a_frame_beyond_the_limit_is_refused_by_its_length() -> None:
    ours = WireFormatOptions(frame_bytes_max=1000)
    client = Client()
    decoder = FrameDecoder(ours)
    fed(decoder, client.hello + client.bytes_of(LOGIN))
    decoder.feed((1001).to_bytes(4, "big"))
    with pytest.raises(ProtocolError, match="a frame of 1001 bytes: 1 to 1000"):
        decoder.next()


def test_frames_without_a_length_need_another_transport() -> None:
    both = WireFormatOptions(size_prefix_disabled=True)
    with pytest.raises(ProtocolError, match="SizePrefixDisabled"):
        fed(FrameDecoder(both), Client(both).hello)


def test_another_magic_is_no_openwire() -> None:
    hello = WireFormat(HANDSHAKE).encode(WireFormatInfo(b"ActiveMX", 12))
    with pytest.raises(DecodeError, match="magic"):
        fed(FrameDecoder(OURS), hello)
