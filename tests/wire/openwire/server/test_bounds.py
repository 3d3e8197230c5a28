"""Bounds of what a client may say: what others are told of it can be encoded, and it itself can be answered."""

from __future__ import annotations

import pytest

from atalanta.wire.openwire.commands.connections import WireFormatInfo
from atalanta.wire.openwire.encoding.primitives import encode_map
from atalanta.wire.openwire.options import HANDSHAKE, MAGIC, info_of
from atalanta.wire.openwire.wire_format import WireFormat
from atalanta.message.properties import Int
from tests.wire.openwire.server.openwire_rig import OPTIONS, OpenWireClient, OpenWireServer

LONG_NUMBERS = (0, 1, -1, 89, 1 << 31, (1 << 63) - 1, -(1 << 63))
NUMBERS = ("MaxFrameSize", "CacheSize", "MaxInactivityDuration", "MaxInactivityDurationInitalDelay")


def greeting(version: int = 12, **values: object) -> bytes:
    """A WireFormatInfo with other values."""
    from atalanta.wire.openwire.encoding.primitives import decode_map

    usual = decode_map(info_of(OPTIONS).marshalled_properties or b"", "options", 64, 0)
    return WireFormat(HANDSHAKE).encode(WireFormatInfo(MAGIC, version, encode_map("options", usual | values)))


def stranger(server: OpenWireServer, first: bytes) -> OpenWireClient:
    client = OpenWireClient(server, "x")
    client.feed(first)
    server.settle()
    server.turn()
    return client


@pytest.mark.parametrize("size", [1, 50, 89, 1_023])
def test_a_peer_that_takes_no_answer_is_refused_before_its_login(server: OpenWireServer, size: int) -> None:
    client = stranger(server, greeting(MaxFrameSize=size))
    assert client.closed is not None and f"MaxFrameSize at byte 0: {size} bytes" in client.closed
    assert server.openwire_client("b").closed is None


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("value", LONG_NUMBERS)
def test_whatever_numbers_a_peer_announces_it_is_served_or_refused(
    server: OpenWireServer, name: str, value: int
) -> None:
    known: object = Int(value) if name == "CacheSize" and abs(value) < 1 << 31 else value
    client = stranger(server, greeting(**{name: known}))
    if client.closed is None:
        client.output()
        client.succeeds(client.login_info("c", "admin", "admin"))
    else:
        assert name in client.closed
    assert server.openwire_client("b").closed is None


@pytest.mark.parametrize("version", [-(1 << 31), -1, 0, 13, (1 << 31) - 1])
def test_whatever_version_a_peer_announces_it_is_served(server: OpenWireServer, version: int) -> None:
    client = stranger(server, greeting(version))
    client.output()
    client.succeeds(client.login_info("c", "admin", "admin"))
