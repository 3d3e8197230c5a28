"""Connectors as they travel, and the datagram of a broadcast group."""

from __future__ import annotations

import pytest

from atalanta.message.encoding.buffer import Reader, Writer
from atalanta.wire.core.broadcast_datagram import (
    Announcement,
    decode_announcement,
    encode_announcement,
)
from atalanta.wire.core.transport import TransportConfiguration, decode_transport, encode_transport
from atalanta.wire.protocol_error import ProtocolError
from tests.wire.core.samples import sample_transport

NODE = "0064f4a2-e595-11f1-9e60-02fc00000001"
UNIQUE = "7ecf3d22-13c7-44b6-9936-ffc959f4138c"


def test_parameters_keep_type_and_order() -> None:
    transport = sample_transport()
    writer = Writer()
    encode_transport(writer, transport)
    again = decode_transport(Reader(writer.getvalue()), "connector")
    assert again == transport
    assert again.entries == {
        "port": (3, "61616"),
        "host": (3, "127.0.0.1"),
        "tcpNoDelay": (0, True),
        "batchDelay": (1, 12),
        "big": (2, 1 << 40),
    }
    assert again.parameters["tcpNoDelay"] == "true"


def test_where_a_connector_leads() -> None:
    assert (sample_transport().host, sample_transport().port) == ("127.0.0.1", 61616)
    bare = TransportConfiguration("bare")
    assert (bare.host, bare.port) == ("localhost", 61616)
    same = TransportConfiguration.tcp("another name", "127.0.0.1", 61616)
    assert same != sample_transport()
    assert same.same_target(sample_transport())


def test_a_datagram_comes_back() -> None:
    sent = Announcement(NODE, UNIQUE, [sample_transport()])
    data = encode_announcement(sent)
    assert decode_announcement(data) == sent
    assert encode_announcement(decode_announcement(data)) == data


def test_a_datagram_as_artemis_sends_it_has_248_bytes() -> None:
    transport = TransportConfiguration.tcp("netty-connector", "127.0.0.1", 61616)
    assert len(encode_announcement(Announcement(NODE, UNIQUE, [transport]))) == 248


def test_a_broken_datagram_is_refused_by_name() -> None:
    data = encode_announcement(Announcement(NODE, UNIQUE, [sample_transport()]))
    for size in range(len(data)):
        with pytest.raises(ProtocolError, match="broadcast datagram"):
            decode_announcement(data[:size])
    with pytest.raises(ProtocolError, match="1 bytes too many"):
        decode_announcement(data + b"x")


@pytest.mark.parametrize("port", ["", "x", "-1", "65536", "123456", "\u0663", 65536, -1, True])
def test_a_connector_without_a_real_port_is_refused_where_it_comes_in(port: bool | int | str) -> None:
    transport = TransportConfiguration("bare")
    transport.put("port", port)
    with pytest.raises(ProtocolError, match="port"):
        decode_announcement(encode_announcement(Announcement(NODE, UNIQUE, [transport])))
