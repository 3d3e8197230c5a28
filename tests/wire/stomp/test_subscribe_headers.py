"""Headers of SUBSCRIBE that change what happens are done, or refused by name."""

from __future__ import annotations

import pytest

from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.properties import Int
from tests.wire.core.server.server_rig import text_message
from tests.wire.stomp.stomp_rig import StompClient, StompServer, classic_server, door, publish


def fill(client: StompClient, *texts: str, destination: str = "/queue/a", **headers: str) -> None:
    for text in texts:
        client.send("SEND", text, destination=destination, **headers)
    client.server.settle()


def texts_of(client: StompClient) -> list[str]:
    return [message.body.decode() for message in client.messages()]


@pytest.mark.parametrize("kind", ["artemis", "classic"])
@pytest.mark.parametrize(
    "header, value",
    [
        ("no_local", "true"),
        ("activemq.noLocal", "true"),
        ("activemq.maximumPendingMessageLimit", "5"),
        ("activemq.priority", "128"),
        ("activemq.priority", "high"),
        ("transformation", "jms-map-json"),
        ("transformation", "jms-xml"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(kind: str, header: str, value: str) -> None:
    server = StompServer() if kind == "artemis" else classic_server()
    client = server.stomp_client()
    client.send("SUBSCRIBE", destination="/topic/t", id="1", receipt="9", **{header: value})
    answer = client.one()
    assert answer.command == "ERROR" and answer["receipt-id"] == "9"
    assert header.replace("no_", "no-") in answer["message"]
    assert client.closed is not None


def test_what_has_no_effect_is_taken(either: StompServer) -> None:
    client = either.stomp_client()
    headers = {
        "activemq.dispatchAsync": "false", "activemq.noLocal": "false", "activemq.exclusive": "false",
        "activemq.maximumPendingMessageLimit": "0", "transformation": "of-mine", "browser": "false",
    }  # fmt: skip
    client.subscribe("/topic/t", **headers)
    fill(client, "1", destination="/topic/t")
    assert texts_of(client) == ["1"]


def test_an_exclusive_subscription_gets_all(either: StompServer) -> None:
    first, second = either.stomp_client(), either.stomp_client()
    first.subscribe("/queue/a")
    second.subscribe("/queue/a", **{"activemq.exclusive": "true"})
    fill(either.stomp_client(), "1", "2", "3", "4")
    assert (texts_of(first), texts_of(second)) == ([], ["1", "2", "3", "4"])


def test_a_higher_priority_comes_first(either: StompServer) -> None:
    first, second = either.stomp_client(), either.stomp_client()
    first.subscribe("/queue/a")
    second.subscribe("/queue/a", ack="client", **{"activemq.priority": "5", "activemq.prefetchSize": "3"})
    fill(either.stomp_client(), "1", "2", "3", "4")
    assert (texts_of(first), texts_of(second)) == (["4"], ["1", "2", "3"])


def test_without_a_priority_others_have_their_turn(either: StompServer) -> None:
    """A subscription has the priority of any other consumer."""
    core = either.login()
    core.create_queue("a")
    core.consume("a", priority=0)
    client = either.stomp_client()
    client.subscribe("/queue/a")
    fill(either.stomp_client(), "1", "2", "3", "4")
    either.settle()
    assert len(texts_of(client)) == 2 and len(core.deliveries()) == 2


@pytest.mark.parametrize(
    "selector, takes",
    [("n = 42", True), ("n > 41.5", True), ("n = 43", False), ("b = true", True), ("b = false", False),
     ("f BETWEEN 1.4 AND 1.6", True), ("t = '42'", True), ("t = 'x'", False)],
)  # fmt: skip
def test_selectors_compare_texts_with_numbers_and_booleans(either: StompServer, selector: str, takes: bool) -> None:
    client = either.stomp_client()
    client.subscribe("/queue/a", selector=selector)
    fill(client, "1", n="42", b="true", f="1.5", t="42")
    assert texts_of(client) == (["1"] if takes else [])


def test_a_selector_compares_the_numbers_of_other_clients(either: StompServer) -> None:
    client = either.stomp_client()
    client.subscribe("/queue/a", selector="n = 42")
    publish(either.login(), text_message("a", "x", False, 1, n=Int(42)))
    assert texts_of(client) == ["x"]


@pytest.mark.parametrize("prefix", ["convert_string_expressions:", "no_convert_string_expressions:"])
def test_a_selector_that_says_how_it_compares_stays(either: StompServer, prefix: str) -> None:
    client = either.stomp_client()
    client.subscribe("/queue/a", selector=f"{prefix}n = 42")
    fill(client, "1", n="42")
    assert texts_of(client) == (["1"] if prefix.startswith("convert") else [])


def test_a_durable_subscription_of_an_older_version_goes_on(either: StompServer) -> None:
    """It has the selector without a prefix: with another one it would begin anew, without its messages."""
    either.login().create_queue("c.s", "t", routing_type=0, filter="n = '1'")
    sender = either.stomp_client()
    fill(sender, "old", destination="/topic/t", n="1")
    client = either.stomp_client(client_id="c")
    client.subscribe("/topic/t", durable_subscription_name="s", selector="n = '1'")
    assert texts_of(client) == ["old"]
    client.receipt("DISCONNECT")
    fill(sender, "new", destination="/topic/t", n="1")
    client = either.stomp_client(client_id="c")
    client.subscribe("/topic/t", durable_subscription_name="s", selector="n = '1'")
    assert texts_of(client) == ["new"]


def test_a_retroactive_subscription_is_told_of_where_nothing_is_kept() -> None:
    settings = AddressSettingsRepository()
    settings.add("kept", {"retroactive_message_count": 2})
    server = StompServer(settings=settings)
    sender = server.stomp_client()
    fill(sender, "1", "2", "3", destination="/topic/kept")
    fill(sender, "1", destination="/topic/other")
    client = server.stomp_client()
    client.subscribe("/topic/kept", "1", **{"activemq.retroactive": "true"})
    client.subscribe("/topic/other", "2", **{"activemq.retroactive": "true"})
    assert texts_of(client) == ["2", "3"]
    in_vain = [fields["address"] for name, fields in server.trace.events if name == "retroactive_consumer_in_vain"]
    assert in_vain == ["other"]


@pytest.mark.parametrize("ack", ["client", "client-individual"])
@pytest.mark.parametrize("command", ["ACK", "NACK"])
def test_an_acknowledgement_of_another_subscription_leaves_the_message(
    either: StompServer, command: str, ack: str
) -> None:
    client = either.stomp_client()
    client.subscribe("/queue/a", "one", ack=ack)
    client.subscribe("/queue/b", "two", ack=ack)
    fill(client, "1")
    name = client.one()["ack"]
    error = client.error(command, id=name, subscription="two", receipt="r")
    assert "'one', not to 'two'" in error
    either.settle()
    assert either.broker.queues["a"].message_count == 1


def test_an_acknowledgement_names_its_subscription(either: StompServer) -> None:
    client = either.stomp_client("1.0")
    client.receipt("SUBSCRIBE", destination="/queue/a", ack="client")
    fill(client, "1")
    client.receipt("ACK", message_id=client.one()["message-id"], subscription="/queue/a")
    assert either.broker.queues["a"].message_count == 0


def test_advisories_are_refused_by_name(either: StompServer) -> None:
    for command, headers in (("SUBSCRIBE", {"id": "1"}), ("SEND", {})):
        error = either.stomp_client().error(
            command, destination="/topic/ActiveMQ.Advisory.Consumer.Queue.a", **headers
        )
        assert "advisories" in error
    assert "ActiveMQ.Advisory.Consumer.Queue.a" not in either.broker.addresses


@pytest.mark.parametrize("name", ["jms-map-json", "jms-map-xml", "JMS-OBJECT-XML"])
def test_a_transformation_of_send_is_refused(either: StompServer, name: str) -> None:
    client = either.stomp_client()
    assert name in client.error("SEND", '{"map":{}}', destination="/queue/a", transformation=name)
    client = either.stomp_client()
    client.receipt("SEND", "1", destination="/queue/a", transformation="unknown")
    client.receipt("SEND", "1", destination="/queue/a", transformation=name, content_length="1")
    assert either.broker.queues["a"].message_count == 2


def test_an_own_id_of_each_message() -> None:
    server = StompServer(acceptor=door(message_ids=True))
    client = server.stomp_client()
    client.subscribe("/queue/a")
    fill(client, "1", "2")
    one, two = client.messages()
    assert one["amqMessageId"].startswith("STOMP") and one["amqMessageId"] != two["amqMessageId"]


def test_a_refused_login_names_the_receipt(server: StompServer) -> None:
    client = StompClient(server)
    client.send("CONNECT", login="admin", passcode="wrong", receipt="5")
    answer = client.one()
    assert answer.command == "ERROR" and answer["receipt-id"] == "5"
