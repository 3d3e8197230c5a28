"""What a member tells others of its acceptors for OpenWire, and what is taken from others."""

from __future__ import annotations

import pytest

from atalanta.cluster.balancing.client_count import KIND, read_count
from atalanta.cluster.balancing.member_brokers import own_broker
from atalanta.cluster.config import ClusterConnectionConfig, ClusterSettings
from atalanta.cluster.topology.topology import Member
from atalanta.config.acceptors import parse_acceptor
from atalanta.message.message import Message
from atalanta.wire.core.transport import TransportConfiguration

CONNECTOR = TransportConfiguration.tcp("c", "node.example", 61616)


def test_acceptors_are_told_by_the_host_that_clients_reach() -> None:
    acceptors = [
        parse_acceptor("plain", "tcp://10.0.0.1:61617"),
        parse_acceptor("stomp", "tcp://10.0.0.1:61613?protocols=STOMP"),
        parse_acceptor("idle", "tcp://10.0.0.1:61620?autoStart=false"),
        parse_acceptor("secure", "tcp://0.0.0.0:61618?sslEnabled=true;protocols=OPENWIRE"),
        parse_acceptor("six", "tcp://[fd00::1]:61619?protocols=OPENWIRE"),
        parse_acceptor("outside", "tcp://0.0.0.0:61621?publishedHost=shop.example"),
        parse_acceptor("announced", "tcp://0.0.0.0:61616"),
    ]
    told = own_broker("shop", acceptors, CONNECTOR)
    assert told.name == "shop"
    assert told.uris == (
        "tcp://node.example:61616", "tcp://10.0.0.1:61617", "ssl://node.example:61618", "tcp://[fd00::1]:61619",
        "tcp://shop.example:61621",
    )  # fmt: skip
    assert told.uri_for("ssl") == "ssl://node.example:61618"
    assert told.uri_for("ws") is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tcp://a:1,ssl://[fd00::1]:2", ("tcp://a:1", "ssl://[fd00::1]:2")),
        ("tcp://a:1?x=y,vm://a,tcp://,tcp://a b:1,tcp://b:2\n,tcp://c:3", ("tcp://c:3",)),
        (",".join(["tcp://a:1"] * 20), ("tcp://a:1",) * 16),
        ("tcp://a:1," + "x" * 5000, ()),
        (7, ()),
        (None, ()),
    ],
)
def test_what_a_member_tells_is_checked(text: object, found: tuple[str, ...]) -> None:
    message = Message.create("notifications", b"")
    fields = {
        "_AMQ_NotifType": KIND, "_ATALANTA_Node": "n", "_ATALANTA_Door": CONNECTOR.address, "_ATALANTA_Clients": 3,
    }  # fmt: skip
    for name, value in {**fields, "_ATALANTA_Name": "shop", "_ATALANTA_OpenWire": text}.items():
        message.properties.put(name, value)  # type: ignore[arg-type]
    count = read_count(
        0, message, Member("n", 1, CONNECTOR, None, None, None), ClusterConnectionConfig(), ClusterSettings()
    )
    assert count is not None and count.clients == 3
    assert (count.told.name, count.told.uris) == ("shop", found)
