"""Subscriptions: acknowledgement modes, NACK, windows, selectors, durable ones, topics and temporary queues."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import SECOND, RecordingEndpoint
from tests.wire.core.server.server_rig import text_message
from tests.wire.stomp.stomp_rig import StompClient, StompServer, publish


def fill(client: StompClient, *texts: str, destination: str = "/queue/a", **headers: str) -> None:
    for text in texts:
        client.send("SEND", text, destination=destination, **headers)
    client.server.settle()


def count(server: StompServer, queue: str = "a") -> int:
    server.settle()
    return server.broker.queues[queue].message_count


@pytest.mark.parametrize("version", ["1.2", "1.1", "1.0"])
def test_a_cumulative_acknowledgement_takes_all_before_it(server: StompServer, version: str) -> None:
    client = server.stomp_client(version)
    client.subscribe("/queue/a", ack="client")
    fill(client, "1", "2", "3")
    messages = client.messages()
    assert [message.body for message in messages] == [b"1", b"2", b"3"]
    if version == "1.2":
        client.receipt("ACK", id=messages[1]["ack"])
    else:
        client.receipt("ACK", message_id=messages[1]["message-id"], subscription="1")
    assert count(server) == 1


def test_an_individual_acknowledgement_takes_one(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client-individual")
    fill(client, "1", "2", "3")
    messages = client.messages()
    client.receipt("ACK", id=messages[1]["ack"])
    assert count(server) == 2
    client.receipt("DISCONNECT")
    other = server.stomp_client()
    other.subscribe("/queue/a")
    assert other.texts() == ["1", "3"]


def test_nack_delivers_again_and_then_to_the_dead_letter_address() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"dead_letter_address": "DLQ", "max_delivery_attempts": 2})
    server = StompServer(settings=settings)
    core = server.login()
    core.create_queue("DLQ")
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client-individual")
    fill(client, "1")
    (first,) = client.messages()
    assert first["redelivered"] == "false"
    client.send("NACK", id=first["ack"])
    (second,) = client.messages()
    assert second["redelivered"] == "true" and second.body == b"1"
    client.receipt("NACK", id=second["ack"])
    assert client.frames() == [] and count(server) == 0 and count(server, "DLQ") == 1
    dead = server.stomp_client()
    dead.subscribe("/queue/DLQ")
    (message,) = dead.messages()
    assert message["_AMQ_ORIG_ADDRESS"] == "a"


def test_nack_without_requeue_goes_to_the_dead_letter_address_at_once() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"dead_letter_address": "DLQ"})
    server = StompServer(settings=settings)
    server.login().create_queue("DLQ")
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client")
    fill(client, "1", "2")
    client.receipt("NACK", id=client.messages()[1]["ack"], requeue="false")
    assert count(server) == 0 and count(server, "DLQ") == 2


def test_a_dead_letter_queue_of_its_own_is_consumed_by_its_name() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"dead_letter_address": "DLA", "auto_create_dead_letter_resources": True})
    server = StompServer(settings=settings)
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client")
    fill(client, "1")
    client.receipt("NACK", id=client.messages()[0]["ack"], requeue="false")
    client.subscribe("/queue/DLQ.a", "2")
    assert client.texts() == ["1"]


def test_the_window_holds_messages_back_until_they_are_acknowledged(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client", **{"activemq.prefetchSize": "2"})
    client.subscribe("/queue/b", "2", ack="client-individual", consumer_window_size="0")
    fill(client, "1", "2", "3", "4", "5")
    fill(client, "x", "y", destination="/queue/b")
    got = client.messages()
    assert [message.body for message in got] == [b"1", b"2", b"x"]
    client.send("ACK", id=got[1]["ack"])
    client.send("ACK", id=got[2]["ack"])
    assert sorted(client.texts()) == ["3", "4", "y"]


def test_a_selector_chooses(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", selector="color = 'red'")
    fill(client, "1", color="red")
    fill(client, "2", color="blue")
    assert client.texts() == ["1"]
    assert "filter" in client.error("SUBSCRIBE", destination="/queue/a", id="2", selector="color =")


def test_each_subscription_to_a_topic_gets_every_message(server: StompServer) -> None:
    one, two = server.stomp_client(), server.stomp_client()
    one.subscribe("/topic/t")
    two.subscribe("t", subscription_type="MULTICAST")
    fill(one, "1", destination="/topic/t")
    assert one.one()["destination"] == "/topic/t"
    assert two.one()["destination"] == "t"
    one.receipt("UNSUBSCRIBE", id="1")
    two.receipt("DISCONNECT")
    assert [name for name, queue in server.broker.queues.items() if queue.spec.address == "t"] == []


def test_a_wildcard_shows_the_address_of_each_message(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/topic/news.#")
    core = server.login()
    publish(core, text_message("news.sport", "x", False, 0))
    assert client.one()["destination"] == "/topic/news.sport"


def test_a_durable_subscription_outlives_its_connection(server: StompServer) -> None:
    headers = {"durable_subscription_name": "s", "ack": "client"}
    client = server.stomp_client(client_id="c")
    client.subscribe("/topic/t", **headers)
    server.lost(client.conn)
    sender = server.stomp_client()
    fill(sender, "1", "2", destination="/topic/t", persistent="true")
    server.restart()
    client = server.stomp_client(client_id="c")
    client.subscribe("/topic/t", **headers)
    assert client.texts() == ["1", "2"]
    client.receipt("UNSUBSCRIBE", id="1", durable_subscription_name="s")
    assert "c.s" not in server.broker.queues


def test_durable_subscriptions_that_overlap_get_each_message_once_after_restarts(server: StompServer) -> None:
    def subscribe() -> StompClient:
        client = server.stomp_client(client_id="c")
        for name in ("pub.*", "pub.#"):
            client.subscribe(f"/topic/{name}", name, durable_subscription_name=name)
        return client

    server.lost(subscribe().conn)
    for body in ("1", "2"):
        server.restart()
        fill(server.stomp_client(), body, destination="/topic/pub.t", persistent="true")
    assert sorted(subscribe().texts()) == ["1", "1", "2", "2"]


def test_a_durable_subscription_with_another_selector_begins_anew(server: StompServer) -> None:
    client = server.stomp_client(client_id="c")
    client.subscribe("/topic/t", **{"activemq.subscriptionName": "s"}, selector="n = '1'")
    client.receipt("DISCONNECT")
    fill(server.stomp_client(), "old", destination="/topic/t", n="1")
    client = server.stomp_client(client_id="c")
    client.subscribe("/topic/t", **{"activemq.subscriptionName": "s"}, selector="n = '2'")
    fill(server.stomp_client(), "new", destination="/topic/t", n="2")
    assert client.texts() == ["new"]
    assert "client-id" in server.stomp_client().error(
        "SUBSCRIBE", destination="/topic/t", id="1", durable_subscription_name="s"
    )


@pytest.mark.parametrize("command", ["DISCONNECT", "UNSUBSCRIBE"])
def test_the_oldest_message_of_a_client_that_leaves_counts_as_delivered(server: StompServer, command: str) -> None:
    client = server.stomp_client()
    for queue in ("a", "b"):
        client.subscribe(f"/queue/{queue}", queue, ack="client")
        for text in ("1", "2"):
            client.send("SEND", text, destination=f"/queue/{queue}")
    assert client.texts() == ["1", "2", "1", "2"]
    client.receipt(command, id="a")
    other = server.stomp_client()
    other.subscribe("/queue/a", "a", ack="client")
    seen = [(each.body, each["redelivered"]) for each in other.messages()]
    assert seen == [(b"1", "true" if command == "DISCONNECT" else "false"), (b"2", "false")]
    other.subscribe("/queue/b", "b")
    seen = [(each.body, each["redelivered"]) for each in other.messages()]
    assert seen == ([(b"1", "true"), (b"2", "false")] if command == "DISCONNECT" else [])


@pytest.mark.parametrize("ack", ["auto", "client"])
@pytest.mark.parametrize("destination", ["/queue/a", "/queue/a,/queue/b"])
def test_the_receipt_of_a_subscription_comes_before_its_messages(
    server: StompServer, ack: str, destination: str
) -> None:
    """ExtraStompTest.testNoGarbageOnPersistentRedelivery of Artemis: the receipt waits for the disk."""
    client = server.stomp_client()
    client.subscribe("/queue/a", "before")
    client.receipt("UNSUBSCRIBE", id="before")
    client.receipt("SEND", "1", destination="/queue/a", persistent="true")
    client.send("SEND", "2", destination="/queue/a", persistent="true")
    client.send("SUBSCRIBE", id="1", destination=destination, ack=ack, receipt="r")
    server.turn()
    client.send("SEND", "3", destination="/queue/a", persistent="true")
    assert [each.command for each in client.frames()] == ["RECEIPT", "MESSAGE", "MESSAGE", "MESSAGE"]


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_a_subscription_without_an_id_has_the_name_of_its_destination(server: StompServer, version: str) -> None:
    """StompV12Test.testSubscribeWithNonZeroConsumerWindowSize of Artemis."""
    client = server.stomp_client(version)
    client.receipt("SUBSCRIBE", destination="/queue/a", ack="client-individual")
    fill(client, "1", "2")
    one, two = client.messages()
    assert "subscription" not in one.headers
    client.receipt("ACK", **({"id": one["ack"]} if version == "1.2" else {"message_id": one["message-id"]}))
    client.receipt("UNSUBSCRIBE", destination="/queue/a")
    assert client.frames() == [] and count(server) == 1


@pytest.mark.parametrize("end", ["UNSUBSCRIBE", "DISCONNECT"])
def test_a_subscription_may_end_before_its_receipt(server: StompServer, end: str) -> None:
    client = server.stomp_client()
    client.send("SEND", "1", destination="/queue/a", persistent="true")
    client.send("SUBSCRIBE", id="1", destination="/queue/a", receipt="r")
    client.send(end, id="1", receipt="s")
    assert [each["receipt-id"] for each in client.frames()] == ["r", "s"]
    assert count(server) == 1


@pytest.mark.parametrize("destination", ["/queue/a::", "a::", "::"])
def test_a_full_name_without_its_queue_is_refused(server: StompServer, destination: str) -> None:
    for command in ("SEND", "SUBSCRIBE"):
        why = server.stomp_client().error(command, destination=destination, id="1")
        assert why == f"the destination '{destination}' has no queue: a full name is ADDRESS::QUEUE"


def test_messages_of_a_lost_client_count_as_delivered(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client")
    fill(client, "1")
    assert client.texts() == ["1"]
    server.lost(client.conn)
    other = server.stomp_client()
    other.subscribe("/queue/a", ack="client")
    assert other.one()["redelivered"] == "true"
    other.receipt("UNSUBSCRIBE", id="1")
    other.subscribe("/queue/a", "2")
    assert other.texts() == ["1"]


def test_a_queue_by_its_fully_qualified_name(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("t::one", "1", subscription_type="MULTICAST")
    client.subscribe("t::two", "2", subscription_type="MULTICAST")
    fill(client, "both", destination="/topic/t")
    assert client.texts() == ["both", "both"]
    fill(client, "second", destination="t::two")
    assert [message["subscription"] for message in client.messages()] == ["2"]


def test_a_temporary_queue_carries_answers_and_ends_with_its_connection(server: StompServer) -> None:
    asking, answering = server.stomp_client(), server.stomp_client()
    asking.subscribe("/temp-queue/mine", "t")
    answering.subscribe("/queue/work")
    fill(asking, "question", destination="/queue/work", reply_to="/temp-queue/mine", correlation_id="7")
    question = answering.one()
    fill(answering, "answer", destination=question["reply-to"], correlation_id=question["correlation-id"])
    answer = asking.one()
    assert answer.body == b"answer" and answer["correlation-id"] == "7"
    assert answer["destination"] == "/temp-queue/mine" and answer["subscription"] == "t"
    asking.receipt("DISCONNECT")
    assert list(server.broker.queues) == ["work"]


def test_without_a_prefix_an_address_has_the_type_of_its_settings(server: StompServer) -> None:
    client = server.stomp_client()
    core = server.login()
    core.create_queue("q")
    client.subscribe("q")
    fill(client, "anycast", destination="q")
    assert client.texts() == ["anycast"]
    client.subscribe("new", "2")
    assert server.broker.addresses["new"].multicast
    assert "ANYCAST or MULTICAST" in client.error("SEND", destination="x", destination_type="anycast")


def test_a_literal_address_wins_over_the_usual_prefixes(server: StompServer) -> None:
    server.login().create_queue("/queue/a")
    client = server.stomp_client()
    fill(client, "x")
    assert list(server.broker.queues) == ["/queue/a"] and count(server, "/queue/a") == 1


@pytest.mark.parametrize(
    "headers, text",
    [
        ({"destination": "a", "id": "1", "ack": "some"}, "auto, client, client-individual"),
        ({"id": "1"}, "without the header destination"),
        ({"destination": "a", "id": "1", "no_local": "true"}, "not supported"),
    ],
)
def test_what_no_subscription_can_be(server: StompServer, headers: dict[str, str], text: str) -> None:
    assert text in server.stomp_client().error("SUBSCRIBE", **headers)


def test_an_id_is_used_once(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    assert "already" in client.error("SUBSCRIBE", destination="/queue/b", id="1")


@pytest.mark.parametrize("name", ["x", "1", "1,2,3", "9,1", "1,99999", "١,١", f"1,{1 << 63}"])
def test_an_acknowledgement_of_nothing_is_an_error(server: StompServer, name: str) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client")
    assert "not delivered" in client.error("ACK", id=name)


def test_a_deleted_queue_ends_the_connection_with_a_sentence(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a")
    server.broker.queue_registry.delete(server.now, "a", "deleted by test")
    answer = client.one()
    assert answer.command == "ERROR" and "subscription to a has ended: deleted by test" in answer["message"]
    assert client.closed is not None


def test_a_topic_that_deletes_its_queues_can_be_left() -> None:
    settings = AddressSettingsRepository()
    settings.add("t", {"auto_delete_created_queues": True})
    server = StompServer(settings=settings)
    client = server.stomp_client()
    client.subscribe("/topic/t")
    client.receipt("UNSUBSCRIBE", id="1")
    assert list(server.broker.queues) == []


def test_management_answers_to_a_temporary_queue(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/temp-queue/answers")
    client.send(
        "SEND", destination="activemq.management", reply_to="/temp-queue/answers",
        _AMQ_ResourceName="broker", _AMQ_OperationName="listConnections",
    )  # fmt: skip
    client.send(
        "SEND", "[\"\", 1, 10]", destination="activemq.management", reply_to="/temp-queue/answers",
        _AMQ_ResourceName="broker", _AMQ_OperationName="listConnections",
    )  # fmt: skip
    failed, answer = client.messages()
    assert failed["_AMQ_OperationSucceeded"] == "false" and answer["_AMQ_OperationSucceeded"] == "true"
    (found,) = json.loads(json.loads(answer.body)[0])["data"]
    assert found["protocol"] == "STOMP" and found["implementation"] == "StompConnection"


def test_whoever_may_subscribe_may_end_that(server: StompServer) -> None:
    """The queue of a subscription to a topic ends with it, as it would with the connection."""
    rights = ("consume", "createNonDurableQueue", "createAddress")
    server.security.add_rule("news", {each: ["guest"] for each in rights})
    client = server.stomp_client(login="guest", passcode="guest")
    client.subscribe("news", subscription_type="MULTICAST")
    assert len(server.broker.queues) == 1
    client.receipt("UNSUBSCRIBE", id="1")
    assert server.broker.queues == {}


def test_a_subscription_to_a_leased_queue_is_told_for_how_long_and_how_to_end_it(server: StompServer) -> None:
    client = server.stomp_client()
    fill(client, "1")
    client.frames()
    server.broker.log_views.lease(server.now, "a", "spark", "vm/1/ab", 300 * SECOND, 0, RecordingEndpoint(), 1)
    server.settle()
    text = client.error("SUBSCRIBE", destination="/queue/a", id="1")
    assert "is leased to the log-view group spark of vm/1/ab for 300 s more" in text
    assert "`atalanta queue end-lease a` ends it and removes no message" in text
    server.broker.log_views.end_lease(server.now, server.broker.queues["a"], "user admin from h:1", -1)
    server.settle()
    other = server.stomp_client()
    other.subscribe("/queue/a")
    assert other.texts() == ["1"]
