"""resource-limit-settings: sessions and queues of one user."""

from __future__ import annotations

from atalanta.kernel.errors import SECURITY, SESSION_CREATION_REJECTED
from atalanta.kernel.security.resource_limits import ResourceLimit
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.queue import DeleteQueue
from tests.wire.core.server.server_rig import Server, queue_request


def limited(max_sessions: int = -1, max_queues: int = -1) -> Server:
    return Server(BrokerConfig(resource_limits=[ResourceLimit("admin", max_sessions, max_queues)]))


def test_a_user_has_no_more_sessions_than_allowed_over_all_connections() -> None:
    server = limited(max_sessions=2)
    first = server.login()
    second = server.login()
    server.login("guest")
    third = server.connect()
    third.feed(b"ARTEMIS")
    answer = third.open_session(10, "admin", "admin")
    assert isinstance(answer, ExceptionResponse)
    assert answer.code == SESSION_CREATION_REJECTED
    assert "user admin, sessions allowed: 2" in str(answer.message)
    server.lost(first.conn)
    again = third.open_session(10, "admin", "admin")
    assert not isinstance(again, ExceptionResponse)
    assert second.closed is None


def test_none_at_all() -> None:
    server = limited(max_sessions=0)
    client = server.connect()
    client.feed(b"ARTEMIS")
    assert isinstance(client.open_session(10, "admin", "admin"), ExceptionResponse)


def test_a_user_creates_no_more_queues_than_allowed() -> None:
    server = limited(max_queues=2)
    server.queue("of-the-file")
    admin = server.login()
    admin.succeeds(queue_request("a", "a"))
    admin.succeeds(queue_request("b", "b", temporary=True, durable=False))
    code, why = admin.fails(queue_request("c", "c"))
    assert code == SECURITY and "queues allowed: 2" in why
    assert "c" not in server.broker.queues and "c" not in server.broker.addresses
    admin.succeeds(DeleteQueue("a"))
    admin.succeeds(queue_request("c", "c"))
