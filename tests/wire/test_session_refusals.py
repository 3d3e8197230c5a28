"""A client that gets no session: the node says why, once for each host and reason."""

from __future__ import annotations

from atalanta.kernel.errors import INCOMPATIBLE, SESSION_CREATION_REJECTED
from atalanta.kernel.security.resource_limits import ResourceLimit
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.wire.core.packets.connection import ExceptionResponse
from tests.wire.core.server.server_rig import Server
from tests.wire.stomp.stomp_rig import StompClient, StompServer


def refusals(server: Server) -> list[str]:
    """The reasons that the node has logged."""
    return [str(fields["why"]) for name, fields in server.trace.events if name == "session_refused"]


def test_a_version_that_is_not_served_is_logged_once_though_the_client_tries_for_ever() -> None:
    server = Server()
    for _ in range(5):
        answer = server.greeted().open_session(10, "admin", "admin", version=100)
        assert isinstance(answer, ExceptionResponse) and answer.code == INCOMPATIBLE
    (why,) = refusals(server)
    assert "client version 100" in why


def test_each_reason_is_logged() -> None:
    server = Server(BrokerConfig(resource_limits=[ResourceLimit("admin", 0, -1)]))
    for _ in range(2):
        answer = server.greeted().open_session(10, "admin", "admin")
        assert isinstance(answer, ExceptionResponse) and answer.code == SESSION_CREATION_REJECTED
        server.greeted().open_session(10, "admin", "admin", version=100)
    first, second = refusals(server)
    assert "admin" in first and "client version 100" in second


def test_a_wrong_password_has_its_own_event_only() -> None:
    server = Server()
    server.greeted().open_session(10, "admin", "wrong")
    assert refusals(server) == []
    assert [name for name, _ in server.trace.events if name == "login_refused"] == ["login_refused"]


def test_a_node_that_stops_does_not_name_each_client() -> None:
    server = Server()
    server.broker.stop()
    server.greeted().open_session(10, "admin", "admin")
    assert refusals(server) == []


def test_a_stomp_client_of_an_unknown_version_is_named_too() -> None:
    server = StompServer()
    for _ in range(2):
        client = StompClient(server)
        client.send("CONNECT", host="h", accept_version="9.9")
        assert client.one().command == "ERROR"
    (why,) = refusals(server)
    assert "version" in why


def test_a_peer_that_reads_no_answers_is_named() -> None:
    server = Server()
    client = server.greeted()
    server.connection(client.conn).on_blocked(server.now, True)
    server.turn()
    assert client.closed == "answers are not read before login"
    assert refusals(server) == ["answers are not read before login"]
