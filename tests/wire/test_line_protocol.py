"""A protocol of 200 lines has what docs/internals/protocols/README.md promises: it comes from the bases."""

from __future__ import annotations

import pytest

from atalanta.kernel.security.password import hash_password
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.wire.core.transport import TransportConfiguration
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import Server
from tests.wire.line_protocol import WINDOW, LineConnection, LineProtocol


class LineServer(Server):
    """A broker with CORE and the protocol of lines at one acceptor."""

    def _host(self) -> None:
        super()._host()
        self.host.protocols.append(LineProtocol(self.host, self.timers))


class LineClient:
    """One connection, seen from its other end."""

    def __init__(self, server: LineServer, user: str = "admin", password: str = "admin") -> None:
        self.server = server
        self.conn = server.connect().conn
        self.login = self.ask(f"LOGIN {user} {password}")

    def feed(self, data: bytes) -> None:
        self.server.data(self.conn, data)

    def lines(self) -> list[str]:
        """The lines since the last call, when everything is on disk."""
        self.server.settle()
        self.server.turn()
        return b"".join(self.server.wire.written.pop(self.conn, [])).decode().splitlines()

    def ask(self, line: str) -> list[str]:
        self.feed(line.encode() + b"\n")
        return self.lines()

    @property
    def closed(self) -> str | None:
        return self.server.wire.closed.get(self.conn)

    def connection(self) -> LineConnection:
        found = self.server.connection(self.conn)
        assert isinstance(found, LineConnection)
        return found


@pytest.fixture
def server() -> LineServer:
    return LineServer()


def full(policy: str) -> LineServer:
    settings = AddressSettingsRepository()
    settings.add("#", {"max_size_bytes": 2_000, "address_full_policy": policy})
    return LineServer(settings=settings)


def test_a_client_logs_in_sends_and_consumes(server: LineServer) -> None:
    client = LineClient(server)
    assert client.login == ["OK"]
    assert client.ask("SEND orders first") == ["OK"]
    ok, message = client.ask("READ orders")
    assert (ok, message.split(" ")[2:]) == ("OK", ["first"])
    assert client.ask(f"ACK {message.split(' ')[1]}") == ["OK"]
    assert server.broker.queue_registry.by_name["orders"].message_count == 0


def test_nothing_is_answered_before_it_is_on_disk(server: LineServer) -> None:
    client = LineClient(server)
    client.feed(b"SEND orders first\n")
    server.turn()
    assert server.wire.written.get(client.conn, []) == []
    assert client.lines() == ["OK"]


def test_what_is_not_acknowledged_comes_again_elsewhere_and_the_window_holds(server: LineServer) -> None:
    sender, first, second = LineClient(server), LineClient(server), LineClient(server)
    assert first.ask("READ orders") == second.ask("READ orders") == ["OK"]
    for number in range(2 * WINDOW + 1):
        sender.ask(f"SEND orders {number}")
    assert [len(first.lines()), len(second.lines())] == [WINDOW, WINDOW]
    server.lost(first.conn)
    assert second.lines() == []  # its window is used up


@pytest.mark.parametrize("line", ["SEND a b", "READ a", "ACK 1"])
def test_only_the_login_is_accepted_before_it(server: LineServer, line: str) -> None:
    conn = server.connect().conn
    server.data(conn, b"LOGIN ")  # recognised
    server.data(conn, f"admin wrong\n{line}\n".encode())
    server.settle()
    server.turn()
    written = b"".join(server.wire.written[conn]).decode().splitlines()
    assert len(written) == 1 and written[0].startswith("NO AMQ229031")
    assert conn in server.wire.closed


def test_lines_behind_the_login_wait_for_the_password(server: LineServer) -> None:
    server.security.add_user("anna", hash_password("secret", b"\x01" * 32, 2), ["admin"])
    client = LineClient(server, "anna", "secret")
    client.feed(b"SEND a first\n")
    assert client.login == [] and client.lines() == []
    server.verify()
    assert client.lines() == ["OK", "OK"]


@pytest.mark.parametrize("line", ["SEND secret x", "READ secret"])
def test_the_rights_are_those_of_the_user(server: LineServer, line: str) -> None:
    client = LineClient(server, "guest", "guest")
    assert client.login == ["OK"]
    (answer,) = client.ask(line)
    assert answer.startswith("NO AMQ22") and "guest" in answer
    assert client.closed is not None


def test_a_sender_waits_while_its_address_is_full() -> None:
    server = full("BLOCK")
    sender, reader = LineClient(server), LineClient(server)
    answers = 0
    while answers < 20 and sender.ask("SEND orders " + "x" * 300) == ["OK"]:
        answers += 1
    assert 0 < answers < 20 and sender.connection().waits_for_room() and sender.connection().holds == 1
    lines = reader.ask("READ orders")
    taken = 0
    while messages := [line for line in lines if line.startswith("MESSAGE")]:
        taken += len(messages)
        lines = [line for message in messages for line in reader.ask(f"ACK {message.split(' ')[1]}")]
    assert taken == answers + 1 and sender.lines() == ["OK"]


def test_a_sender_to_a_failing_address_is_refused_by_name() -> None:
    server = full("FAIL")
    sender = LineClient(server)
    answers = [sender.ask("SEND orders " + "x" * 300) for _ in range(10)]
    assert answers[0] == ["OK"]
    assert any(answer and answer[0].startswith("NO AMQ229102") for answer in answers)


def test_a_client_that_does_not_read_gets_no_deliveries(server: LineServer) -> None:
    client, sender = LineClient(server), LineClient(server)
    client.ask("READ orders")
    client.connection().on_blocked(server.now, True)
    sender.ask("SEND orders first")
    assert client.lines() == []
    client.connection().on_blocked(server.now, False)
    server.broker.wake(server.now)
    assert [line.split(" ")[2] for line in client.lines()] == ["first"]


def test_a_silent_client_is_closed_and_one_without_a_login_earlier(server: LineServer) -> None:
    client = LineClient(server)
    stranger = server.connect().conn
    server.data(stranger, b"LOGIN ")
    server.now += 11 * SECOND
    server.check_alive()
    assert stranger in server.wire.closed and client.closed is None
    server.now += 60 * SECOND
    server.check_alive()
    assert client.closed is not None


def test_what_one_client_breaks_costs_its_connection_only(server: LineServer) -> None:
    bad, good = LineClient(server), LineClient(server)
    bad.feed(b"NONSENSE\n")
    assert bad.closed == "NONSENSE: not known"
    assert good.ask("SEND orders x") == ["OK"]
    endless = LineClient(server)
    endless.feed(b"x" * 5_000)
    assert endless.closed == "a line of more than 4096 bytes"


def test_a_client_is_told_that_the_node_leaves(server: LineServer) -> None:
    client = LineClient(server)
    server.host.leave_to("b", TransportConfiguration("c", "f"))
    connection = client.connection()
    connection.hold_input()
    client.feed(b"SEND orders late\n")
    connection.disconnect(server.now, 0)
    assert client.lines() == ["NO the node stops"] and client.closed == "the node stops"
    queue = server.broker.queue_registry.by_name.get("orders")
    assert queue is None or queue.message_count == 0


def test_an_operator_closes_a_session(server: LineServer) -> None:
    client = LineClient(server)
    session = client.connection().session
    assert session is not None
    session.ended_by_operator(server.now)
    assert client.lines() == ["NO an operator has closed the session"]
