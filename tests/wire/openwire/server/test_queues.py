"""Queues: sends, prefetch, every kind of acknowledgement, redelivery, browsers, pulls and selectors."""

from __future__ import annotations

import pytest

from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.wire.openwire.commands.connections import ConnectionError, RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerControl
from atalanta.wire.openwire.commands.deliveries import MessageAck, MessageDispatch
from atalanta.wire.openwire.commands.destinations import ActiveMQQueue, ActiveMQTopic
from atalanta.wire.openwire.commands.identifiers import ConnectionId, ProducerId, SessionId
from atalanta.wire.openwire.commands.producers import ProducerAck, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import Response
from atalanta.wire.openwire.encoding.throwable import Throwable
from tests.kernel.broker_rig import SECOND
from tests.wire.openwire.server.openwire_rig import (
    DELIVERED,
    EXPIRED,
    INDIVIDUAL,
    POISON,
    REDELIVERED,
    OpenWireClient,
    OpenWireServer,
    id_of,
    properties,
    text,
)


def fill(client: OpenWireClient, *texts: str, queue: str = "a") -> None:
    for each in texts:
        client.send(client.message(each, queue))
    client.server.settle()


def count(server: OpenWireServer, queue: str = "a") -> int:
    server.settle()
    return server.broker.queues[queue].message_count


def test_a_persistent_message_is_confirmed_when_it_is_durable(server: OpenWireServer) -> None:
    client = server.openwire_client()
    number = client.send(client.message("1", "a"), True)
    server.turn()
    assert client.conn not in server.wire.written
    (answer,) = client.output()
    assert isinstance(answer, Response) and answer.correlation_id == number
    assert count(server) == 1


def test_an_acknowledgement_without_its_consumer_is_not_the_end_of_a_connection(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, "1")
    consumer = client.consume("a")
    [dispatch] = client.dispatches()
    client.close(consumer)
    client.send(client.ack_info(dispatch))
    assert client.output() == []
    assert "does not exist" in client.fails(client.ack_info(dispatch))[1]
    client.send(MessageAck())
    assert client.output() == []
    assert "does not exist" in client.fails(MessageAck())[1]
    client.consume("a")
    assert client.texts() == ["1"]


def test_a_producer_of_a_queue_that_is_not_there_and_is_not_made_is_refused_at_once() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"auto_create_queues": False, "auto_create_addresses": False})
    server = OpenWireServer(settings=settings)
    client = server.openwire_client()
    kind, why = client.fails(ProducerInfo(ProducerId(client.id, 1, 1), ActiveMQQueue("a")))
    assert kind == "javax.jms.InvalidDestinationException" and "does not exist" in why
    client.succeeds(ProducerInfo(ProducerId(client.id, 2, 1), ActiveMQQueue("b")))


def test_a_client_may_write_no_timestamp(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a", timestamp=0)
    client.consume("a")
    [dispatch] = client.dispatches()
    assert dispatch.message is not None and dispatch.message.timestamp == 0


def test_an_acknowledgement_is_answered_when_it_is_durable(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, "1")
    client.consume("a")
    [dispatch] = client.dispatches()
    server.wire.written.clear()
    number = client.send(client.ack_info(dispatch), True)
    server.turn()
    assert client.conn not in server.wire.written
    (answer,) = client.output()
    assert isinstance(answer, Response) and answer.correlation_id == number


def test_messages_arrive_in_order_and_are_acknowledged_as_a_range(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, "1", "2", "3", "4")
    client.consume("a")
    got = client.dispatches()
    assert [text(each) for each in got] == ["1", "2", "3", "4"]
    assert [each.redelivery_counter for each in got] == [0, 0, 0, 0]
    client.ack(got[2], first=got[1], count=2)
    assert count(server) == 2
    client.ack(got[3])  # without a first message: all that is older
    assert count(server) == 0


def test_an_individual_acknowledgement_takes_one(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, "1", "2", "3")
    consumer = client.consume("a")
    got = client.dispatches()
    client.ack(got[1], INDIVIDUAL)
    assert count(server) == 2
    client.close(consumer, id_of(got[2]).broker_sequence_id)
    client.consume("a")
    again = client.dispatches()
    assert [text(each) for each in again] == ["1", "3"]
    assert [each.redelivery_counter for each in again] == [1, 1]


def test_what_the_application_has_not_seen_is_no_redelivery(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, "1", "2", "3")
    consumer = client.consume("a")
    got = client.dispatches()
    client.close(consumer, id_of(got[0]).broker_sequence_id)
    other = server.openwire_client("d")
    other.consume("a")
    again = other.dispatches()
    assert [(text(each), each.redelivery_counter) for each in again] == [("1", 1), ("2", 0), ("3", 0)]
    server.lost(other.conn)
    client.consume("a")
    assert [each.redelivery_counter for each in client.dispatches()] == [2, 1, 1]


def test_the_prefetch_is_a_window_in_messages(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, *"123456789")
    client.consume("a", 2)
    got = client.dispatches()
    assert [text(each) for each in got] == ["1", "2"]
    client.ack(got[1], DELIVERED, got[0], 2)
    more = client.dispatches()
    assert [text(each) for each in more] == ["3", "4"]
    client.ack(got[1], first=got[0], count=2)  # they have extended the window already
    assert client.dispatches() == []
    client.ack(more[1], first=more[0], count=2)
    assert client.texts() == ["5", "6"]


def test_consumer_control_changes_the_prefetch(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, *"12345")
    consumer = client.consume("a", 1)
    assert client.texts() == ["1"]
    client.send(ConsumerControl(consumer_id=consumer, prefetch=3))
    assert client.texts() == ["2", "3"]


def test_a_poison_message_goes_to_the_dead_letter_address() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"dead_letter_address": "DLQ"})
    server = OpenWireServer(settings=settings)
    server.login().create_queue("DLQ")
    client = server.openwire_client()
    fill(client, "1", "2")
    client.consume("a")
    got = client.dispatches()
    client.ack(got[0], REDELIVERED)
    assert count(server) == 2
    poison = client.ack_info(got[0], POISON, got[0])
    poison.poison_cause = Throwable("java.lang.Throwable", "Exceeded redelivery policy limit")
    client.succeeds(poison)
    assert count(server) == 1 and count(server, "DLQ") == 1
    client.consume("DLQ")
    (dead,) = client.dispatches()
    assert text(dead) == "1" and dead.message is not None
    assert dead.message.original_destination is not None
    assert dead.message.original_destination.physical_name == "a"
    assert properties(dead)["dlqDeliveryFailureCause"] == "java.lang.Throwable: Exceeded redelivery policy limit"


def test_lost_consumers_lead_to_the_dead_letter_address() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"dead_letter_address": "DLQ", "max_delivery_attempts": 2})
    server = OpenWireServer(settings=settings)
    server.login().create_queue("DLQ")
    fill(server.openwire_client(), "1")
    for expected in (0, 1):
        client = server.openwire_client(f"c{expected}")
        client.consume("a")
        assert [each.redelivery_counter for each in client.dispatches()] == [expected]
        server.lost(client.conn)
    assert count(server) == 0 and count(server, "DLQ") == 1


def test_an_expired_message_is_acknowledged_as_such() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"expiry_address": "EXP"})
    server = OpenWireServer(settings=settings)
    server.login().create_queue("EXP")
    client = server.openwire_client()
    fill(client, "1", "2")
    client.consume("a")
    got = client.dispatches()
    client.ack(got[1], EXPIRED)
    assert count(server) == 1 and count(server, "EXP") == 1


def test_an_expired_message_is_not_delivered(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a", expiration=server.now // 1_000_000 + 500)
    client.publish("2", "a")
    server.now += SECOND
    client.consume("a")
    assert client.texts() == ["2"]


def test_an_acknowledgement_of_nothing_is_refused(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, "1")
    client.consume("a")
    (got,) = client.dispatches()
    client.ack(got)
    kind, why = client.fails(client.ack_info(got))
    assert kind == "javax.jms.JMSException" and why.startswith("Unmatched acknowledge")


def test_a_late_acknowledgement_of_a_client_that_came_back_confirms_nothing(server: OpenWireServer) -> None:
    """Its listener began before the failover, and the message comes again. Who waits for an answer must know, and a
    transaction must not commit without it."""
    before = server.openwire_client("before")
    fill(before, "1")
    before.consume("a")
    (got,) = before.dispatches()
    client = server.openwire_client("after", failover_reconnect=True)
    got.consumer_id = client.consume("a")
    id_of(got).broker_sequence_id = 77
    client.send(client.ack_info(got))
    assert client.output() == [] and count(server) == 1
    for transaction in (None, client.begin()):
        kind, why = client.fails(client.ack_info(got, transaction=transaction))
        assert kind == "javax.jms.JMSException" and why.startswith("Unmatched acknowledge")


def test_a_repeated_acknowledgement_does_not_take_the_copy_that_is_still_to_come(server: OpenWireServer) -> None:
    """FailoverTransport sends it behind the consumer: it is of the former delivery, and the program gets the message
    once more. Both together would be a message that was taken and comes again."""
    former = server.openwire_client("former")
    fill(former, "1")
    former.consume("a")
    (got,) = former.dispatches()
    client = OpenWireClient(server, "former")
    client.greet()
    client.send(client.login_info("after", "admin", "admin", failover_reconnect=True))
    client.send(SessionInfo(SessionId(client.id, 1)))
    server.lost(former.conn)
    got.consumer_id = client.consume("a")
    kind, why = client.fails(client.ack_info(got))
    assert kind == "javax.jms.JMSException" and why.startswith("Unmatched acknowledge")
    assert client.dispatches() == [] and count(server) == 1
    server.start_returned()
    (again,) = client.dispatches()
    assert text(again) == "1"
    client.ack(again)
    assert count(server) == 0


def test_a_browser_sees_all_and_takes_nothing(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, *"12345")
    client.consume("a", 2, browser=True)
    got = client.dispatches()
    assert [text(each) for each in got] == ["1", "2"]
    client.ack(got[1], first=got[0], count=2)
    got = client.dispatches()
    assert [text(each) for each in got] == ["3", "4"]
    client.ack(got[1], first=got[0], count=2)
    last, end = client.dispatches()
    assert text(last) == "5" and end.message is None and end.destination is not None
    assert count(server) == 5


def test_a_browser_waits_for_its_window_without_any_work(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, "1", "2")
    client.consume("a", 0, browser=True)
    (got,) = client.dispatches()
    server.now += 5 * SECOND
    server.broker.flush(server.now)
    assert client.dispatches() == []
    client.ack(got)
    (got,) = client.dispatches()
    assert text(got) == "2"
    client.ack(got)
    (end,) = client.dispatches()
    assert end.message is None


@pytest.mark.parametrize(
    ("setting", "own", "more", "topic", "got"),
    [
        ("openwire_queue_prefetch", 1_000, {}, False, 2),
        ("openwire_queue_prefetch", 999, {}, False, 5),  # the client has said what it wants
        ("openwire_browser_prefetch", 500, {"browser": True}, False, 2),
        ("openwire_topic_prefetch", 32_766, {}, True, 2),
        ("openwire_topic_prefetch", 100, {}, True, 5),
        ("openwire_durable_prefetch", 100, {"subscription_name": "s"}, True, 2),
    ],
)
def test_a_policy_changes_the_prefetch_that_a_client_has_left_as_it_is(
    setting: str, own: int, more: dict[str, object], topic: bool, got: int
) -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {setting: 2})
    server = OpenWireServer(settings=settings)
    client = server.openwire_client()
    if not topic:
        fill(client, "1", "2", "3", "4", "5")
    client.consume(ActiveMQTopic("a") if topic else "a", own, **more)
    if topic:
        for number in range(5):
            client.send(client.message(str(number), ActiveMQTopic("a")))
    assert len(client.texts()) - (1 if more.get("browser") and got == 5 else 0) == got


def test_a_policy_without_prefetch_lets_the_client_ask_for_each_message() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"openwire_queue_prefetch": 0})
    server = OpenWireServer(settings=settings)
    client = server.openwire_client()
    fill(client, "1", "2")
    client.send(client.consumer_info("a"), True)
    [told] = client.of_kind(ConsumerControl)
    assert told.prefetch == 0 and not told.close
    assert client.of_kind(MessageDispatch) == []
    assert told.consumer_id is not None
    client.pull(told.consumer_id, -1)
    assert [text(each) for each in client.of_kind(MessageDispatch)] == ["1"]


def test_nothing_is_sent_to_a_browser_behind_its_end(server: OpenWireServer) -> None:
    client, other = server.openwire_client(), server.openwire_client("o")
    fill(client, "1", "2")
    client.consume("a", 10, browser=True)
    seen = client.dispatches()
    assert [text(each) for each in seen] == ["1", "2", None]
    fill(other, "3")
    client.ack(seen[1], first=seen[0], count=2)
    fill(other, "4")
    assert client.dispatches() == []


def test_a_browser_of_an_empty_queue_ends_at_once(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume("a", 500, browser=True)
    (end,) = client.dispatches()
    assert end.message is None


def test_a_selector_chooses(server: OpenWireServer) -> None:
    client = server.openwire_client()
    for number in range(4):
        client.publish(str(number), "a", properties={"n": number})
    client.consume("a", selector="n >= 2")
    assert client.texts() == ["2", "3"]
    kind, _ = client.fails(client.consumer_info("a", selector="n >="))
    assert kind == "javax.jms.InvalidSelectorException"


def test_a_selector_of_the_message_id(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, "1", "2")
    client.consume("a", selector=f"JMSMessageID = '{client.id}:1:1:2'")
    assert client.texts() == ["2"]


def test_pulls_with_prefetch_0(server: OpenWireServer) -> None:
    client = server.openwire_client()
    consumer = client.consume("a", 0)
    client.pull(consumer, -1)
    (nothing,) = client.dispatches()
    assert nothing.message is None
    fill(client, "1", "2")
    assert client.dispatches() == []
    client.pull(consumer, -1)
    (got,) = client.dispatches()
    assert text(got) == "1"
    client.ack(got)
    assert client.dispatches() == []
    client.pull(consumer, 0)
    assert client.texts() == ["2"]


def test_a_pull_with_a_timeout_waits(server: OpenWireServer) -> None:
    client = server.openwire_client()
    consumer = client.consume("a", 0)
    client.pull(consumer, 1000)
    fill(client, "1")
    (got,) = client.dispatches()
    client.ack(got)
    server.now += 2 * SECOND
    server.beat()
    assert client.dispatches() == []
    client.pull(consumer, 1000)
    assert client.dispatches() == []
    server.now += 2 * SECOND
    server.beat()
    (nothing,) = client.dispatches()
    assert nothing.message is None
    fill(client, "2")
    assert client.dispatches() == []


def test_the_highest_priority_consumes_first(server: OpenWireServer) -> None:
    client = server.openwire_client()
    low = client.consume("a", 1, priority=1)
    high = client.consume("a", 1, priority=5)
    fill(client, "1", "2")
    assert [(each.consumer_id, text(each)) for each in client.dispatches()] == [(high, "1"), (low, "2")]


def test_an_exclusive_consumer_has_the_queue_for_itself(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume("a")
    first = client.consume("a", exclusive=True)
    second = client.consume("a", exclusive=True)
    fill(client, "1", "2")
    got = client.dispatches()
    assert [(each.consumer_id, text(each)) for each in got] == [(first, "1"), (first, "2")]
    urgent = client.consume("a", exclusive=True, priority=1)
    fill(client, "3")
    assert [each.consumer_id for each in client.dispatches()] == [urgent]
    client.close(urgent)
    (again,) = client.dispatches()
    assert (again.consumer_id, text(again)) == (first, "3")
    client.close(first)
    assert {each.consumer_id for each in client.dispatches()} == {second}


def test_a_producer_window_is_confirmed(server: OpenWireServer) -> None:
    client = server.openwire_client()
    producer = client.producer(window=1 << 20)
    client.send(client.message("1", "a"))
    (confirmed,) = client.output()
    assert isinstance(confirmed, ProducerAck) and confirmed.producer_id == producer and confirmed.size > 0


def test_an_asynchronous_send_that_fails_is_reported() -> None:
    settings = AddressSettingsRepository()
    settings.add("no", {"auto_create_addresses": False})
    server = OpenWireServer(settings=settings)
    client = server.openwire_client()
    client.send(client.message("1", "no"))
    (error,) = client.output()
    assert isinstance(error, ConnectionError) and error.exception is not None
    assert error.exception.class_name == "javax.jms.InvalidDestinationException"
    kind, _ = client.fails(client.message("1", "no"))
    assert kind == "javax.jms.InvalidDestinationException"
    assert client.closed is None


def test_messages_of_a_group_stay_with_one_consumer(server: OpenWireServer) -> None:
    client = server.openwire_client()
    first, second = client.consume("a"), client.consume("a")
    for number in range(6):
        client.send(client.message(str(number), "a", group_id="g" if number % 2 else f"h{number}"))
    got = client.dispatches()
    assert len({each.consumer_id for each in got if each.message is not None and each.message.group_id == "g"}) == 1
    assert {each.consumer_id for each in got} == {first, second}


def test_a_composite_destination(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a,b,topic://t")
    assert count(server) == 1 and count(server, "b") == 1
    client.consume("a,b")
    got = client.dispatches()
    assert sorted(each.destination.physical_name or "" for each in got if each.destination is not None) == ["a", "b"]
    for each in got:
        client.ack(each)
    assert count(server) == 0 and count(server, "b") == 0


def test_a_composite_destination_with_a_forbidden_part_is_refused_whole(server: OpenWireServer) -> None:
    """The part before it had the message, and got it again when the client tried again."""
    server.openwire_client().publish("0", "open,closed")
    server.security.add_rule("open", {"send": ["guest"]})
    server.security.add_rule("closed", {"send": ["admin"]})
    guest = server.openwire_client("g", "guest")
    kind, _ = guest.fails(guest.message("1", ActiveMQQueue("open,closed")))
    assert "Security" in kind and count(server, "open") == 1


def test_wildcards_of_queues(server: OpenWireServer) -> None:
    client, sender = server.openwire_client(), server.openwire_client("d")
    sender.publish("1", "orders.eu")
    sender.publish("no", "other")
    consumer = client.consume("orders.>")
    (got,) = client.dispatches()
    assert text(got) == "1" and got.destination is not None and got.destination.physical_name == "orders.eu"
    client.ack(got)
    sender.publish("2", "orders.us.ny")
    server.beat()
    (got,) = client.dispatches()
    assert text(got) == "2"
    client.ack(got)
    assert count(server, "orders.eu") == 0 and count(server, "orders.us.ny") == 0
    server.broker.queue_registry.delete(server.now, "orders.eu", "a test deletes it")
    server.settle()
    assert client.closed is None
    client.close(consumer)
    sender.publish("3", "orders.de")
    server.beat()
    assert client.dispatches() == [] and count(server, "orders.de") == 1
    client.consume("orders.*", browser=True)
    assert client.texts() == ["3", None]
    client.consume("nothing.*", browser=True)
    assert client.texts() == [None]


def test_wildcards_leave_out_what_the_user_may_not_consume(server: OpenWireServer) -> None:
    admin = server.openwire_client()
    for queue in ("q.open", "q.closed"):
        admin.publish(queue, queue)
    server.security.add_rule("q.open", {"consume": ["guest"]})
    guest = server.openwire_client("g", "guest")
    guest.consume("q.*")
    assert guest.texts() == ["q.open"]


def test_the_end_of_the_connection_in_order(server: OpenWireServer) -> None:
    client = server.openwire_client()
    fill(client, "1", "2")
    client.consume("a")
    got = client.dispatches()
    client.succeeds(RemoveInfo(SessionId(client.id, 1), id_of(got[0]).broker_sequence_id))
    client.succeeds(RemoveInfo(ConnectionId(client.id), -1))
    other = server.openwire_client("d")
    other.consume("a")
    assert [each.redelivery_counter for each in other.dispatches()] == [1, 0]


def test_a_deleted_queue_ends_the_connection_of_its_consumer(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume("a")
    server.broker.queue_registry.delete(server.now, "a", "a test deletes it")
    found = client.output()
    assert isinstance(found[0], ConnectionError)
    assert client.closed is not None and not [each for each in found if isinstance(each, MessageDispatch)]


def test_pulls_that_wait_no_more_are_not_counted(server: OpenWireServer) -> None:
    """Those that got a message, and those of clients that have gone."""
    pulls = server.openwire.node_clients.pulls
    gone, sender, client = (server.openwire_client(name) for name in ("gone", "sender", "client"))
    lost = gone.consume("empty", prefetch=0)
    for _ in range(1_200):
        gone.pull(lost, (1 << 31) - 1)
    server.lost(gone.conn)
    consumer = client.consume("a", prefetch=0)
    for number in range(1_200):
        sender.publish(f"m{number}", "a")
        client.pull(consumer, 60_000)
        (dispatch,) = client.dispatches()
        client.ack(dispatch)
    assert len(pulls.due) <= 1_000
    client.pull(consumer, 60_000)
    server.now += 60 * SECOND
    server.beat()
    assert [each.message for each in client.dispatches()] == [None]
