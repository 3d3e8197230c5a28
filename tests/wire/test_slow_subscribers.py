"""`pending-message-limit` for subscribers of each protocol, and those that a bridge and wildcards make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.routing.wildcard import WildcardConfiguration
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQTopic
from tests.wire.classic_server import ThreeProtocols
from tests.wire.core.server.server_rig import text_message
from tests.wire.openwire.server.openwire_rig import OpenWireClient, text
from tests.wire.stomp.stomp_rig import StompClient, door, publish

TOPIC = ActiveMQTopic("news")


def server_with(**values: SettingValue) -> ThreeProtocols:
    """A server as an activemq.xml makes it: five messages wait for a subscriber of a topic beyond its prefetch."""
    config = BrokerConfig(wildcard=WildcardConfiguration(any_words=">"))
    settings = AddressSettingsRepository(config.wildcard)
    settings.add(">", {"pending_message_limit": 5, **values})
    return ThreeProtocols(config, settings, door(classic=True))


@pytest.fixture
def server() -> Iterator[ThreeProtocols]:
    made = server_with()
    yield made
    validate(made.broker)


def send(server: ThreeProtocols, first: int, last: int, address: str = "news") -> None:
    sender = server.login()
    for number in range(first, last + 1):
        publish(sender, text_message(address, str(number), False))
        server.settle()


def numbers(first: int, last: int) -> list[str]:
    return [str(number) for number in range(first, last + 1)]


def taken(client: OpenWireClient) -> list[str]:
    """What a client gets that acknowledges each message."""
    found: list[str] = []
    for _ in range(60):
        for each in client.of_kind(MessageDispatch):
            found.append(text(each) or "")
            client.send(client.ack_info(each))
    return found


@pytest.mark.parametrize("name", ["news", "news.>"])
def test_of_openwire(server: ThreeProtocols, name: str) -> None:
    client = server.openwire_client()
    client.consume(ActiveMQTopic(name), prefetch=3)
    send(server, 1, 20)
    assert taken(client) == [*numbers(1, 3), *numbers(16, 20)]


def test_of_openwire_with_a_lower_limit_of_its_own(server: ThreeProtocols) -> None:
    client, other = server.openwire_client("c"), server.openwire_client("d")
    client.consume(TOPIC, prefetch=3, maximum_pending_message_limit=2)
    other.consume(TOPIC, prefetch=3, maximum_pending_message_limit=9)
    send(server, 1, 20)
    assert taken(client) == [*numbers(1, 3), *numbers(19, 20)]
    assert taken(other) == [*numbers(1, 3), *numbers(16, 20)]


def test_an_openwire_client_has_its_whole_prefetch_whatever_it_has_acknowledged(server: ThreeProtocols) -> None:
    """The kernel's credits may be fewer than its window: they are given back in halves."""
    client = server.openwire_client()
    client.consume(TOPIC, prefetch=20)
    send(server, 1, 9)
    assert taken(client) == numbers(1, 9)
    sender = server.login()
    for number in range(10, 31):
        publish(sender, text_message("news", str(number), False, 0))
    server.settle()
    assert taken(client) == numbers(10, 30)


def test_a_rate_of_the_prefetch() -> None:
    server = server_with(pending_message_limit=-1, pending_message_prefetch_rate=2.0)
    client = server.openwire_client()
    client.consume(TOPIC, prefetch=3)
    send(server, 1, 20)
    assert taken(client) == [*numbers(1, 3), *numbers(15, 20)]
    validate(server.broker)


def test_a_client_that_pulls_has_no_prefetch(server: ThreeProtocols) -> None:
    client = server.openwire_client()
    client.consume(TOPIC, prefetch=0)
    send(server, 1, 20)
    (queue,) = [each for each in server.broker.queues.values() if each.spec.address == "news"]
    assert queue.message_count == 5


def test_durable_subscriptions_and_queues_keep_everything(server: ThreeProtocols) -> None:
    client = server.openwire_client()
    client.consume(TOPIC, prefetch=3, subscription_name="d")
    client.consume("orders", prefetch=3)
    send(server, 1, 20)
    send(server, 21, 40, "orders")
    assert sorted(taken(client)) == sorted(numbers(1, 40))


def of_stomp(client: StompClient) -> list[str]:
    found: list[str] = []
    for _ in range(30):
        for each in client.frames():
            found.append(each.body.decode())
            client.send("ACK", id=each["ack"])
    return found


def test_of_stomp(server: ThreeProtocols) -> None:
    first, second = server.stomp_client(), server.stomp_client()
    more = {"activemq.prefetchSize": "3"}
    first.subscribe("/topic/news", ack="client-individual", **more)
    second.subscribe("/topic/news", ack="client-individual", **{"activemq.maximumPendingMessageLimit": "1"}, **more)
    send(server, 1, 20)
    assert of_stomp(first) == [*numbers(1, 3), *numbers(16, 20)]
    assert of_stomp(second) == [*numbers(1, 3), "20"]


def test_of_stomp_that_reads_no_more(server: ThreeProtocols) -> None:
    client = server.stomp_client()
    client.subscribe("/topic/news", **{"activemq.prefetchSize": "3"})
    server.connection(client.conn).on_blocked(server.now, True)
    send(server, 1, 20)
    server.connection(client.conn).on_blocked(server.now, False)
    server.settle()
    assert client.texts() == numbers(13, 20)


def test_of_core() -> None:
    server = server_with(pending_message_limit=2)
    client = server.login()
    client.create_queue("s", "news", 0, durable=False, temporary=True)
    client.consume("s", credits=400)
    send(server, 1, 20)
    found = client.bodies()
    assert 0 < len(found) < 10 and found == numbers(1, len(found))
    assert server.broker.queues["s"].message_count == len(found) + 2
    validate(server.broker)


# -- dead letters -----------------------------------------------------------------------------------
@pytest.mark.parametrize("name", [">", "ActiveMQ.>", "ActiveMQ.DLQ"])
def test_dead_letters_do_not_go_round_by_a_slow_subscriber_that_gets_them(name: str) -> None:
    server = server_with(dead_letter_address="ActiveMQ.DLQ", dead_letter_non_durable=True)
    server.login().create_queue("ActiveMQ.DLQ")
    client, slow = server.openwire_client(), server.openwire_client("d")
    client.consume(ActiveMQTopic(name), prefetch=3)
    slow.consume(TOPIC, prefetch=3)
    send(server, 1, 30)
    dead = server.broker.queues["ActiveMQ.DLQ"]
    found = [str(each.message.text()) for each in dead.live()]
    assert len(found) >= 22 and found == numbers(4, 3 + len(found))  # each once
    validate(server.broker)
