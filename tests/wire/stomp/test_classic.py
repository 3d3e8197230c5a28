"""What Classic and Artemis do differently: the option `stompClassic`, which an activemq.xml sets."""

from __future__ import annotations

import pytest

from atalanta.kernel.routing.wildcard import WildcardConfiguration
from atalanta.kernel.settings.repository import AddressSettingsRepository
from tests.kernel.broker_rig import SECOND
from tests.wire.stomp.stomp_rig import StompClient, StompServer, classic_server, received


def fill(client: StompClient, *texts: str, destination: str = "/queue/a", **headers: str) -> None:
    for text in texts:
        client.send("SEND", text, destination=destination, **headers)
    client.server.settle()


def count(server: StompServer, queue: str = "a") -> int:
    server.settle()
    return server.broker.queues[queue].message_count


def with_dead_letters(classic: bool) -> StompServer:
    settings = AddressSettingsRepository(WildcardConfiguration(any_words=">") if classic else None)
    settings.add("a", {"dead_letter_address": "DLQ", "max_delivery_attempts": 7})
    server = classic_server(settings) if classic else StompServer(settings=settings)
    server.login().create_queue("DLQ")
    return server


# -- transactions ---------------------------------------------------------------------------------
@pytest.mark.parametrize("ack", ["client", "client-individual"])
def test_after_abort_the_message_stays_with_the_client(classic: StompServer, ack: str) -> None:
    client = classic.stomp_client()
    client.subscribe("/queue/a", ack=ack)
    fill(client, "1", "2")
    one, two = client.messages()
    client.send("BEGIN", transaction="t")
    client.send("ACK", id=one["ack"], transaction="t")
    client.receipt("ABORT", transaction="t")
    assert client.frames() == [] and count(classic) == 2
    client.receipt("ACK", id=one["ack"])
    assert count(classic) == 1
    client.receipt("ACK", id=two["ack"])
    assert count(classic) == 0


def test_a_transaction_that_was_aborted_is_repeated_with_a_prefetch_of_one(classic: StompServer) -> None:
    """StompTest.testPrefetchSize of Classic."""
    client = classic.stomp_client("1.0", client_id="test")
    client.receipt("SUBSCRIBE", destination="/queue/a", ack="client", **{"activemq.prefetchSize": "1"})
    fill(client, "1", "2", "3", "4", "5")
    (one,) = client.messages()
    client.send("BEGIN", transaction="t1")
    client.send("ACK", message_id=one["message-id"], transaction="t1")
    (two,) = client.messages()
    client.send("ACK", message_id=two["message-id"], transaction="t1")
    early = client.messages()
    client.send("ABORT", transaction="t1")
    client.send("BEGIN", transaction="t2")
    client.send("ACK", message_id=one["message-id"], transaction="t2")
    client.send("ACK", message_id=two["message-id"], transaction="t2")
    (three,) = early + client.messages()
    client.send("ACK", message_id=three["message-id"], transaction="t2")
    (four,) = client.messages()
    assert (three.body, four.body) == (b"3", b"4")
    client.send("ACK", message_id=four["message-id"], transaction="t2")
    client.receipt("COMMIT", transaction="t2")
    (five,) = client.messages()
    client.send("BEGIN", transaction="t3")
    client.send("ACK", message_id=five["message-id"], transaction="t3")
    client.receipt("COMMIT", transaction="t3")
    assert count(classic) == 0


def test_after_abort_a_cumulative_acknowledgement_takes_no_later_message(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.subscribe("/queue/a", ack="client")
    fill(client, "1", "2", "3")
    one, two, three = client.messages()
    client.send("BEGIN", transaction="t")
    client.send("ACK", id=two["ack"], transaction="t")
    client.receipt("ABORT", transaction="t")
    client.receipt("ACK", id=two["ack"])
    assert count(classic) == 1
    client.receipt("ACK", id=three["ack"])
    assert count(classic) == 0


@pytest.mark.parametrize("ack", ["client", "client-individual"])
def test_a_transaction_may_acknowledge_in_any_order(classic: StompServer, ack: str) -> None:
    """Stomp11Test.testAckMessagesInTransactionOutOfOrderWithTXClientAck of Classic."""
    client = classic.stomp_client("1.1")
    client.subscribe("/queue/a", ack=ack)
    fill(client, "1", "2", "3")
    one, two, _ = client.messages()
    client.send("BEGIN", transaction="t")
    for each in (two, one, one):
        client.send("ACK", message_id=each["message-id"], subscription="1", transaction="t")
        if ack == "client-individual" and each is one:
            break  # twice is an error
    client.receipt("COMMIT", transaction="t")
    assert count(classic) == 1


def test_an_acknowledgement_outside_of_its_transaction_is_an_error(classic: StompServer) -> None:
    client = classic.stomp_client("1.1")
    client.subscribe("/queue/a", ack="client")
    fill(client, "1")
    one = client.one()
    client.send("BEGIN", transaction="t")
    client.send("ACK", message_id=one["message-id"], subscription="1", transaction="t")
    client.send("ACK", message_id=one["message-id"], subscription="1")
    assert [each.command for each in client.frames()] == ["ERROR"]


def test_after_abort_the_messages_of_a_closed_subscription_return(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.subscribe("/queue/a", ack="client")
    fill(client, "1")
    (one,) = client.messages()
    client.send("BEGIN", transaction="t")
    client.send("ACK", id=one["ack"], transaction="t")
    client.receipt("UNSUBSCRIBE", id="1")
    client.receipt("ABORT", transaction="t")
    client.subscribe("/queue/a")
    assert client.texts() == ["1"]


def test_after_abort_the_message_comes_again_in_artemis(server: StompServer) -> None:
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client")
    fill(client, "1")
    (one,) = client.messages()
    client.send("BEGIN", transaction="t")
    client.send("ACK", id=one["ack"], transaction="t")
    client.receipt("ABORT", transaction="t")
    assert [each["redelivered"] for each in client.messages()] == ["true"]


@pytest.mark.parametrize(
    ("version", "command", "missing"),
    [
        ("1.1", "SUBSCRIBE", "id"), ("1.2", "SUBSCRIBE", "id"), ("1.1", "UNSUBSCRIBE", "id"),
        ("1.2", "UNSUBSCRIBE", "id"), ("1.1", "ACK", "subscription"), ("1.1", "NACK", "subscription"),
        ("1.2", "ACK", "id"), ("1.2", "NACK", "id"),
    ],
)  # fmt: skip
def test_the_headers_that_the_version_wants_must_be_there(
    classic: StompServer, version: str, command: str, missing: str
) -> None:
    """Stomp11Test.testAckMessageWithNoId and testUnsubscribeWithNoId of Classic."""
    client = classic.stomp_client(version)
    client.subscribe("/queue/a", ack="client")
    fill(client, "1")
    name = client.one()["message-id"]
    why = client.error(command, destination="/queue/a", message_id=name)
    assert why == f"{command} without the header {missing}" and count(classic) == 1


# -- NACK and redelivery --------------------------------------------------------------------------
@pytest.mark.parametrize("ack", ["client", "client-individual"])
@pytest.mark.parametrize("transaction", [False, True])
def test_nack_sends_that_message_alone_to_the_dead_letter_queue(ack: str, transaction: bool) -> None:
    server = with_dead_letters(True)
    client = server.stomp_client()
    client.subscribe("/queue/a", ack=ack)
    fill(client, "1", "2", persistent="true")
    two = client.messages()[1]
    if transaction:
        client.send("BEGIN", transaction="t")
        client.receipt("NACK", id=two["ack"], transaction="t")
        assert count(server, "DLQ") == 0
        client.receipt("COMMIT", transaction="t")
    else:
        client.receipt("NACK", id=two["ack"])
    assert (count(server), count(server, "DLQ")) == (1, 1)
    client.subscribe("/queue/DLQ", "2")
    dead = client.one()
    assert dead.body == b"2" and dead["original-destination"] == "/queue/a"


def test_nack_delivers_again_in_artemis() -> None:
    server = with_dead_letters(False)
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client")
    fill(client, "1")
    client.receipt("NACK", id=client.one()["ack"])
    assert client.one()["redelivered"] == "true" and count(server, "DLQ") == 0


@pytest.mark.parametrize("command", ["DISCONNECT", "UNSUBSCRIBE"])
def test_what_was_not_acknowledged_is_redelivered(classic: StompServer, command: str) -> None:
    client = classic.stomp_client()
    client.subscribe("/queue/a", ack="client")
    fill(client, "1")
    assert "redelivered" not in client.one().headers
    client.receipt(command, id="1")
    other = classic.stomp_client()
    other.subscribe("/queue/a")
    assert other.one()["redelivered"] == "true"


@pytest.mark.parametrize("reply_to", ["some destination", "/queue/x", "/topic/x"])
def test_a_reply_to_comes_back_as_it_was_written(classic: StompServer, reply_to: str) -> None:
    """StompTest.testReplytoModification of Classic."""
    client = classic.stomp_client()
    client.subscribe("/queue/a")
    fill(client, "1", reply_to=reply_to)
    assert client.one()["reply-to"] == reply_to


# -- headers --------------------------------------------------------------------------------------
def test_what_is_not_true_is_not_written(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.subscribe("/queue/a")
    fill(client, "1")
    fill(client, "2", persistent="true")
    one, two = client.messages()
    assert "persistent" not in one.headers and "redelivered" not in one.headers
    assert two["persistent"] == "true" and "redelivered" not in two.headers


def test_the_timestamp_is_the_senders(classic: StompServer) -> None:
    client = classic.stomp_client()
    core = classic.login()
    core.create_queue("b")
    core.consume("b")
    client.subscribe("/queue/a")
    fill(client, "1", timestamp="1234", message_id="mine", redelivered="true", subscription="other")
    got = client.one()
    assert got["timestamp"] == "1234" and got["message-id"] != "mine" and got["subscription"] == "1"
    fill(client, "1", destination="/queue/b", timestamp="1234", message_id="mine")
    (message,) = received(core)
    assert message.timestamp == 1234
    assert [name for name in message.properties.names() if not name.startswith("_AMQ")] == []
    assert "timestamp" in client.error("SEND", "1", destination="/queue/a", timestamp="today")


def test_the_timestamp_is_a_property_in_artemis(server: StompServer) -> None:
    client = server.stomp_client()
    core = server.login()
    core.create_queue("a")
    core.consume("a")
    fill(client, "1", timestamp="today")
    (message,) = received(core)
    assert message.property_value("timestamp") == "today"


def test_the_session_is_a_client_id(classic: StompServer, server: StompServer) -> None:
    assert classic.stomp_client().connected["session"].startswith("ID:")
    assert classic.stomp_client(client_id="c").connected["session"] == "c"
    assert not server.stomp_client().connected["session"].startswith("ID:")


def test_a_name_without_a_prefix_is_a_queue(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.subscribe("a")
    fill(client, "1")
    assert client.texts() == ["1"]


def test_a_consumer_of_a_virtual_topic(classic: StompServer) -> None:
    """Two consumers share the queue of one name; it stays, and keeps what comes meanwhile."""
    client = classic.stomp_client()
    client.subscribe("/queue/Consumer.A.VirtualTopic.T.x", "1")
    client.subscribe("/queue/Consumer.A.VirtualTopic.T.x", "2")
    client.subscribe("/queue/Consumer.B.VirtualTopic.T.x", "3", ack="client")
    fill(client, "m", destination="/topic/VirtualTopic.T.x")
    got = client.messages()
    assert sorted(each["destination"] for each in got) == [
        "/queue/Consumer.A.VirtualTopic.T.x", "/queue/Consumer.B.VirtualTopic.T.x",
    ]  # fmt: skip
    client.receipt("DISCONNECT")
    fill(classic.stomp_client(), "n", destination="/topic/VirtualTopic.T.x")
    client = classic.stomp_client()
    client.subscribe("/queue/Consumer.B.VirtualTopic.T.x")
    assert sorted(client.texts()) == ["m", "n"]
    fill(client, "o", destination="/queue/Consumer.B.VirtualTopic.T.x")
    assert client.texts() == ["o"]


def served(forms: str) -> StompServer:
    """A server with virtual topics of its own."""
    server = classic_server()
    server.broker.config.virtual_topic_forms = forms
    return server


def test_virtual_topics_have_the_forms_of_the_broker() -> None:
    server = served("VTC.*.>;2")
    client = server.stomp_client()
    client.subscribe("/queue/VTC.A.prices.>", "1")
    client.subscribe("/queue/Consumer.A.VirtualTopic.T", "2")
    fill(client, "1", destination="/topic/prices.gold")
    fill(client, "2", destination="/topic/VirtualTopic.T")
    got = client.one()
    assert got.body == b"1" and got["destination"] == "/queue/VTC.A.prices.>"
    assert server.broker.queues["VTC.A.prices.>"].spec.address == "prices.>"


def test_the_queue_of_a_virtual_topic_is_browsed() -> None:
    server = served("VTC.*.>;2")
    client = server.stomp_client()
    client.subscribe("/queue/VTC.A.prices", "1", ack="client")
    fill(client, "1", destination="/topic/prices")
    client.one()
    client.receipt("UNSUBSCRIBE", id="1")
    client.subscribe("/queue/VTC.A.prices", "2", browser="true")
    assert [each.headers.get("browser", "") for each in client.messages()] == ["", "end"]
    assert "no durable subscriptions" in client.error(
        "SUBSCRIBE", destination="/queue/VTC.A.prices", id="3", **{"activemq.subscriptionName": "s"}
    )


def test_an_answer_to_the_queue_of_a_virtual_topic_goes_there(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.subscribe("/queue/a", "1")
    client.subscribe("/queue/Consumer.A.VirtualTopic.T", "2")
    fill(client, "question", reply_to="/queue/Consumer.A.VirtualTopic.T")
    got = client.one()
    assert got["reply-to"] == "/queue/Consumer.A.VirtualTopic.T"
    fill(client, "answer", destination=got["reply-to"])
    assert client.texts() == ["answer"]


def test_a_virtual_topic_that_knows_selectors() -> None:
    server = served("Consumer.*.VirtualTopic.>;2;selectorAware=true")
    client = server.stomp_client()
    client.subscribe("/queue/Consumer.A.VirtualTopic.T", "1", selector="n > 1")
    client.subscribe("/queue/Consumer.A.VirtualTopic.T", "2", selector="color = 'red'")
    for n, color in (("1", "blue"), ("1", "red"), ("2", "blue")):
        fill(client, n + color, destination="/topic/VirtualTopic.T", n=n, color=color)
    assert client.texts() == ["1red", "2blue"]
    assert server.broker.queues["Consumer.A.VirtualTopic.T"].message_count == 0


def test_a_temporary_topic(classic: StompServer) -> None:
    asking, answering = classic.stomp_client(), classic.stomp_client()
    asking.subscribe("/temp-topic/mine", "t")
    answering.subscribe("/queue/work")
    fill(asking, "question", destination="/queue/work", reply_to="/temp-topic/mine")
    question = answering.one()
    fill(answering, "answer", destination=question["reply-to"])
    answer = asking.one()
    assert answer.body == b"answer" and answer["destination"] == "/temp-topic/mine"
    asking.receipt("DISCONNECT")
    assert list(classic.broker.queues) == ["work"]


# -- frames ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \n\n"])
def test_an_empty_line_is_no_body(either: StompServer, end: bytes) -> None:
    client = either.stomp_client()
    for frame in (b"BEGIN\ntransaction:t\n\n", b"COMMIT\ntransaction:t\n\n", b"BEGIN\ntransaction:t\n\n",
                  b"ABORT\ntransaction:t\n\n", b"SUBSCRIBE\nid:1\nack:client\ndestination:/queue/a\n\n"):
        client.feed(frame + end + b"\0")
    fill(client, "1")
    got = client.one()
    client.feed(b"ACK\nid:" + got["ack"].encode() + b"\nreceipt:1\n\n" + end + b"\0")
    client.feed(b"UNSUBSCRIBE\nid:1\n\n" + end + b"\0")
    client.feed(b"DISCONNECT\nreceipt:2\n\n" + end + b"\0")
    assert [answer["receipt-id"] for answer in client.frames()] == ["1", "2"]
    assert count(either) == 0


def test_a_body_that_is_no_line_end_is_refused_with_its_receipt(server: StompServer) -> None:
    client = server.stomp_client()
    client.feed(b"BEGIN\ntransaction:t\nreceipt:7\n\nhello\0")
    answer = client.one()
    assert answer["message"] == "BEGIN has a body" and answer["receipt-id"] == "7"


def test_a_long_body_of_another_frame_is_not_kept(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.feed(b"BEGIN\ntransaction:t\n\n" + bytes([10]) * 2_000)
    assert "has a body" in client.one()["message"]


def test_a_length_counts_for_send_only(classic: StompServer) -> None:
    """StompTest.testSubscribeWithClientAckedAndContentLength of Classic."""
    client = classic.stomp_client("1.1")
    client.subscribe("/queue/a", ack="client")
    fill(client, "1")
    message_id = client.one()["message-id"]
    client.feed(f"ACK\nsubscription:1\nmessage-id:{message_id}\ncontent-length:8511\nreceipt:1\n\n\0".encode())
    assert client.one()["receipt-id"] == "1" and count(classic) == 0


def test_escapes_and_lines_that_are_none(classic: StompServer) -> None:
    client = classic.stomp_client("1.1")
    client.subscribe("/queue/a")
    client.feed(b"SEND\ndestination:/queue/a\none:a\\rb\\\\c\ntwo:\\:\\n\\\nline\n\nx\0")
    got = client.one()
    assert b"\none:a\\\\rb\\\\c\n" in got.raw + b"\n" and b"\ntwo:\\\\\\c\\n\\\\\n" in got.raw + b"\n"
    assert got["line"] == ""


@pytest.mark.parametrize("header", [b"one:a\\tb", b"line"])
def test_escapes_and_lines_that_are_none_are_refused_in_artemis(server: StompServer, header: bytes) -> None:
    client = server.stomp_client("1.1")
    client.feed(b"SEND\ndestination:/queue/a\nreceipt:9\n" + header + b"\n\nx\0")
    answer = client.one()
    assert answer.command == "ERROR" and answer["receipt-id"] == "9"


def test_an_empty_destination(either: StompServer) -> None:
    """StompEmptyDestinationTest of Classic."""
    error = either.stomp_client().error("SUBSCRIBE", destination="", id="1")
    assert error in ("Invalid empty or 'null' Destination header", "the header destination is empty")


# -- windows --------------------------------------------------------------------------------------
def test_a_subscription_holds_as_many_messages_as_in_classic(classic: StompServer) -> None:
    client = classic.stomp_client()
    client.subscribe("/queue/a", ack="client-individual")
    body = "x" * 1_000
    for _ in range(1_001):
        client.send("SEND", body, destination="/queue/a")
    held = client.messages()
    while more := client.messages():
        held += more
    assert len(held) == 1_000
    client.send("ACK", id=held[0]["ack"])
    assert len(client.messages()) == 1


def with_settings(**values: bool | int) -> StompServer:
    settings = AddressSettingsRepository(WildcardConfiguration(any_words=">"))
    settings.add("a", values)
    return classic_server(settings)


@pytest.mark.parametrize("prefetch, held", [(3, 3), (0, 1)])
def test_the_prefetch_of_the_address_counts_for_who_names_none(prefetch: int, held: int) -> None:
    server = with_settings(openwire_queue_prefetch=prefetch)
    client = server.stomp_client()
    client.subscribe("/queue/a", ack="client-individual")
    other = server.stomp_client()
    fill(other, *[str(number) for number in range(10)])
    assert len(client.messages()) == held
    other.subscribe("/queue/a", ack="client", **{"activemq.prefetchSize": "5"})
    assert len(other.messages()) == 5


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("durable", [False, True])
def test_a_retroactive_subscription_begins_with_what_its_topic_has_kept(asks: bool, durable: bool) -> None:
    server = with_settings(retroactive_message_count=2, retroactive_on_request=True)
    fill(server.stomp_client(), "1", "2", "3", destination="/topic/a")
    headers = {"activemq.retroactive": "true"} if asks else {}
    if durable:
        headers["activemq.subscriptionName"] = "s"
    client = server.stomp_client(client_id="c")
    client.subscribe("/topic/a", **headers)
    assert client.texts() == (["2", "3"] if asks else [])


def test_a_silent_client_gets_the_heart_beat_of_the_acceptor() -> None:
    server = classic_server(default_heart_beat="1500,700", ttl_modifier=1.0)
    client = server.stomp_client("1.0")
    assert client.connected["heart-beat"] == "700,1500"
    other = server.stomp_client("1.1", **{"heart-beat": "0,0"})
    assert other.connected["heart-beat"] == "0,0"
    server.now += SECOND
    assert server.connection(client.conn).check_alive(server.now)
    server.beat()
    assert client.output() == b"\n"
    server.now += SECOND
    assert not server.connection(client.conn).check_alive(server.now)
    assert server.connection(other.conn).check_alive(server.now)


def test_the_largest_body_of_the_acceptor() -> None:
    server = classic_server(body_bytes_max=10)
    client = server.stomp_client()
    client.receipt("SEND", "0123456789", destination="/queue/a")
    assert "at most 10 bytes" in client.error("SEND", "01234567890", destination="/queue/a", receipt="r")
