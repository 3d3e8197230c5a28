"""The command line against a real Artemis (with --target both also against our own node)."""

from __future__ import annotations

import json

import pytest

from tests.cli.calls import Cli
from tests.interop.harness.jms import PASSWORD, USER
from tests.interop.harness.node import BrokerProcess

USUAL_TARGET = "artemis"
pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]


@pytest.fixture
def cli(node: BrokerProcess) -> Cli:
    found = Cli(f"tcp://127.0.0.1:{node.port}")
    found.environment |= {"ATALANTA_USER": USER, "ATALANTA_PASSWORD": PASSWORD}
    return found


def test_produce_browse_stat_consume(cli: Cli) -> None:
    words = ("-p", "n:int=2", "-p", "price=9.5", "-p", "f:float=0.5", "--priority", "7")
    cli("produce", "queue://cli.orders", "--count", "250", "--text", "säge", *words)
    first = cli.rows("browse", "cli.orders", "--count", "1")[0]
    assert (first["text"], first["priority"], first["durable"]) == ("säge", 7, True)
    assert first["properties"] == {"n": 2, "price": 9.5, "f": 0.5}
    assert first["property_types"] == {"n": "int", "f": "float"}
    (row,) = json.loads(cli("queue", "stat", "cli.orders", "--json"))
    assert (row["messageCount"], row["consumerCount"], row["routingType"]) == (250, 0, "ANYCAST")
    assert "cli.orders" in cli("queue", "stat")
    assert cli("consume", "cli.orders", "--count", "250", "--timeout", "10") == "säge\n" * 250
    (row,) = json.loads(cli("queue", "stat", "cli.orders", "--json"))
    assert (row["messageCount"], row["messagesAcked"]) == (0, 250)


def test_topics_and_durable_subscriptions(cli: Cli) -> None:
    reader = ("consume", "topic://cli.news", "--durable", "desk", "--client-id", "c", "--timeout", "0.5")
    cli(*reader, status=66)
    cli("address", "create", "cli.news")
    assert cli(*reader) == ""
    cli("produce", "topic://cli.news", "--file", "-", typed="rain\nsun\n")
    assert cli(*reader) == "rain\nsun\n"


def test_queues_are_made_moved_paused_and_deleted(cli: Cli) -> None:
    cli("queue", "create", "cli.from")
    cli("queue", "create", "cli.to", "--address", "cli.to", "--set", "delay-before-dispatch=-1")
    cli("produce", "cli.from", "--count", "10", "--size", "1000")
    assert cli("queue", "move", "cli.from", "cli.to", "--count", "4").startswith("moved 4 ")
    assert cli("queue", "purge", "cli.from", "--yes").startswith("removed 6 ")
    cli("queue", "pause", "cli.to")
    assert cli("consume", "cli.to", "--timeout", "0.3") == ""
    cli("queue", "resume", "cli.to")
    cli("queue", "delete", "cli.to", "--yes")
    cli("queue", "delete", "cli.to", "--yes", status=66)
    cli("address", "create", "cli.address", "--anycast")
    (row,) = json.loads(cli("address", "show", "cli.address", "--json"))
    assert row["routingTypes"] == "ANYCAST"
    cli("address", "delete", "cli.address")


def test_refusals(cli: Cli, node: BrokerProcess) -> None:
    cli("browse", "nosuch", status=66)
    cli("produce", "x", "--password", "wrong", status=77)
    assert len(cli.errors.splitlines()) == 1
