"""Hashed passwords: computed elsewhere, once for all who bring the same, and nobody is let in meanwhile."""

from __future__ import annotations

from atalanta.kernel.errors import SECURITY
from atalanta.kernel.security.authentication import COMPUTED_MAX
from atalanta.kernel.security.check_turns import CHECKS_MAX
from atalanta.kernel.security.password import hash_password
from atalanta.kernel.security.security import Security
from atalanta.kernel.settings.broker_config import BrokerConfig
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse, Ping
from atalanta.wire.core.packets.query import QueueQuery
from atalanta.wire.core.packets.session import CreateSessionResponse, CreateSessionV2
from atalanta.wire.login import LOGIN_FAILURES_MAX, LOGINS_WAITING_MAX
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import Client, Server

HASHED = hash_password("secret", b"\x01" * 32, 2)


def prepared(config: BrokerConfig | None = None) -> Server:
    server = Server(config)
    server.security.add_user("anna", HASHED, ["admin"])
    return server


def asks(
    server: Server, password: str = "secret", user: str = "anna", channel: int = 10
) -> Client:
    client = server.greeted()
    ask(client, password, user, channel)
    return client


def ask(client: Client, password: str = "secret", user: str = "anna", channel: int = 10) -> None:
    client.send(
        CreateSessionV2(
            name=f"s{channel}", session_channel=channel, version=136, user=user, password=password
        ),
        1,
    )


def answers(client: Client) -> list[type[Packet]]:
    return [type(packet) for _, packet in client.receive()]


def test_the_answer_comes_with_the_result_and_other_traffic_goes_on() -> None:
    server = prepared()
    client = asks(server)
    assert answers(client) == []
    assert len(server.passwords.waiting) == 1
    client.send(Ping(60_000), 0)
    assert answers(client) == [Ping]
    witness = server.login()
    witness.create_queue("orders")
    server.verify()
    assert answers(client) == [CreateSessionResponse]
    assert client.closed is None


def test_while_the_password_is_checked_nobody_is_logged_in() -> None:
    server = prepared()
    client = asks(server)
    client.send(QueueQuery("orders"))
    assert client.closed is not None and "before login" in client.closed
    server.verify()  # its result concerns nobody any more
    assert answers(client) == []
    assert server.connections == {}


def test_a_wrong_password_and_an_unknown_user_are_checked_alike() -> None:
    server = prepared()
    wrong = asks(server, "Secret")
    unknown = asks(server, "secret", "bert")
    assert len(server.passwords.waiting) == 2
    server.verify()
    for client in (wrong, unknown):
        [refusal] = [packet for _, packet in client.receive()]
        assert isinstance(refusal, ExceptionResponse) and refusal.code == SECURITY


def test_clients_that_hang_up_after_a_wrong_password_delay_nobody() -> None:
    server = prepared()
    for number in range(1_000):
        client = asks(server, f"wrong {number}")
        server.lost(client.conn)
    anna = asks(server)
    server.verify(COMPUTED_MAX)
    server.verify(1)
    assert answers(anna) == [CreateSessionResponse]


def test_a_thousand_connections_cost_one_hash() -> None:
    server = prepared()
    herd = [asks(server) for _ in range(500)]
    assert len(server.passwords.waiting) == 1
    server.verify()
    assert all(answers(client) == [CreateSessionResponse] for client in herd)
    late = [asks(server) for _ in range(500)]
    assert server.passwords.waiting == []
    assert all(answers(client) == [CreateSessionResponse] for client in late)
    identities = [connection.sessions[10].session.identity for connection in server.cores()]
    assert all(identity is identities[0] for identity in identities)


def test_what_was_right_is_believed_for_the_invalidation_interval() -> None:
    config = BrokerConfig()
    config.security_invalidation_interval_ms = 5_000
    server = prepared(config)
    asks(server)
    server.verify()
    server.now += 4 * SECOND
    assert answers(asks(server)) == [CreateSessionResponse]
    server.now += 2 * SECOND
    assert answers(asks(server)) == []
    assert len(server.passwords.waiting) == 1


def test_an_interval_of_zero_believes_nothing() -> None:
    config = BrokerConfig()
    config.security_invalidation_interval_ms = 0
    server = prepared(config)
    for _ in range(2):
        asks(server)
        assert len(server.passwords.waiting) == 1
        server.verify()


def test_the_credentials_believed_are_limited() -> None:
    config = BrokerConfig()
    config.authentication_cache_size = 2
    server = prepared(config)
    for number in range(5):
        server.security.add_user(f"u{number}", HASHED, ["admin"])
        asks(server, "secret", f"u{number}")
    while server.passwords.waiting:
        server.verify()
    assert len(server.host.logins.remembered) == 2
    assert asks(server, "secret", "u4").closed is None
    assert server.passwords.waiting == []
    asks(server, "secret", "u0")
    assert len(server.passwords.waiting) == 1


def test_changed_users_count_at_once_also_for_a_check_under_way() -> None:
    server = prepared()
    believed = asks(server)
    server.verify()
    assert answers(believed) == [CreateSessionResponse]
    under_way = asks(server, "wrong")
    fresh = Security(True, "cluster", "secret")
    fresh.add_user("anna", hash_password("changed", b"\x02" * 32, 2), ["admin"])
    server.security.replace(fresh)
    server.host.logins.forget()
    late = asks(server)
    server.verify()
    assert answers(under_way) == [ExceptionResponse]
    assert answers(late) == [ExceptionResponse]
    now = asks(server, "changed")
    server.verify()
    assert answers(now) == [CreateSessionResponse]


def test_logins_of_one_connection_are_answered_in_their_order() -> None:
    server = prepared()
    client = asks(server, channel=10)
    ask(client, "wrong", channel=11)
    ask(client, channel=12)
    assert len(server.passwords.waiting) == 1, "one at a time"
    server.verify()
    assert answers(client) == [CreateSessionResponse]
    server.verify()
    assert answers(client) == [ExceptionResponse, CreateSessionResponse]


def test_logins_waiting_on_one_connection_are_limited() -> None:
    server = prepared()
    client = asks(server)
    for channel in range(11, 11 + LOGINS_WAITING_MAX):
        ask(client, channel=channel)
    assert client.closed is not None
    server.verify()


def test_too_many_wrong_passwords_end_the_connection_and_no_other() -> None:
    server = prepared()
    good = asks(server)
    bad = asks(server, "wrong")
    for _ in range(LOGIN_FAILURES_MAX):
        server.verify()
        assert bad.closed is None
        ask(bad, "wrong")
    server.verify()
    assert bad.closed is not None
    assert answers(good) == [CreateSessionResponse]


def test_checks_under_way_are_limited() -> None:
    server = prepared()
    logins = server.host.logins.turns
    filler = next(iter(logins.checks.values()), None)
    assert filler is None
    asks(server, "first")
    [check] = logins.checks.values()
    for token in range(10, 10 + CHECKS_MAX):
        logins.checks[token] = check
    assert answers(asks(server, "second")) == [ExceptionResponse]
    assert len(server.passwords.waiting) == 1


def test_the_memory_of_logins_holds_no_password() -> None:
    server = prepared()
    asks(server)
    server.verify()
    [(key, _)] = server.host.logins.remembered.items()
    assert len(key) == 32 and b"secret" not in key
    assert all(connection.logins == [] for connection in server.cores())
