"""Acceptor and connector URIs."""

from __future__ import annotations

import pytest

from atalanta.config.acceptors import parse_acceptor
from atalanta.wire.endpoint import parse_connector
from atalanta.wire.stomp.acceptor import StompAcceptor
from atalanta.wire.uri import UriError


def test_acceptor() -> None:
    acceptor = parse_acceptor(
        "artemis",
        "tcp://0.0.0.0:61616?protocols=core,AMQP;connectionsAllowed=7;tcpNoDelay=FALSE;"
        "clusterConnection=c;handshake-timeout=0;useEpoll=true;anycastPrefix=jms.queue.",
    )
    assert acceptor.protocols == ("CORE", "AMQP")
    assert acceptor.serves("CORE") and not acceptor.serves("STOMP")
    assert (acceptor.connections_allowed, acceptor.tcp_no_delay) == (7, False)
    assert (acceptor.cluster_connection, acceptor.handshake_timeout_s) == ("c", 0)
    assert acceptor.anycast_prefix == "jms.queue."
    assert [name for name, _ in acceptor.unused] == ["useEpoll"]
    assert parse_acceptor("a", "tcp://h").port == 61616
    assert parse_acceptor("a", "tcp://h").serves("CORE")


def test_parameters_of_stomp() -> None:
    acceptor = parse_acceptor(
        "stomp",
        "tcp://h:61613?protocols=STOMP;stompConsumerWindowSize=-1;heartBeatToConnectionTtlModifier=1.5;"
        "disableStompServerHeader=true;stompEnableMessageId=true",
    )
    assert (acceptor.options(StompAcceptor).window_bytes, acceptor.options(StompAcceptor).ttl_modifier) == (-1, 1.5)
    assert acceptor.options(StompAcceptor).server_header_off
    assert acceptor.options(StompAcceptor).message_ids and not acceptor.unused
    with pytest.raises(UriError, match="stompDefaultHeartBeat"):
        parse_acceptor("a", "tcp://h?stompDefaultHeartBeat=often")
    for text, window in (
        ("stompConsumerCredits=1", 1),
        ("stompConsumerCredits=1;stompConsumerWindowSize=2", 2),
        ("stompConsumerWindowSize=2;stompConsumerCredits=1", 2),
    ):
        old = parse_acceptor("a", f"tcp://h?{text};stomp-enable-message-id=true")
        assert (old.options(StompAcceptor).window_bytes, old.options(StompAcceptor).message_ids) == (window, True)
        assert not old.unused
    for wrong in ("0.5", "nan", "inf", "two"):
        with pytest.raises(UriError, match="heartBeatToConnectionTtlModifier"):
            parse_acceptor("a", f"tcp://h?heartBeatToConnectionTtlModifier={wrong}")


def test_unknown_parameters_are_listed_with_a_near_name() -> None:
    acceptor = parse_acceptor("a", "tcp://h:1?conectionsAllowed=3;zzz=1")
    assert dict(acceptor.named) == {
        "conectionsAllowed": "unknown: nothing is done; did you mean 'connectionsAllowed'?",
        "zzz": "unknown: nothing is done",
    }


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("sslEnabled=true;kerb5Config=k", "kerb5Config: Kerberos"),
        ("sslEnabled=perhaps", "neither true nor false"),
        ("connectionsAllowed=many", "not a whole number"),
        ("connectionsAllowed=-2", "less than -1"),
        ("protocols=CORE,SMTP", "'SMTP' is none of"),
    ],
)
def test_what_is_refused(params: str, words: str) -> None:
    with pytest.raises(UriError, match=words):
        parse_acceptor("a", f"tcp://h:1?{params}")


def test_switched_off_tls_is_no_trouble() -> None:
    assert parse_acceptor("a", "tcp://h:1?sslEnabled=false").unused == []


def test_tls_parameters_and_what_peers_are_told_of_them() -> None:
    text = (
        "tcp://h:1?sslEnabled=true;keyStorePath=k.p12;keyStorePassword=s;trustStorePath=t.p12;"
        "verifyHost=false;sslProvider=OPENSSL"
    )
    acceptor = parse_acceptor("a", text)
    assert acceptor.tls is not None and acceptor.tls.key_store_path == "k.p12"
    assert acceptor.tls.verify_host is False
    assert [name for name, _ in acceptor.unused] == ["sslProvider"]
    told = parse_connector("c", text).transport_params()
    assert told["sslEnabled"] == "true" and told["trustStorePath"] == "t.p12"
    assert "keyStorePath" not in told and "keyStorePassword" not in told


def test_connector_travels_as_strings() -> None:
    connector = parse_connector("netty-connector", "tcp://127.0.0.1:61610?tcpNoDelay=true")
    assert connector.transport_params() == {
        "port": "61610",
        "host": "127.0.0.1",
        "tcpNoDelay": "true",
    }
    with pytest.raises(UriError):
        parse_connector("c", "tcp://127.0.0.1:61610?socksEnabled=true")
