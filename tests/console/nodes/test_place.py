"""Places of nodes: what the command line may say, and where a password goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.client.options import parse_url
from atalanta.console.nodes.cluster import AgreedPlaces, read_topology
from atalanta.console.nodes.place import place_of
from atalanta.wire.uri import UriError


def test_a_host_has_the_port_of_artemis() -> None:
    place = place_of("broker1")
    assert place.at == "broker1:61616" and place.named
    options = parse_url(place.url)
    assert not options.auto_create_queues and not options.reconnects
    assert parse_url(place.with_option("callTimeout", "5")).call_timeout_ms == 5


def test_options_that_lead_elsewhere_are_left_out() -> None:
    place = place_of("tcp://b:1?reconnectAttempts=-1&connectionTTL=9000&autoCreateQueues=true")
    options = parse_url(place.url)
    assert options.reconnect_attempts == 0 and options.connection_ttl_ms == 9_000 and not options.auto_create_queues


@pytest.mark.parametrize("node", ["tcp://a:1,b:2", "(tcp://a:1,tcp://b:2)", "udp://231.7.7.7:9876", "", "a:b", "ftp://a:1"])
def test_a_list_is_no_node(node: str) -> None:
    with pytest.raises(UriError):
        place_of(node)


def test_a_password_is_not_for_the_command_line() -> None:
    with pytest.raises(UriError, match="page of the log-in"):
        place_of("tcp://a:1?user=me&password=hidden")


@pytest.mark.parametrize(
    ("options", "verifies"),
    [
        ("sslEnabled=true&trustStorePath={ca}", True),
        ("sslEnabled=true&trustStorePath={ca}&verifyHost=false", False),
        ("sslEnabled=true&trustStorePath={ca}&trustAll=true", False),
        ("sslEnabled=true&trustStorePath={ca}&sniHost=other", False),
        ("sslEnabled=true", False),
        ("trustStorePath={ca}", False),
    ],
)
def test_only_an_own_trust_store_proves_other_nodes(tmp_path: Path, options: str, verifies: bool) -> None:
    place = place_of(f"tcp://a:1?{options.format(ca=tmp_path / 'ca.pem')}")
    assert place.verifies is verifies
    other = place.elsewhere("b:2")
    assert (other.at, other.named, other.verifies) == ("b:2", False, verifies)
    assert parse_url(other.url).servers[0].host == "b"


def test_an_agreement_is_of_one_user_and_one_address() -> None:
    agreed = AgreedPlaces()
    agreed.agree("ben", "b:2")
    assert agreed.has("ben", "b:2") and not agreed.has("eve", "b:2") and not agreed.has("ben", "b:3")


@pytest.mark.parametrize("text", [None, "", "{}", "nonsense", "[1, null, {}]", '[{"nodeID": 1, "primary": "a:1"}]'])
def test_a_strange_topology_names_nobody(text: object) -> None:
    assert read_topology(text) == []


def test_a_topology_names_active_and_passive_members() -> None:
    (member,) = read_topology('[{"nodeID": "x", "live": "a:1", "backup": "b:1"}]')
    assert (member.node_id, member.at, member.backup) == ("x", "a:1", "b:1")
