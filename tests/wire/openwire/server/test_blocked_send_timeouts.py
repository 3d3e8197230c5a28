"""`blocked-send-timeout`: a message that waits for room for too long is refused, and the rest goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.memory.memory import SENDERS_TIMER
from atalanta.kernel.settings.repository import AddressSettingsRepository, SettingValue
from atalanta.wire.openwire.commands.connections import ConnectionError
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.identifiers import ConnectionId, ProducerId, SessionId
from atalanta.wire.openwire.commands.producers import ProducerAck, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.commands.transactions import TransactionInfo
from tests.wire.openwire.server.openwire_rig import (
    COMMIT_ONE_PHASE,
    OpenWireClient,
    OpenWireServer,
    text,
)

BODY = "x" * 1_000
SECOND = 1_000_000_000
FULL = "javax.jms.ResourceAllocationException"


@pytest.fixture
def full() -> Iterator[OpenWireServer]:
    """A server whose queue `a` has no room; a send waits for 10 s, and one to the queue `also`, full as well, for 4."""
    settings = AddressSettingsRepository()
    for name, wait_ms in (("a", 10_000), ("also", 4_000)):
        limits: dict[str, SettingValue] = {"max_size_bytes": 5_000, "blocked_send_timeout_ms": wait_ms}
        settings.add(name, {"address_full_policy": "BLOCK", **limits})
    made = OpenWireServer(settings=settings)
    for name in ("a", "also"):
        filler = made.openwire_client("f")
        for _ in range(6):
            filler.send(filler.message(BODY, name))
        made.settle()
        made.lost(filler.conn)
    yield made
    validate(made.broker)


def passes(server: OpenWireServer, seconds: float) -> None:
    """Lets the time pass; the timer of senders is called when it is due."""
    until = server.now + int(seconds * SECOND)
    while (due := server.timers.due.get(SENDERS_TIMER)) is not None and due <= until:
        server.now = max(server.now, due)
        server.timers.cancel(SENDERS_TIMER)
        server.broker.set_now(server.now)
        server.broker.on_timer(server.now, SENDERS_TIMER)
        server.settle()
    server.now = until
    server.broker.set_now(until)


def answers(client: OpenWireClient) -> dict[int, str]:
    """The answers since the last call: the number of the command -> "", or the class of the exception."""
    found = {}
    for each in client.of_kind(Response):
        error = each.exception if isinstance(each, ExceptionResponse) else None
        found[each.correlation_id] = "" if error is None else str(error.class_name)
    return found


def stored(server: OpenWireServer, name: str) -> list[str]:
    reader = server.openwire_client("reader")
    reader.consume(name)
    found: list[str] = []
    for _ in range(4):
        for each in reader.of_kind(MessageDispatch):
            found.append(text(each) or "")
            reader.send(reader.ack_info(each))
    server.lost(reader.conn)
    return [each for each in found if each != BODY]


def test_a_message_is_refused_after_the_time_and_not_stored(full: OpenWireServer) -> None:
    client = full.openwire_client()
    number = client.send(client.message("late", "a"), True)
    passes(full, 9.9)
    assert answers(client) == {}
    passes(full, 0.2)
    assert answers(client) == {number: FULL}
    assert stored(full, "a") == []
    again = client.send(client.message("again", "a"), True)
    assert answers(client) == {again: ""} and stored(full, "a") == ["again"]


def test_the_next_message_to_the_full_address_has_a_time_of_its_own(full: OpenWireServer) -> None:
    client = full.openwire_client()
    for _ in range(2):
        number = client.send(client.message("late", "a"), True)
        passes(full, 9.9)
        assert answers(client) == {}
        passes(full, 0.2)
        assert answers(client) == {number: FULL}


def test_each_message_of_a_window_has_its_own_time(full: OpenWireServer) -> None:
    client = full.openwire_client()
    client.succeeds(ProducerInfo(ProducerId(client.id, 1, 1), window_size=64 << 10))
    client.producers.add(ProducerId(client.id, 1, 1))
    for number in range(3):
        client.send(client.message(str(number), "a"))
        passes(full, 3)
    assert client.of_kind(ConnectionError) == []
    passes(full, 1.1)
    assert len(client.of_kind(ConnectionError)) == 1
    assert stored(full, "a") == ["1", "2"]
    assert len(client.of_kind(ProducerAck)) == 2


def test_what_is_behind_a_refused_message_goes_on_in_its_order(full: OpenWireServer) -> None:
    client = full.openwire_client()
    first = client.send(client.message("1", "a"), True)
    behind = client.send(client.message("2", "b"), True)
    passes(full, 5)
    other = client.send(client.message("3", "also"), True)  # behind both: it has waited too long when its turn comes
    passes(full, 5.1)
    assert answers(client) == {first: FULL, behind: "", other: FULL}
    assert stored(full, "b") == ["2"]


def test_other_sessions_have_their_own_times_at_one_address(full: OpenWireServer) -> None:
    client = full.openwire_client()
    client.succeeds(SessionInfo(SessionId(client.id, 2)))
    first = client.send(client.message("1", "a"), True)
    passes(full, 6)
    message = client.message("2", "a")
    message.producer_id = ProducerId(client.id, 1, 2)
    assert message.message_id is not None
    message.message_id.producer_id = message.producer_id
    second = client.send(message, True)
    passes(full, 4.1)
    assert answers(client) == {first: FULL}
    passes(full, 6)
    assert answers(client) == {second: FULL}


def test_a_message_that_stops_its_connection_is_reported_after_the_time(full: OpenWireServer) -> None:
    client = full.openwire_client()
    client.send(client.message("1", "a"))
    number = client.send(client.message("2", "b"), True)
    passes(full, 9.9)
    assert answers(client) == {}
    passes(full, 0.2)
    output = client.output()
    (error,) = [each for each in output if isinstance(each, ConnectionError)]
    assert error.exception is not None and error.exception.class_name == FULL
    assert [each.correlation_id for each in output if isinstance(each, Response)] == [number]
    assert client.closed is None and stored(full, "a") == [] and stored(full, "b") == ["2"]


def test_a_transaction_with_a_refused_message_does_not_commit(full: OpenWireServer) -> None:
    client = full.openwire_client()
    transaction = client.begin()
    one = client.send(client.message("in it", "b", transaction_id=transaction), True)
    message = client.send(client.message("late", "a", transaction_id=transaction), True)
    commit = client.send(TransactionInfo(ConnectionId(client.id), transaction, COMMIT_ONE_PHASE), True)
    passes(full, 10.1)
    assert answers(client) == {
        one: "", message: FULL, commit: "javax.jms.TransactionRolledBackException"
    }  # fmt: skip
    assert stored(full, "b") == []


def test_a_client_that_has_gone_is_not_answered(full: OpenWireServer) -> None:
    client = full.openwire_client()
    client.send(client.message("1", "a"), True)
    full.lost(client.conn)
    passes(full, 20)
    assert stored(full, "a") == []


@pytest.mark.parametrize(("wait_ms", "before_s", "after_s"), [(2_000, 1, 2), (20_000, 19, 21), (-1, 100, 0)])
def test_a_changed_timeout_counts_for_what_waits(
    full: OpenWireServer, wait_ms: int, before_s: int, after_s: int
) -> None:
    client = full.openwire_client()
    number = client.send(client.message("1", "a"), True)
    limits: dict[str, SettingValue] = {"max_size_bytes": 5_000, "blocked_send_timeout_ms": wait_ms}
    addresses = full.broker.address_registry
    addresses.settings.add("a", {"address_full_policy": "BLOCK", **limits})
    addresses.apply_settings(addresses.by_name["a"])
    full.settle()
    passes(full, before_s)
    assert answers(client) == {}
    if after_s:
        passes(full, after_s - before_s)
        assert answers(client) == {number: FULL}


def test_a_full_disk_refuses_all_messages_to_a_queue_that_does_not_exist_yet() -> None:
    settings = AddressSettingsRepository()
    settings.add("#", {"blocked_send_timeout_ms": 1_000})
    server = OpenWireServer(settings=settings)
    server.broker.memory.set_disk_full(True)
    client = server.openwire_client()
    for _ in range(1_010):
        number = client.send(client.message("late", "new"), True)
        passes(server, 1.1)
        assert answers(client) == {number: FULL}
    assert len(server.broker.memory.waiting) == 1
    validate(server.broker)
