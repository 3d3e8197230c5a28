"""Full addresses with the policy BLOCK: a message waits for its answer, and the rest of its connection goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.wire.openwire.commands.connections import RemoveInfo
from atalanta.wire.openwire.commands.deliveries import MessageDispatch
from atalanta.wire.openwire.commands.identifiers import ConnectionId, ProducerId, SessionId
from atalanta.wire.openwire.commands.messages import OpenWireMessage
from atalanta.wire.openwire.commands.producers import ProducerAck, ProducerInfo, SessionInfo
from atalanta.wire.openwire.commands.responses import ExceptionResponse, Response
from atalanta.wire.openwire.commands.transactions import TransactionInfo
from atalanta.wire.openwire.server.connection import OpenWireConnection
from tests.wire.openwire.server.openwire_rig import (
    COMMIT_ONE_PHASE,
    ROLLBACK,
    OpenWireClient,
    OpenWireServer,
    text,
)

BODY = "x" * 1_000


@pytest.fixture
def full() -> Iterator[OpenWireServer]:
    """A server whose queue `a` takes some five messages, and then blocks."""
    settings = AddressSettingsRepository()
    for name in ("a", "also"):
        settings.add(name, {"max_size_bytes": 12_000, "address_full_policy": "BLOCK"})
    made = OpenWireServer(settings=settings)
    yield made
    validate(made.broker)


def fill(client: OpenWireClient, queue: str = "a") -> int:
    """Sends until a message waits, from a session of its own; returns the number of the command."""
    for _ in range(10):
        number = client.send(of_session(client, 9, queue=queue), True)
        if number not in answered(client):
            return number
    raise AssertionError("the queue is not full")


def of_session(
    client: OpenWireClient,
    session: int,
    body: str = BODY,
    queue: str = "a",
    producer: int = 1,
    **more: object,
) -> OpenWireMessage:
    """A message of another session of the client."""
    message = client.message(body, queue, **more)  # type: ignore[arg-type]
    message.producer_id = ProducerId(client.id, producer, session)
    assert message.message_id is not None
    message.message_id.producer_id = message.producer_id
    return message


def answered(client: OpenWireClient) -> list[int]:
    """The numbers of the commands that are answered since the last call."""
    found = client.of_kind(Response)
    assert not any(isinstance(each, ExceptionResponse) for each in found), found
    return [each.correlation_id for each in found]


def consumed(client: OpenWireClient) -> list[str]:
    """Acknowledges what is delivered until nothing comes any more; the texts. Room is found a turn later."""
    found: list[str] = []
    idle = 0
    while idle < 3:
        dispatches = client.of_kind(MessageDispatch)
        idle = 0 if dispatches else idle + 1
        for each in dispatches:
            found.append(text(each) or "")
            client.send(client.ack_info(each))
    return found


def test_a_client_empties_the_queue_to_which_it_sends(full: OpenWireServer) -> None:
    client = full.openwire_client()
    number = fill(client)
    client.send(client.consumer_info("a"), True)
    assert len(consumed(client)) > 3
    assert number in answered(client)


def test_a_message_with_a_window_lets_its_connection_go_on(full: OpenWireServer) -> None:
    client = full.openwire_client()
    client.succeeds(ProducerInfo(ProducerId(client.id, 1, 1), window_size=64 << 10))
    client.producers.add(ProducerId(client.id, 1, 1))
    for number in range(20):
        client.send(client.message(f"{number} {BODY}", "a"))
    before = len(client.of_kind(ProducerAck))
    assert 1 < before < 6
    client.consume("a")
    assert [int(each.split()[0]) for each in consumed(client)] == list(range(20))
    assert before + len(client.of_kind(ProducerAck)) == 20


def test_other_sessions_and_other_destinations_go_on_and_the_session_keeps_its_order(
    full: OpenWireServer,
) -> None:
    client = full.openwire_client()
    client.succeeds(SessionInfo(SessionId(client.id, 2)))
    number = fill(client)
    behind = client.send(
        of_session(client, 9, queue="b", producer=2), True
    )  # the session of the message that waits
    beside = client.send(of_session(client, 2, queue="b"), True)
    assert answered(client) == [beside]
    consumer = client.consume("a")
    consumed(client)
    assert answered(client) == [number, behind]
    client.close(consumer)
    assert full.broker.queues["b"].message_count == 2


def test_a_commit_waits_for_the_messages_of_its_transaction(full: OpenWireServer) -> None:
    sender = full.openwire_client("s")
    fill(full.openwire_client("f"))
    transaction = sender.begin()
    message = sender.send(sender.message("in it", "a", transaction_id=transaction), True)
    commit = sender.send(
        TransactionInfo(ConnectionId(sender.id), transaction, COMMIT_ONE_PHASE), True
    )
    assert answered(sender) == []
    receiver = full.openwire_client("r")
    receiver.consume("a")
    texts = consumed(receiver)
    assert answered(sender) == [message, commit]
    assert texts[-1] == "in it" and texts.count("in it") == 1


def test_a_rollback_waits_for_the_messages_of_its_transaction(full: OpenWireServer) -> None:
    sender = full.openwire_client("s")
    fill(full.openwire_client("f"))
    transaction = sender.begin()
    message = sender.send(sender.message("in it", "a", transaction_id=transaction), True)
    end = sender.send(TransactionInfo(ConnectionId(sender.id), transaction, ROLLBACK), True)
    receiver = full.openwire_client("r")
    receiver.consume("a")
    consumed(receiver)
    assert answered(sender) == [message, end]
    assert full.broker.queues["a"].message_count == 0


def test_a_message_without_answer_and_window_stops_its_connection(full: OpenWireServer) -> None:
    client = full.openwire_client()
    fill(full.openwire_client("f"))
    client.send(client.message(BODY, "a"))
    number = client.send(client.message(BODY, "b"), True)
    assert answered(client) == []
    receiver = full.openwire_client("r")
    receiver.consume("a")
    consumed(receiver)
    assert answered(client) == [number]


def test_a_message_without_answer_keeps_its_order_behind_one_that_waits(
    full: OpenWireServer,
) -> None:
    client = full.openwire_client()
    number = fill(client)
    client.send(of_session(client, 9, "behind", "b", 2))
    assert full.broker.queues.get("b") is None
    receiver = full.openwire_client("r")
    receiver.consume("a")
    consumed(receiver)
    assert answered(client) == [number]
    assert full.broker.queues["b"].message_count == 1


def test_one_producer_has_a_bounded_number_of_messages_waiting(full: OpenWireServer) -> None:
    """One that does not wait for its answers stops its connection."""
    client = full.openwire_client()
    fill(client)
    large = "y" * 600_000
    for _ in range(4):
        client.send(client.message(large, "a"), True)
    beside = client.send(client.message("1", "b"), True)
    assert answered(client) == []
    receiver = full.openwire_client("r")
    receiver.consume("a")
    assert len(consumed(receiver)) > 7
    assert beside in answered(client)


def test_what_waits_counts_for_the_share_of_its_user(full: OpenWireServer) -> None:
    full.host.unfinished.user_bytes_max = 100_000
    client = full.openwire_client()
    fill(client)
    client.send(of_session(client, 2, "z" * 200_000), True)
    full.settle()
    assert "cannot wait for room" in (client.closed or "")
    assert not full.host.unfinished.users


def test_the_end_of_a_connection_waits_for_the_messages_that_its_client_believes_sent(
    full: OpenWireServer,
) -> None:
    client = full.openwire_client()
    client.succeeds(ProducerInfo(ProducerId(client.id, 1, 1), window_size=64 << 10))
    client.producers.add(ProducerId(client.id, 1, 1))
    for _ in range(10):
        client.send(client.message(BODY, "a"))
    client.of_kind(ProducerAck)
    number = client.send(RemoveInfo(ConnectionId(client.id)), True)
    assert answered(client) == []
    receiver = full.openwire_client("r")
    receiver.consume("a")
    assert len(consumed(receiver)) == 10
    assert answered(client) == [number]


def test_a_client_that_goes_takes_its_waiting_messages_along(full: OpenWireServer) -> None:
    client = full.openwire_client()
    fill(client)
    kept = full.broker.queues["a"].message_count
    assert full.connection(client.conn).hung_up(full.now)
    full.lost(client.conn)
    receiver = full.openwire_client("r")
    receiver.consume("a")
    assert len(consumed(receiver)) == kept


def test_a_composite_message_waits_until_each_part_has_room(full: OpenWireServer) -> None:
    client, receiver = full.openwire_client(), full.openwire_client("r")
    fill(client)
    fill(full.openwire_client("f"), "also")
    number = client.send(client.message("to both", "a,also"), True)
    consumer = receiver.consume("a")
    consumed(receiver)
    receiver.close(consumer)
    assert number not in answered(client)
    receiver.consume("also")
    texts = consumed(receiver)
    assert number in answered(client)
    assert texts.count("to both") == 1 and full.broker.queues["a"].message_count == 1


def test_messages_of_long_headers_are_bounded_too(full: OpenWireServer) -> None:
    client = full.openwire_client()
    fill(client)
    for _ in range(100):
        empty = of_session(client, 2, queue="a", correlation_id="c" * 30_000)
        empty.content = None
        client.send(empty, True)
    connection = full.connection(client.conn)
    assert isinstance(connection, OpenWireConnection) and connection.session is not None
    assert sum(len(lane) for lane in connection.session.waiting.lanes.values()) < 40
    assert connection.unfinished > 1_000_000  # of the share of its user


def test_one_end_of_a_transaction_waits_at_a_time(full: OpenWireServer) -> None:
    """Else a client could send any number of them."""
    client = full.openwire_client()
    fill(client)
    transaction = client.begin()
    message = client.send(of_session(client, 2, transaction_id=transaction), True)
    for _ in range(100):
        client.send(TransactionInfo(ConnectionId(client.id), transaction, COMMIT_ONE_PHASE), True)
    connection = full.connection(client.conn)
    assert isinstance(connection, OpenWireConnection) and connection.session is not None
    assert sum(len(lane) for lane in connection.session.waiting.lanes.values()) == 3
    receiver = full.openwire_client("r")
    receiver.consume("a")
    consumed(receiver)
    found = client.of_kind(Response)
    done = [each.correlation_id for each in found if not isinstance(each, ExceptionResponse)]
    assert message in done and message + 1 in done
    assert sum(isinstance(each, ExceptionResponse) for each in found) == 99


def test_senders_to_an_address_that_is_deleted_while_an_operator_blocks_it_go_on(full: OpenWireServer) -> None:
    client = full.openwire_client()
    client.publish("first", "b")
    account = full.broker.address_registry.by_name["b"].account
    account.blocked_by_operator = True
    full.broker.memory.refuse(account)
    window = [client.send(client.message(BODY, "b"), True) for _ in range(90)]  # more than the credits it has
    assert window[-1] not in answered(client)
    full.broker.queue_registry.delete(full.now, "b", "an operator deletes it")
    full.settle()
    assert window[-1] in answered(client)
    assert full.broker.memory.refusing == 0


def test_many_messages_with_windows_do_not_stop_what_empties_the_queue(full: OpenWireServer) -> None:
    """The answers that wait for room are no reason to read no further."""
    client = full.openwire_client()
    client.consume("a", prefetch=2)
    for session in (2, 3):
        producer = ProducerId(client.id, 1, session)
        client.succeeds(ProducerInfo(producer, window_size=1 << 20))
        client.producers.add(producer)
    for number in range(1_200):
        client.send(of_session(client, 2 + number % 2, "small"))
    found: list[str] = []
    while batch := consumed(client):
        found += batch
    assert len(found) == 1_200
