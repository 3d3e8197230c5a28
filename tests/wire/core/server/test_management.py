"""An operator ends sessions and consumers of others, over CORE."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.errors import SECURITY
from atalanta.wire.core.packets import codec
from atalanta.wire.core.packets.consumer import ConsumerClose, DisconnectConsumer
from atalanta.wire.core.packets.message import SendMessage
from atalanta.wire.core.packets.producer import CreateProducer, RemoveProducer
from atalanta.wire.core.packets.session import SessionClose, SessionStop
from atalanta.wire.core.server.redirect import CoreRedirect
from tests.wire.core.server.large_rig import body_of, send_large
from tests.wire.core.server.management_rig import ask, operator_of, request
from tests.wire.core.server.server_rig import Client, Server, text_message


def published_session(server: Server, client: Client) -> str:
    (name,) = server.broker.clients.connected[client.conn].sessions
    return name


def test_a_session_is_ended_and_the_connection_lives_on(server: Server) -> None:
    operator = operator_of(server)
    worker = server.login("admin")
    worker.create_queue("work")
    worker.publish("work", "a")
    server.settle()
    worker.consume("work", consumer_id=3)
    server.settle()
    assert worker.bodies() == ["a"]
    connection = f"{worker.conn:08x}"
    session = published_session(server, worker)
    assert ask(operator, "listSessions", connection) == [session]
    assert ask(operator, "closeSessionWithID", connection, session) is True
    assert [gone.consumer_id for gone in worker.packets(DisconnectConsumer)] == [3]
    assert server.broker.queues["work"].delivering_count == 0
    assert worker.closed is None
    # What its client does next: it is told, instead of waiting in vain.
    worker.succeeds(ConsumerClose(3))
    with pytest.raises(AssertionError, match="closed by management"):
        worker.create_queue("more")
    redirect = CoreRedirect(server.core(worker.conn), server.now, "elsewhere")
    redirect.begin()
    with pytest.raises(AssertionError, match="closed by management"):
        worker.create_queue("more")
    redirect.cancel(server.now)
    worker.succeeds(SessionStop())
    worker.succeeds(SessionClose())
    worker.open_session(11, "admin", "admin")
    worker.consume("work", channel=11)
    server.settle()
    assert worker.bodies(channel=11) == ["a"]


def test_a_consumer_is_disconnected_and_its_client_closes_it(server: Server) -> None:
    operator = operator_of(server)
    worker = server.login("admin")
    worker.create_queue("work")
    worker.consume("work", consumer_id=3)
    listed = json.loads(str(ask(operator, "listAllConsumersAsJSON")))
    (number,) = [str(one["sequentialId"]) for one in listed if one["consumerID"] == 3]
    name = published_session(server, worker)
    assert ask(operator, "closeConsumerWithID", name, number) is True
    assert [gone.consumer_id for gone in worker.packets(DisconnectConsumer)] == [3]
    worker.succeeds(ConsumerClose(3))
    assert server.broker.queues["work"].consumer_count() == 0


def test_producers_are_listed_as_their_clients_announce_them(server: Server) -> None:
    operator = operator_of(server)
    worker = server.login("admin")
    worker.send(CreateProducer(4, "work"))
    answer = ask(operator, "listProducers", "", 1, 10)
    assert isinstance(answer, str)
    (row,) = json.loads(answer)["data"]
    assert row["address"] == "work" and row["session"] == published_session(server, worker)
    assert row["remoteAddress"] == "1.2.3.4:5"


def producers(operator: Client) -> list[dict[str, object]]:
    listed: list[dict[str, object]] = json.loads(str(ask(operator, "listProducersInfoAsJSON")))
    return [one for one in listed if one["destination"] != "activemq.management"]


def test_the_messages_of_each_producer_are_counted(server: Server) -> None:
    operator = operator_of(server)
    worker = server.login("admin")
    worker.create_queue("work")
    worker.send(CreateProducer(0, "work"))
    worker.send(CreateProducer(1, "work"))
    message = text_message("work", "abc")
    message.user_id = bytes(range(16))
    for number in (0, 1, 0, 2):
        worker.send(SendMessage(message, sender_id=number))
    worker.call(SessionStop())
    size = message.encoded_size
    first, second = producers(operator)
    assert first["name"] != second["name"] and first["id"] != second["id"]
    assert (first["msgSent"], first["msgSizeSent"]) == (2, 2 * size)
    assert (second["msgSent"], second["msgSizeSent"]) == (1, size)
    assert first["lastProducedMessageID"] == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    send_large(worker, "work", body_of(200_000))
    server.work_files(10)
    server.settle()
    first, second = producers(operator)
    assert (first["msgSent"], first["msgSizeSent"]) == (3, 2 * size + 200_000)
    assert first["lastProducedMessageID"] is None
    options = '{"sortField":"id","sortOrder":"desc","field":"address","operation":"EQUALS","value":"work"}'
    (row, _) = json.loads(str(ask(operator, "listProducers", options, 1, 10)))["data"]
    assert row["msgSent"] == 1 and row["msgSizeSent"] == size
    assert row["lastProducedMessageID"] == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    worker.send(RemoveProducer(0))
    worker.send(SendMessage(message, sender_id=0))
    (second,) = producers(operator)
    assert second["msgSent"] == 1


def test_clients_that_do_not_name_their_producers_have_one_for_each_address(server: Server) -> None:
    operator = operator_of(server)
    worker = server.greeted()
    worker.open_session(10, "admin", "admin", version=133)
    for address in ("apples", "pears"):
        worker.create_queue(address)
    for address in ("apples", "pears", "pears", "apples", "apples"):
        message = SendMessage(text_message(address, "x"))
        worker.feed(codec.encode(message, 10, 133))
    server.settle()
    assert [(one["destination"], one["msgSent"]) for one in producers(operator)] == [
        ("apples", 3), ("pears", 2),
    ]  # fmt: skip


def test_who_may_not_manage_is_refused(server: Server) -> None:
    guest = server.login("guest")
    code, text = guest.fails(request("getVersion"))
    assert code == SECURITY and "manage" in text
