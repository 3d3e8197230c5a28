"""Discovery of ActiveMQ Classic by UDP multicast: what is published, and what is made of what others publish."""

from __future__ import annotations

import pytest

from atalanta.cluster.discovery.multicast_agent import BrokerListener, MulticastAgent
from atalanta.sim.host import Host
from atalanta.wire.endpoint import AcceptorConfig
from atalanta.wire.openwire.acceptor import OpenWireAcceptor
from atalanta.wire.openwire.multicast_discovery import MulticastGroup, parse_group
from atalanta.wire.uri import UriError
from tests.cluster.cluster_rig import Rig

SECOND = 1_000_000_000
OTHER = "default.ActiveMQ-4.alive.%localhost%tcp://other:61616"


class Heard(BrokerListener):
    def __init__(self) -> None:
        self.news: list[str] = []

    def broker_found(self, now: int, url: str) -> None:
        self.news.append(f"+{url}")

    def broker_lost(self, now: int, url: str) -> None:
        self.news.append(f"-{url}")


def agent(*urls: str) -> tuple[MulticastAgent, list[bytes], Heard]:
    sent: list[bytes] = []
    made = MulticastAgent(MulticastGroup(), sent.append)
    for url in urls:
        made.publish(url)
    heard = Heard()
    made.listen(0, heard)
    return made, sent, heard


def test_an_acceptor_is_published_as_classic_does_it() -> None:
    made, sent, _ = agent("tcp://me:61616")
    made.tick(0)
    made.end()
    assert sent == [
        b"default.ActiveMQ-4.alive.%localhost%tcp://me:61616",
        b"default.ActiveMQ-4.dead.%localhost%tcp://me:61616",
    ]


def test_a_newcomer_is_answered_at_once_and_told_once() -> None:
    made, sent, heard = agent("tcp://me:61616")
    for _ in range(3):
        made.on_datagram(1, OTHER.encode())
    assert heard.news == ["+tcp://other:61616"]
    assert len(sent) == 1


def test_a_broker_is_lost_after_ten_periods_or_when_it_says_so() -> None:
    made, _, heard = agent()
    made.on_datagram(0, OTHER.encode())
    made.tick(5 * SECOND)
    assert len(heard.news) == 1
    made.tick(5 * SECOND + 1)
    assert heard.news[1:] == ["-tcp://other:61616"]
    made.on_datagram(6 * SECOND, OTHER.encode())
    made.on_datagram(6 * SECOND, OTHER.replace("alive", "dead").encode())
    made.on_datagram(6 * SECOND, OTHER.replace("alive", "dead").encode())
    assert heard.news[2:] == ["+tcp://other:61616", "-tcp://other:61616"]
    late = Heard()
    made.listen(6 * SECOND, late)
    assert late.news == []


@pytest.mark.parametrize(
    "text",
    [
        "", "default", OTHER.replace("default", "test"), OTHER.replace("alive", "asleep"), "default.ActiveMQ-4.alive.",
        "default.ActiveMQ-4.alive.%localhost%", "default.ActiveMQ-4.alive.%localhost%not a url", OTHER + " x",
        OTHER + "\n", OTHER + "x" * 9000, OTHER.replace("other", "me"), OTHER.replace("other", "ö"),
    ],
)  # fmt: skip
def test_anything_else_is_dropped(text: str) -> None:
    made, sent, heard = agent("tcp://me:61616")
    made.on_datagram(0, text.encode())
    made.on_datagram(0, text.encode()[:-1] + b"\xff")
    assert heard.news == [] and sent == []


def test_the_uri_of_a_group() -> None:
    assert parse_group("multicast://default") == MulticastGroup()
    assert parse_group("multicast://north") == MulticastGroup("north")
    group = parse_group("multicast://239.1.2.3:7000?group=test&interface=127.0.0.1&keepAliveInterval=100")
    assert group == MulticastGroup("test", "239.1.2.3", 7000, "127.0.0.1", 100)
    with pytest.raises(UriError, match="by UDP multicast only"):
        parse_group("rendezvous:default")
    with pytest.raises(UriError, match="write group, interface=ADDRESS or keepAliveInterval"):
        parse_group("multicast://default?networkInterface=eth0")
    with pytest.raises(UriError, match="'0' is not 1 to 60000 ms"):
        parse_group("multicast://default?keepAliveInterval=0")


def test_a_node_publishes_twice_a_second_until_it_stops(rig: Rig) -> None:
    def published(acceptor: AcceptorConfig) -> None:
        acceptor.options(OpenWireAcceptor).discovery_uri = "multicast://default"
        acceptor.options(OpenWireAcceptor).published_host = "seen.from.outside"

    sent: list[tuple[str, str]] = []
    multicast = rig.network.multicast

    def tap(source: Host, group: str, data: bytes) -> None:
        if group == "239.255.2.3:6155":
            sent.append((source.name, data.decode()))
        multicast(source, group, data)

    rig.network.multicast = tap  # type: ignore[method-assign,assignment]
    host = rig.node(openwire=published)
    rig.form()
    rig.run(2)
    alive = ("n0", "default.ActiveMQ-4.alive.%localhost%tcp://seen.from.outside:61617")
    assert sent and 4 <= len(sent) <= 6 and all(each == alive for each in sent)
    host.stop()
    rig.run(1)
    assert sent[-1][1] == "default.ActiveMQ-4.dead.%localhost%tcp://seen.from.outside:61617"
