"""Topics, durable subscriptions, temporary destinations and advisories."""

from __future__ import annotations

import pytest

from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.message.message import Message
from atalanta.message.properties import Byte
from atalanta.wire.openwire.bodies import properties_of
from atalanta.wire.openwire.commands.connections import ConnectionInfo, RemoveInfo
from atalanta.wire.openwire.commands.consumers import ConsumerInfo, RemoveSubscriptionInfo
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTempTopic,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import ConnectionId, ConsumerId, SessionId
from atalanta.wire.openwire.commands.messages import ActiveMQTextMessage
from atalanta.wire.openwire.commands.producers import DestinationInfo, SessionInfo
from atalanta.wire.openwire.conversion.destination import of_kind
from atalanta.wire.openwire.server.advisories.subscription_name import durable_name
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import text_message
from tests.wire.openwire.server.openwire_rig import OpenWireClient, OpenWireServer, properties, text
from tests.wire.stomp.stomp_rig import publish

TOPIC = ActiveMQTopic("t")
TEMPORARIES = ActiveMQTopic("ActiveMQ.Advisory.TempQueue,ActiveMQ.Advisory.TempTopic")


def watch(client: OpenWireClient) -> ConsumerId:
    return client.consume(TEMPORARIES, no_local=True, dispatch_async=True)


def heard(client: OpenWireClient) -> list[tuple[int, str]]:
    """Operation and name of the advisories about temporary destinations."""
    found = []
    for each in client.dispatches():
        assert each.message is not None and isinstance(each.message.data_structure, DestinationInfo)
        info = each.message.data_structure
        assert each.message.jms_type == "Advisory" and info.destination is not None
        found.append((info.operation_type, info.destination.physical_name or ""))
    return found


def test_every_subscriber_gets_a_copy(server: OpenWireServer) -> None:
    client, other = server.openwire_client(), server.openwire_client("d")
    client.consume(TOPIC)
    consumer = other.consume(TOPIC, selector="n = 1")
    client.publish("1", TOPIC, properties={"n": 1})
    client.publish("2", TOPIC, properties={"n": 2})
    assert client.texts() == ["1", "2"] and other.texts() == ["1"]
    other.close(consumer)
    assert [queue for queue in server.broker.queues.values() if queue.spec.address == "t"][1:] == []


def test_no_local(server: OpenWireServer) -> None:
    client, other = server.openwire_client(), server.openwire_client("d")
    client.consume(TOPIC, no_local=True)
    client.publish("own", TOPIC)
    other.publish("other", TOPIC)
    core = server.login()
    core.create_queue("q")
    assert client.texts() == ["other"]


def test_wildcards(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume(ActiveMQTopic("t.>"))
    client.consume(ActiveMQTopic("t.*.x"))
    client.publish("1", ActiveMQTopic("t.a.x"))
    client.publish("2", ActiveMQTopic("t.a.b"))
    got = client.dispatches()
    assert sorted((text(each) or "") for each in got) == ["1", "1", "2"]
    assert {each.message.destination.physical_name for each in got if each.message and each.message.destination} == {
        "t.a.x", "t.a.b",
    }  # fmt: skip


def test_a_composite_consumer_gets_once_what_several_of_its_topics_include(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume(ActiveMQTopic("t.a,t.>,t.a,t.*.x"))
    client.publish("1", ActiveMQTopic("t.a"))
    client.publish("2", ActiveMQTopic("t.a,t.b.x"))
    assert client.texts() == ["1", "2", "2"], "the second message went to two topics"


@pytest.mark.parametrize("order", [("pub.*", "pub.>"), ("pub.>", "pub.*")])
def test_durable_subscriptions_that_overlap_get_each_message_once_after_restarts(
    server: OpenWireServer, order: tuple[str, str]
) -> None:
    def subscribe() -> OpenWireClient:
        made = server.openwire_client("me")
        for name in order:
            made.consume(ActiveMQTopic(name), subscription_name=name)
        return made

    client = subscribe()
    server.openwire_client("d").publish("before", ActiveMQTopic("pub.t"))
    assert client.texts() == ["before"] * 2
    server.restart()
    sender = server.openwire_client("d")
    sender.publish("1", ActiveMQTopic("pub.t"))
    sender.publish("later", ActiveMQTopic("pub.t"), properties={"AMQ_SCHEDULED_DELAY": 5_000})
    server.restart()
    client = subscribe()
    assert client.texts() == ["before", "1"] * 2, "nothing was acknowledged"
    server.broker.start_timers(server.now)
    server.now += 6 * SECOND
    server.broker.on_timer(server.now, "kernel.scheduled")
    server.settle()
    assert client.texts() == ["later"] * 2


def test_a_durable_subscription_collects(server: OpenWireServer) -> None:
    first = server.openwire_client("me.too")
    first.consume(TOPIC, subscription_name="sub")
    kind, why = first.fails(first.consumer_info(TOPIC, subscription_name="sub"))
    assert kind == "javax.jms.JMSException" and why.startswith("Durable consumer is in use")
    first.succeeds(RemoveInfo(ConnectionId(first.id), -1))
    server.close(first.conn, "the test ends it")
    sender = server.openwire_client("d")
    sender.publish("1", TOPIC)
    server.restart()
    again = server.openwire_client("me.too")
    consumer = again.consume(TOPIC, subscription_name="sub")
    (got,) = again.dispatches()
    again.ack(got)
    again.close(consumer)
    again.succeeds(RemoveSubscriptionInfo(ConnectionId(again.id), "sub", "me.too"))
    assert durable_name("me.too", "sub") == "me\\.too.sub" and "me\\.too.sub" not in server.broker.queues
    kind, _ = again.fails(RemoveSubscriptionInfo(ConnectionId(again.id), "sub", "me.too"))
    assert kind == "javax.jms.InvalidDestinationException"


@pytest.mark.parametrize("durable", [True, False])
def test_a_retroactive_consumer_gets_what_the_address_keeps(durable: bool) -> None:
    settings = AddressSettingsRepository()
    settings.add("kept", {"retroactive_message_count": 2})
    server = OpenWireServer(settings=settings)
    client = server.openwire_client()
    for name, expected in (("kept", ["2", "3", "4"]), ("other", ["4"])):
        topic = ActiveMQTopic(name)
        for each in ("1", "2", "3"):
            client.publish(each, topic)
        client.consume(topic, retroactive=True, subscription_name=name if durable else None)
        client.publish("4", topic)
        assert client.texts() == expected
    found = [fields for event, fields in server.trace.events if event == "retroactive_consumer_in_vain"]
    assert found == [{"address": "other", "client": "c"}]


def test_only_consumers_that_ask_get_what_the_address_keeps() -> None:
    """subscriptionRecoveryPolicy of ActiveMQ Classic, with wildcards, too."""
    settings = AddressSettingsRepository()
    settings.add("k.#", {"retroactive_message_count": 1, "retroactive_on_request": True})
    server = OpenWireServer(settings=settings)
    client = server.openwire_client()
    for each in ("1", "2"):
        for name in ("k.a", "k.b"):
            client.publish(f"{name} {each}", ActiveMQTopic(name))
    client.consume(ActiveMQTopic("k.a"))
    client.consume(ActiveMQTopic("k.a"), subscription_name="plain")
    client.consume(ActiveMQTopic("k.>"))
    assert client.texts() == []
    client.consume(ActiveMQTopic("k.>"), retroactive=True)
    assert client.texts() == ["k.a 2", "k.b 2"]
    client.consume(ActiveMQTopic("k.>"), retroactive=True)
    assert client.texts() == ["k.a 2", "k.b 2"]
    client.consume(ActiveMQTopic("k.b"), retroactive=True, subscription_name="kept")
    assert client.texts() == ["k.b 2"]


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"retroactive_message_age_ms": 10_000}, ["young", "new"]),
        ({"retroactive_message_bytes": 800}, ["new"]),
        ({"retroactive_message_bytes": 0}, []),
    ],
)
def test_what_is_kept_has_an_age_and_a_size(limits: dict[str, int], expected: list[str]) -> None:
    settings = AddressSettingsRepository()
    settings.add("k", {"retroactive_message_count": 100, "retroactive_on_request": True, **limits})
    server = OpenWireServer(settings=settings)
    client = server.openwire_client()
    now_ms = server.now // 1_000_000
    for body, age_ms in (("old", 11_000), ("young", 9_000), ("new", 0)):
        client.publish(body, ActiveMQTopic("k"), timestamp=now_ms - age_ms)
    client.consume(ActiveMQTopic("k"), retroactive=True)
    assert client.texts() == expected


@pytest.mark.parametrize("exists", [True, False])
def test_the_queue_of_a_topic_is_consumed_by_its_full_name(server: OpenWireServer, exists: bool) -> None:
    """Its routing type is that of the address that exists, or of a new one by its settings."""
    client = server.openwire_client()
    topic = ActiveMQTopic("Plain.G")
    if exists:
        client.publish("nobody hears it", topic)
    client.consume("Plain.G::Consumer.Y")
    client.publish("1", topic)
    assert client.texts() == ["1"]
    client.publish("2", "Plain.G::Consumer.Y")
    assert client.texts() == ["2"]
    queue = server.broker.queues["Consumer.Y"]
    assert (queue.spec.address, queue.spec.routing_type) == ("Plain.G", 0)


def test_a_topic_with_the_full_name_of_an_anycast_queue_is_that_queue(server: OpenWireServer) -> None:
    server.login().create_queue("any.q", "any.a", routing_type=1)
    client = server.openwire_client()
    client.publish("1", "any.a::any.q")
    client.publish("2", ActiveMQTopic("any.a::any.q"))
    client.consume("any.a::any.q")
    assert client.texts() == ["1", "2"]


@pytest.mark.parametrize("name", ["a::", "::"])
@pytest.mark.parametrize("kind", [ActiveMQQueue, ActiveMQTopic])
def test_a_full_name_without_its_queue_is_refused(
    server: OpenWireServer, name: str, kind: type[ActiveMQDestination]
) -> None:
    client = server.openwire_client()
    client.publish("1", "a")
    for refused in (client.consumer_info(kind(name)), client.message("2", kind(name))):
        kind_of_error, why = client.fails(refused)
        assert kind_of_error == "javax.jms.InvalidDestinationException"
        assert why == f"{name}: a full name is ADDRESS::QUEUE"
    client.consume("::a")
    assert client.texts() == ["1"]


def test_notifications_say_what_has_happened(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume(ActiveMQTopic("activemq.notifications"))
    client.publish("1", "a", properties={"x": 1})
    client.consume("a")
    seen = [properties_of(each.message) for each in client.dispatches() if each.message is not None]
    added = [each for each in seen if each.get("_AMQ_NotifType") == "BINDING_ADDED"]
    assert [(each["_AMQ_Address"], each["_AMQ_RoutingName"]) for each in added][-1] == ("a", "a")
    assert [each for each in seen if "_AMQ_NotifType" not in each] == [{"x": 1}]


def test_a_composite_topic_shows_the_topic_to_which_a_message_was_sent(server: OpenWireServer) -> None:
    config = DivertConfig(name="d", address="MY.TOPIC", forwarding_address="FOO", routing_type=1)
    server.broker.diverts.create(config, False)
    client = server.openwire_client()
    client.consume("FOO")
    client.publish("1", ActiveMQTopic("MY.TOPIC"))
    [dispatch] = client.dispatches()
    assert dispatch.message is not None
    assert dispatch.message.original_destination == ActiveMQTopic("MY.TOPIC")


def test_another_selector_makes_a_new_subscription(server: OpenWireServer) -> None:
    client = server.openwire_client()
    consumer = client.consume(TOPIC, subscription_name="sub")
    client.publish("old", TOPIC)
    client.dispatches()
    client.close(consumer)
    client.consume(TOPIC, subscription_name="sub", selector="n = 1")
    client.publish("new", TOPIC, properties={"n": 1})
    assert client.texts() == ["new"]


def test_a_virtual_topic(server: OpenWireServer) -> None:
    client = server.openwire_client()
    queue = "Consumer.A.VirtualTopic.orders.eu"
    consumer = client.consume(queue)
    client.close(consumer)
    client.publish("1", ActiveMQTopic("VirtualTopic.orders.eu"))
    client.consume(queue)
    assert client.texts() == ["1"]
    assert server.broker.queues[queue].spec.address == "VirtualTopic.orders.eu"


# -- temporary destinations -----------------------------------------------------------------------
def test_all_hear_of_a_temporary_queue_before_its_creator_has_the_answer(server: OpenWireServer) -> None:
    watcher, creator = server.openwire_client(), server.openwire_client("d")
    watch(watcher)
    creator.send(DestinationInfo(ConnectionId(creator.id), ActiveMQTempQueue(f"{creator.id}:1"), 0), True)
    server.turn()
    order = [conn for conn in server.wire.written if server.wire.written[conn]]
    assert order.index(watcher.conn) < order.index(creator.conn)
    assert heard(watcher) == [(0, f"{creator.id}:1")]
    creator.output()
    creator.succeeds(DestinationInfo(ConnectionId(creator.id), ActiveMQTempQueue(f"{creator.id}:1"), 1))
    assert heard(watcher) == [(1, f"{creator.id}:1")]


def test_a_new_watcher_hears_of_what_is_there_before_its_answer(server: OpenWireServer) -> None:
    creator = server.openwire_client("d")
    creator.temporary_queue()
    watcher = server.openwire_client()
    info = watcher.consumer_info(TEMPORARIES)
    watcher.send(info, True)
    kinds = [each.__class__.__name__ for each in watcher.output()]
    assert kinds == ["MessageDispatch", "Response"]
    server.lost(creator.conn)
    assert heard(watcher) == [(1, f"{creator.id}:1")]


def test_request_and_reply(server: OpenWireServer) -> None:
    asking, answering = server.openwire_client(), server.openwire_client("d")
    answering.consume("requests")
    own = asking.temporary_queue()
    asking.consume(own)
    asking.publish("?", "requests", reply_to=own)
    (request,) = answering.dispatches()
    assert request.message is not None and request.message.reply_to == own
    answering.publish("!", request.message.reply_to, correlation_id="c")
    (answer,) = asking.dispatches()
    assert text(answer) == "!" and answer.message is not None and answer.message.correlation_id == "c"


def test_only_its_connection_consumes_a_temporary_queue(server: OpenWireServer) -> None:
    creator, other = server.openwire_client(), server.openwire_client("d")
    own = creator.temporary_queue()
    kind, why = other.fails(other.consumer_info(own))
    assert kind == "javax.jms.InvalidDestinationException" and "another connection" in why
    server.lost(creator.conn)
    kind, why = other.fails(other.message("1", own))
    assert kind == "javax.jms.InvalidDestinationException" and "does not exist" in why
    assert own.physical_name not in server.broker.queues


def test_a_temporary_queue_with_a_consumer_is_not_deleted(server: OpenWireServer) -> None:
    client = server.openwire_client()
    own = client.temporary_queue()
    client.consume(own)
    kind, _ = client.fails(DestinationInfo(ConnectionId(client.id), own, 1))
    assert kind == "javax.jms.JMSException"
    client.publish("1", own)
    assert client.texts() == ["1"]


@pytest.mark.parametrize("kind", [ActiveMQTempQueue, ActiveMQTempTopic])
def test_a_client_that_comes_back_has_its_temporary_destinations(
    server: OpenWireServer, kind: type[ActiveMQDestination]
) -> None:
    """FailoverTransport sends all of it at once, while the node has not closed the former connection."""
    former, replying = server.openwire_client("c"), server.openwire_client("d")
    own = of_kind(kind().code(), f"{former.id}:1")
    former.succeeds(DestinationInfo(ConnectionId(former.id), own, 0))
    watch(replying)
    replying.output()
    client = OpenWireClient(server, "again")
    client.id = former.id
    client.greet()
    data = b""
    consumer = client.consumer_info(own)
    for command in (
        client.login_info("c", "admin", "admin", failover_reconnect=True),
        DestinationInfo(ConnectionId(client.id), own, 0),
        SessionInfo(SessionId(client.id, 1)),
        consumer,
    ):
        client.commands += 1
        command.command_id, command.response_required = client.commands, True
        data += client.decoder.format.encode(command)
    client.feed(data)
    server.verify()
    answers = client.output()
    assert [each.__class__.__name__ for each in answers] == ["Response"] * 4, answers
    server.start_returned()
    assert former.closed == "its client has reconnected"
    assert heard(replying) == [(1, own.physical_name), (0, own.physical_name)]
    replying.publish("!", own)
    assert client.texts() == ["!"]


def test_the_reply_queue_of_a_core_client_is_a_queue(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.consume("a")
    core = server.login()
    message: Message = text_message("a", "?")
    message.properties.put("JMSReplyTo", "temp-queue://0123")
    message.properties.put("_AMQ_ROUTING_TYPE", Byte(1))
    publish(core, message)
    (request,) = client.dispatches()
    assert request.message is not None and request.message.reply_to == ActiveMQQueue("0123")


# -- advisories of consumers ----------------------------------------------------------------------
def test_consumers_are_advised(server: OpenWireServer) -> None:
    watcher, client = server.openwire_client(), server.openwire_client("d")
    watcher.consume(ActiveMQTopic("ActiveMQ.Advisory.Consumer.Queue.a"))
    consumer = client.consume("a")
    (added,) = watcher.dispatches()
    assert added.message is not None and isinstance(added.message.data_structure, ConsumerInfo)
    assert added.message.data_structure.consumer_id == consumer and properties(added)["consumerCount"] == 1
    late = server.openwire_client("e")
    late.consume(ActiveMQTopic("ActiveMQ.Advisory.Consumer.>"))
    assert len(late.dispatches()) == 1
    client.close(consumer)
    (removed,) = watcher.dispatches()
    assert removed.message is not None and isinstance(removed.message.data_structure, RemoveInfo)
    assert properties(removed)["consumerCount"] == 0


def test_ids_of_another_client_take_nothing_from_it(server: OpenWireServer) -> None:
    client, hostile = server.openwire_client(), server.openwire_client("d")
    consumer = watch(client)
    hostile.send(ConsumerInfo(consumer, destination=TEMPORARIES, prefetch_size=10))
    hostile.send(RemoveInfo(consumer, -1))
    hostile.output()
    hostile.temporary_queue()
    assert heard(client) == [(0, f"{hostile.id}:1")]


def test_clients_send_no_advisories(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.send(client.message("1", TEMPORARIES))
    assert client.closed is not None and "advisories" in client.closed


# -- other advisories -----------------------------------------------------------------------------
def topics_of(watcher: OpenWireClient) -> list[tuple[str, str]]:
    """The topics of the advisories since the last call, and the classes of their data."""
    found = []
    for dispatch in watcher.dispatches():
        assert dispatch.message is not None and dispatch.message.destination is not None
        name = dispatch.message.destination.physical_name or ""
        found.append((name.removeprefix("ActiveMQ.Advisory."), dispatch.message.data_structure.__class__.__name__))
    return found


def test_connections_are_advised_without_their_password(server: OpenWireServer) -> None:
    watcher = server.openwire_client()
    watcher.consume(ActiveMQTopic("ActiveMQ.Advisory.Connection"))
    assert topics_of(watcher) == [("Connection", "ConnectionInfo")]
    client, core = server.openwire_client("d"), server.login()
    (dispatch, _) = watcher.dispatches()
    assert dispatch.message is not None and isinstance(dispatch.message.data_structure, ConnectionInfo)
    info = dispatch.message.data_structure
    assert (info.client_id, info.user_name, info.password) == ("d", "admin", None)
    assert info.connection_id == ConnectionId(client.id)
    for conn in (client.conn, core.conn):
        server.lost(conn)
    assert topics_of(watcher) == [("Connection", "RemoveInfo")] * 2


def test_queues_topics_and_producers_are_advised(server: OpenWireServer) -> None:
    watcher, client = server.openwire_client(), server.openwire_client("d")
    client.consume("before")
    names = ("Queue", "Topic", "Producer.>")
    watcher.consume(ActiveMQTopic(",".join(f"ActiveMQ.Advisory.{name}" for name in names)))
    assert topics_of(watcher) == [("Queue", "DestinationInfo")]
    client.consume("a")
    client.consume(ActiveMQTopic("t"))
    producer = client.producer(ActiveMQQueue("a"))
    assert topics_of(watcher) == [
        ("Queue", "DestinationInfo"), ("Topic", "DestinationInfo"), ("Producer.Queue.a", "ProducerInfo"),
    ]  # fmt: skip
    client.succeeds(RemoveInfo(producer))
    client.temporary_queue()
    assert topics_of(watcher) == [("Producer.Queue.a", "RemoveInfo")]


def test_expired_messages_are_advised(server: OpenWireServer) -> None:
    watcher, client = server.openwire_client(), server.openwire_client("d")
    watcher.consume(ActiveMQTopic("ActiveMQ.Advisory.Expired.Queue.a"))
    client.publish("1", "a", expiration=server.now // 1_000_000 + 10)
    server.now += SECOND
    client.consume("a")
    (dispatch,) = watcher.dispatches()
    assert dispatch.message is not None and isinstance(dispatch.message.data_structure, ActiveMQTextMessage)
    assert properties(dispatch)["orignalMessageId"] == f"{client.id}:1:1:1" and client.dispatches() == []
