"""Who may use temporary destinations with the authorizationPlugin of an activemq.xml, over each protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from atalanta.kernel.errors import SECURITY
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.queue import CreateQueueV2
from atalanta.wire.openwire.commands.destinations import (
    ActiveMQDestination,
    ActiveMQQueue,
    ActiveMQTempQueue,
    ActiveMQTempTopic,
    ActiveMQTopic,
)
from atalanta.wire.openwire.commands.identifiers import ConnectionId, ProducerId
from atalanta.wire.openwire.commands.producers import DestinationInfo, ProducerInfo
from tests.wire.classic_server import ENTRIES, ThreeProtocols, classic_server
from tests.wire.core.server.server_rig import queue_request
from tests.wire.openwire.server.openwire_rig import OpenWireClient

SECURITY_EXCEPTION = "java.lang.SecurityException"
CORE_NAME = "0b8d4a5e-c5a1-11f0-9d3e-0242ac110002"
TO_ADMINS = 'read="admins" write="admins" admin="admins"'


def made(client: OpenWireClient, topic: bool = False, number: int = 1) -> ActiveMQDestination:
    """A new temporary destination of the client."""
    name = f"{client.id}:{number}"
    destination = ActiveMQTempTopic(name) if topic else ActiveMQTempQueue(name)
    client.succeeds(DestinationInfo(ConnectionId(client.id), destination, 0))
    return destination


def refused(client: OpenWireClient, destination: ActiveMQDestination) -> str:
    kind, why = client.fails(DestinationInfo(ConnectionId(client.id), destination, 0))
    assert kind == SECURITY_EXCEPTION, (kind, why)
    return why


def temporary_request(name: str, routing_type: int = 1) -> CreateQueueV2:
    return queue_request(name, routing_type=routing_type, temporary=True, durable=False)


# -- without an entry they are everybody's, as in Classic --------------------------------------------
@pytest.mark.parametrize("topic", [False, True])
def test_request_and_reply_of_ordinary_users(tmp_path: Path, topic: bool) -> None:
    server = classic_server(tmp_path)
    asking, answering = server.openwire_client("a", "anna"), server.openwire_client("b", "bob")
    answering.consume("app.requests")
    own = made(asking, topic)
    asking.consume(own)
    asking.publish("?", "app.requests", reply_to=own)
    (request,) = answering.dispatches()
    assert request.message is not None and request.message.reply_to == own
    answering.succeeds(ProducerInfo(ProducerId(answering.id, 1, 2), own))
    answering.publish("!", own)
    assert asking.texts() == ["!"]
    server.lost(asking.conn)
    assert own.physical_name not in server.broker.addresses
    assert not server.broker.address_registry.temporaries.owners


def test_request_and_reply_over_stomp(tmp_path: Path) -> None:
    server = classic_server(tmp_path)
    asking, answering = server.stomp_user("anna"), server.stomp_user("bob")
    answering.subscribe("/queue/app.requests")
    asking.subscribe("/temp-queue/replies")
    asking.receipt("SEND", "?", destination="/queue/app.requests", reply_to="/temp-queue/replies")
    (request,) = answering.messages()
    answering.receipt("SEND", "!", destination=request["reply-to"])
    assert asking.texts() == ["!"]


@pytest.mark.parametrize("name", [CORE_NAME, f"atalanta.replies.{CORE_NAME}"])
def test_request_and_reply_over_core(tmp_path: Path, name: str) -> None:
    server = classic_server(tmp_path)
    asking, answering = server.login("anna"), server.login("bob")
    asking.succeeds(temporary_request(name))
    assert not isinstance(asking.consume(name), ExceptionResponse)
    answering.publish(name, "!")
    server.settle()
    assert asking.bodies() == ["!"]


def test_a_temporary_topic_over_core(tmp_path: Path) -> None:
    """As artemis-jms-client does it: a queue that takes nothing, and a subscription."""
    server = classic_server(tmp_path)
    asking, answering = server.login("anna"), server.login("bob")
    asking.succeeds(queue_request(CORE_NAME, routing_type=0, temporary=True, durable=False, filter="_AMQX=-1"))
    asking.succeeds(queue_request("s", CORE_NAME, 0, temporary=True, durable=False))
    asking.consume("s")
    answering.publish(CORE_NAME, "!", routing_type=0)
    server.settle()
    assert asking.bodies() == ["!"]


def test_replies_cross_protocols(tmp_path: Path) -> None:
    server = classic_server(tmp_path)
    openwire, stomp, core = server.openwire_client("a", "anna"), server.stomp_user("bob"), server.login("bob")
    own = made(openwire)
    openwire.consume(own)
    stomp.receipt("SEND", "1", destination=f"/queue/{own.physical_name}")
    core.publish(own.physical_name or "", "2")
    assert openwire.texts() == ["1", "2"]
    core.succeeds(temporary_request(CORE_NAME))
    core.consume(CORE_NAME)
    openwire.publish("3", CORE_NAME)
    assert core.bodies() == ["3"]


# -- what others get -------------------------------------------------------------------------------
def test_what_is_in_a_temporary_queue_belongs_to_its_user(tmp_path: Path) -> None:
    server = classic_server(tmp_path)
    owner, admin = server.openwire_client("a", "anna"), server.login("admin")
    own = made(owner)
    name = own.physical_name or ""
    owner.publish("secret", own)
    stranger, core = server.openwire_client("b", "bob"), server.login("bob")
    for destination in (own, ActiveMQQueue(name)):
        kind, why = stranger.fails(stranger.consumer_info(destination))
        assert "another connection" in why or kind == SECURITY_EXCEPTION
        kind, why = stranger.fails(stranger.consumer_info(destination, browser=True))
        assert "another connection" in why or kind == SECURITY_EXCEPTION
    for browse in (False, True):
        assert isinstance(core.consume(name, browse=browse), ExceptionResponse)
    assert "permission='CONSUME'" in server.stomp_user("bob").error("SUBSCRIBE", destination=f"/queue/{name}", id="1")
    kind, _ = stranger.fails(DestinationInfo(ConnectionId(stranger.id), ActiveMQQueue(name), 1))
    assert kind == SECURITY_EXCEPTION
    admin.consume(name, browse=True)  # who may read everything
    assert admin.bodies() == ["secret"]


def test_rights_on_temporary_destinations_are_none_on_others(tmp_path: Path) -> None:
    server = classic_server(tmp_path)
    client, core = server.openwire_client("a", "none"), server.login("none")
    for name in (CORE_NAME, "ID:x", "ActiveMQ.Temporary.x", f"ActiveMQ.Temporary.{CORE_NAME}"):
        code, _ = core.fails(queue_request(name))
        assert code == SECURITY
        kind, why = client.fails(client.consumer_info(name))
        assert kind == SECURITY_EXCEPTION or "does not exist" in why, why
    assert isinstance(core.call(queue_request("s", "t", 0, temporary=True, durable=False)), ExceptionResponse)


def test_nobody_takes_the_name_of_an_ordinary_destination(tmp_path: Path) -> None:
    """Senders to the queue `orders`, which is not there yet, would send to a temporary one of that name."""
    server = classic_server(tmp_path)
    client, core = server.openwire_client("a", "none"), server.login("none")
    assert "orders" in refused(client, ActiveMQTempQueue("orders"))
    assert "orders" in refused(client, ActiveMQTempTopic("orders"))
    code, _ = core.fails(temporary_request("orders"))
    assert code == SECURITY
    made(server.openwire_client("b", "admin"))
    anna = server.login("anna")
    anna.succeeds(temporary_request("app.replies"))  # her own, by name as well
    anna.consume("app.replies")
    code, _ = server.login("none").fails(temporary_request("app.other"))
    assert code == SECURITY


def test_a_durable_queue_that_looks_like_a_temporary_one(tmp_path: Path) -> None:
    server = classic_server(tmp_path)
    admin = server.login("admin")
    for name in (CORE_NAME, "ID:host-1:1"):
        admin.create_queue(name)
        client, core = server.openwire_client(f"a{name}", "anna"), server.login("anna")
        kind, why = client.fails(client.message("1", name))
        assert kind == SECURITY_EXCEPTION, why
        assert isinstance(core.consume(name), ExceptionResponse)
        assert "permission='SEND'" in server.stomp_user("anna").error("SEND", destination=f"/queue/{name}")


# -- with an entry ---------------------------------------------------------------------------------
def all_refused(server: ThreeProtocols, user: str) -> None:
    client, core = server.openwire_client(f"x-{user}", user), server.login(user)
    refused(client, ActiveMQTempQueue(f"{client.id}:7"))
    refused(client, ActiveMQTempTopic(f"{client.id}:8"))
    for routing_type in (0, 1):
        code, _ = core.fails(temporary_request(CORE_NAME, routing_type))
        assert code == SECURITY
    assert "does not have permission" in server.stomp_user(user).error(
        "SUBSCRIBE", destination="/temp-queue/q", id="1"
    )


def test_only_admins_of_the_entry_create_them(tmp_path: Path) -> None:
    server = classic_server(tmp_path, temporary='read="*" write="*" admin="temps"')
    for user in ("anna", "none"):
        all_refused(server, user)
    tom, anna = server.openwire_client("t", "tom"), server.openwire_client("a", "anna")
    for topic in (False, True):
        own = made(tom, topic, 1 + topic)
        tom.consume(own)
        anna.publish("!", own)
        assert tom.texts() == ["!"]


def test_only_writers_of_the_entry_send_to_them(tmp_path: Path) -> None:
    server = classic_server(tmp_path, temporary='read="users" write="temps" admin="users"')
    anna, bob, tom = (server.openwire_client(user, user) for user in ("anna", "bob", "tom"))
    for topic in (False, True):
        own = made(anna, topic, 1 + topic)
        anna.consume(own)
        kind, why = bob.fails(bob.message("1", own))
        assert kind == SECURITY_EXCEPTION and "permission='SEND'" in why
        kind, _ = bob.fails(ProducerInfo(ProducerId(bob.id, 1, 5), own))
        assert kind == SECURITY_EXCEPTION
        tom.publish("2", own)
        assert anna.texts() == ["2"]
    name = f"{anna.id}:1"
    assert "permission='SEND'" in server.stomp_user("bob").error("SEND", destination=f"/queue/{name}")


def test_only_readers_of_the_entry_consume_them(tmp_path: Path) -> None:
    server = classic_server(tmp_path, temporary='read="admins" write="users" admin="users"')
    anna, core = server.openwire_client("a", "anna"), server.login("anna")
    for topic in (False, True):
        own = made(anna, topic, 1 + topic)
        kind, why = anna.fails(anna.consumer_info(own))
        assert kind == SECURITY_EXCEPTION and "CONSUME" in why
    core.succeeds(temporary_request(CORE_NAME))
    assert isinstance(core.consume(CORE_NAME), ExceptionResponse)


def test_an_entry_of_admins_refuses_all_others(tmp_path: Path) -> None:
    server = classic_server(tmp_path, temporary=TO_ADMINS)
    for user in ("anna", "none"):
        all_refused(server, user)
    made(server.openwire_client("a", "admin"))


# -- temporary topics ------------------------------------------------------------------------------
def test_a_message_for_a_temporary_topic_without_subscribers_is_dropped(tmp_path: Path) -> None:
    server = classic_server(tmp_path)
    anna, bob = server.openwire_client("a", "anna"), server.openwire_client("b", "bob")
    own = made(anna, True)
    bob.publish("lost", own)
    anna.consume(own)
    anna.consume(own, selector="n = 1")
    bob.publish("1", own)
    assert anna.texts() == ["1"]
    kind, why = anna.fails(DestinationInfo(ConnectionId(anna.id), own, 1))
    assert "still has consumers" in why
    kind, why = bob.fails(bob.message("1", ActiveMQTempTopic("ID:ended:1")))
    assert kind == "javax.jms.InvalidDestinationException"


def test_temporary_topics_without_plugin_are_checked_by_name() -> None:
    server = ThreeProtocols()
    client = server.openwire_client("g", "guest")
    for destination in (ActiveMQTempQueue(f"{client.id}:1"), ActiveMQTempTopic(f"{client.id}:2")):
        assert "CREATE_NON_DURABLE_QUEUE" in refused(client, destination)
    admin = server.openwire_client()
    own = made(admin, True)
    kind, _ = client.fails(client.message("1", own))
    assert kind == SECURITY_EXCEPTION


def test_a_subscriber_of_a_topic_makes_no_temporary_destination(tmp_path: Path) -> None:
    """The address of its first subscription ends with it, too, but belongs to its own entry."""
    entries = f'{ENTRIES}<authorizationEntry topic="prices" read="users" write="admins" admin="users"/>'
    server = classic_server(tmp_path, entries)
    anna, none = server.openwire_client("a", "anna"), server.openwire_client("n", "none")
    anna.consume(ActiveMQTopic("prices"))
    for client in (none, anna):
        kind, _ = client.fails(client.message("1", ActiveMQTopic("prices")))
        assert kind == SECURITY_EXCEPTION
