"""An operator ends sessions and consumers of others, over CORE."""

from __future__ import annotations

import json

import pytest

from atalanta.kernel.errors import SECURITY
from atalanta.wire.core.packets.consumer import ConsumerClose, DisconnectConsumer
from atalanta.wire.core.packets.producer import CreateProducer
from atalanta.wire.core.packets.session import SessionClose, SessionStop
from atalanta.wire.core.server.redirect import CoreRedirect
from tests.wire.core.server.management_rig import ask, operator_of, request
from tests.wire.core.server.server_rig import Client, Server


def published_session(server: Server, client: Client) -> str:
    (name,) = server.broker.clients.connected[client.conn].sessions
    return name


def test_a_session_is_ended_and_the_connection_lives_on() -> None:
    server = Server()
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


def test_a_consumer_is_disconnected_and_its_client_closes_it() -> None:
    server = Server()
    operator = operator_of(server)
    worker = server.login("admin")
    worker.create_queue("work")
    worker.consume("work", consumer_id=3)
    assert ask(operator, "closeConsumerWithID", published_session(server, worker), "3") is True
    assert [gone.consumer_id for gone in worker.packets(DisconnectConsumer)] == [3]
    worker.succeeds(ConsumerClose(3))
    assert server.broker.queues["work"].consumer_count() == 0


def test_producers_are_listed_as_their_clients_announce_them() -> None:
    server = Server()
    operator = operator_of(server)
    worker = server.login("admin")
    worker.send(CreateProducer(4, "work"))
    answer = ask(operator, "listProducers", "", 1, 10)
    assert isinstance(answer, str)
    (row,) = json.loads(answer)["data"]
    assert row["address"] == "work" and row["session"] == published_session(server, worker)
    assert row["remoteAddress"] == "1.2.3.4:5"


def test_who_may_not_manage_is_refused() -> None:
    server = Server()
    guest = server.login("guest")
    code, text = guest.fails(request("getVersion"))
    assert code == SECURITY and "manage" in text
