"""Local and distributed transactions."""

from __future__ import annotations

from atalanta.kernel.settings.repository import AddressSettingsRepository
from atalanta.kernel.transactions import xa
from atalanta.wire.openwire.commands.connections import KeepAliveInfo
from atalanta.wire.openwire.commands.destinations import ActiveMQTempQueue
from atalanta.wire.openwire.commands.identifiers import ConnectionId
from atalanta.wire.openwire.commands.responses import DataArrayResponse, IntegerResponse, Response
from atalanta.wire.openwire.commands.transactions import (
    LocalTransactionId,
    TransactionInfo,
    XATransactionId,
)
from tests.wire.openwire.server.openwire_rig import (
    BEGIN,
    COMMIT,
    COMMIT_ONE_PHASE,
    END,
    FORGET,
    POISON,
    PREPARE,
    RECOVER,
    ROLLBACK,
    OpenWireClient,
    OpenWireServer,
    id_of,
    text,
)

XID = XATransactionId(7, b"global", b"branch")


def count(server: OpenWireServer, queue: str = "a") -> int:
    server.settle()
    found = server.broker.queues.get(queue)
    return 0 if found is None else found.message_count


def step(client: OpenWireClient, kind: int, xid: XATransactionId | None = XID) -> TransactionInfo:
    return TransactionInfo(ConnectionId(client.id), xid, kind)


def test_a_commit_sends_and_acknowledges(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a")
    client.consume("a")
    (got,) = client.dispatches()
    transaction = client.begin()
    client.ack(got, transaction=transaction)
    client.publish("2", "b", transaction_id=transaction)
    assert count(server) == 1 and count(server, "b") == 0
    client.end(transaction)
    assert count(server) == 0 and count(server, "b") == 1


def test_a_rollback_leaves_the_messages_with_the_consumer(server: OpenWireServer) -> None:
    client = server.openwire_client()
    for each in "1234":
        client.publish(each, "a")
    consumer = client.consume("a", 3)
    got = client.dispatches()
    transaction = client.begin()
    client.publish("x", "b", transaction_id=transaction)
    client.ack(got[1], first=got[0], count=2, transaction=transaction)
    assert client.texts() == ["4"]  # the window grows at once
    client.end(transaction, ROLLBACK)
    assert client.dispatches() == [] and count(server) == 4 and count(server, "b") == 0
    second = client.begin(2)
    client.ack(got[1], first=got[0], count=2, transaction=second)
    client.end(second)
    assert count(server) == 2
    client.close(consumer, -1)
    client.consume("a")
    assert [(text(each), each.redelivery_counter) for each in client.dispatches()] == [("3", 0), ("4", 0)]


def test_a_rolled_back_message_counts_when_its_consumer_leaves(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a")
    consumer = client.consume("a")
    (got,) = client.dispatches()
    transaction = client.begin()
    client.ack(got, transaction=transaction)
    client.end(transaction, ROLLBACK)
    client.close(consumer, id_of(got).broker_sequence_id)
    client.consume("a")
    (again,) = client.dispatches()
    assert again.redelivery_counter == 1


def test_poison_after_rollbacks() -> None:
    settings = AddressSettingsRepository()
    settings.add("a", {"dead_letter_address": "DLQ"})
    server = OpenWireServer(settings=settings)
    server.login().create_queue("DLQ")
    client = server.openwire_client()
    client.publish("1", "a")
    client.consume("a")
    (got,) = client.dispatches()
    for number in range(1, 4):
        transaction = client.begin(number)
        client.ack(got, transaction=transaction)
        client.end(transaction, ROLLBACK)
    client.ack(got, POISON)
    assert count(server) == 0 and count(server, "DLQ") == 1


def test_the_end_of_a_connection_rolls_back(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a")
    client.consume("a")
    (got,) = client.dispatches()
    transaction = client.begin()
    client.ack(got, transaction=transaction)
    client.publish("2", "a", transaction_id=transaction)
    server.lost(client.conn)
    other = server.openwire_client("d")
    other.consume("a")
    assert [(text(each), each.redelivery_counter) for each in other.dispatches()] == [("1", 1)]


def test_an_unknown_transaction_is_refused(server: OpenWireServer) -> None:
    client = server.openwire_client()
    unknown = LocalTransactionId(9, ConnectionId(client.id))
    kind, why = client.fails(TransactionInfo(ConnectionId(client.id), unknown, COMMIT_ONE_PHASE))
    assert kind == "javax.jms.JMSException" and why.endswith("has not been started.")
    kind, _ = client.fails(client.message("1", "a", transaction_id=unknown))
    assert kind == "javax.jms.JMSException"


def test_a_failed_operation_fails_the_commit(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a")
    client.consume("a")
    (got,) = client.dispatches()
    client.ack(got)
    transaction = client.begin()
    client.publish("2", "b", transaction_id=transaction)
    client.fails(client.ack_info(got, transaction=transaction))
    kind, _ = client.fails(TransactionInfo(ConnectionId(client.id), transaction, COMMIT_ONE_PHASE))
    assert kind == "javax.jms.TransactionRolledBackException"
    assert count(server, "b") == 0


def test_a_refused_send_fails_the_commit(server: OpenWireServer) -> None:
    client = server.openwire_client()
    transaction = client.begin()
    client.publish("2", "b", transaction_id=transaction)
    client.send(client.message("3", ActiveMQTempQueue("ID:gone:1"), transaction_id=transaction))
    client.output()
    kind, why = client.fails(TransactionInfo(ConnectionId(client.id), transaction, COMMIT_ONE_PHASE))
    assert kind == "javax.jms.TransactionRolledBackException" and "does not exist" in why
    assert count(server, "b") == 0


def test_two_phases(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a")
    client.consume("a")
    (got,) = client.dispatches()
    client.succeeds(step(client, BEGIN))
    client.ack(got, transaction=XID)
    client.publish("2", "b", transaction_id=XID)
    client.succeeds(step(client, END))
    prepared = client.succeeds(step(client, PREPARE))
    assert isinstance(prepared, IntegerResponse) and prepared.result == 0
    recovered = client.succeeds(step(client, RECOVER, None))
    assert isinstance(recovered, DataArrayResponse) and recovered.data == [XID]
    assert count(server, "b") == 0
    server.restart()
    after = server.openwire_client("d")
    recovered = after.succeeds(step(after, RECOVER, None))
    assert isinstance(recovered, DataArrayResponse) and recovered.data == [XID]
    after.succeeds(step(after, COMMIT))
    assert count(server) == 0 and count(server, "b") == 1
    _, why = after.fails(step(after, COMMIT))
    assert why.endswith("xaErrorCode:-4")
    _, why = after.fails(step(after, FORGET))
    assert why.endswith("xaErrorCode:-4")


def test_a_branch_without_work_is_read_only(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.succeeds(step(client, BEGIN))
    client.succeeds(step(client, END))
    prepared = client.succeeds(step(client, PREPARE))
    assert isinstance(prepared, IntegerResponse) and prepared.result == 3


def test_a_branch_that_is_rolled_back(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a")
    client.consume("a")
    (got,) = client.dispatches()
    for prepare in (False, True):
        client.succeeds(step(client, BEGIN))
        client.ack(got, transaction=XID)
        client.publish("2", "b", transaction_id=XID)
        client.succeeds(step(client, END))
        if prepare:
            client.succeeds(step(client, PREPARE))
        client.succeeds(step(client, ROLLBACK))
        assert client.dispatches() == [] and count(server) == 1 and count(server, "b") == 0
    client.ack(got)
    assert count(server) == 0


def test_a_lost_connection_abandons_its_branch(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.publish("1", "a")
    client.consume("a")
    (got,) = client.dispatches()
    client.succeeds(step(client, BEGIN))
    client.ack(got, transaction=XID)
    server.lost(client.conn)
    other = server.openwire_client("d")
    other.consume("a")
    assert other.texts() == ["1"]
    _, why = other.fails(step(other, PREPARE))
    assert why.endswith("xaErrorCode:-4")


def test_one_user_cannot_take_the_branches_of_others(server: OpenWireServer) -> None:
    """The limit was one for the node: nobody else could begin a transaction."""
    guest, client = server.openwire_client("g", "guest"), server.openwire_client()
    for number in range(xa.BRANCHES_MAX):
        guest.send(step(guest, BEGIN, XATransactionId(1, b"%d" % number, b"")))
    _, why = guest.fails(step(guest, BEGIN))
    assert f"more than {xa.BRANCHES_MAX} transactions are open" in why
    for number in range(xa.BRANCHES_EACH):
        client.send(step(client, BEGIN, XATransactionId(2, b"%d" % number, b"")))
    assert len(server.broker.branches.by_xid) == xa.BRANCHES_MAX + xa.BRANCHES_EACH
    _, why = client.fails(step(client, BEGIN))
    assert "transactions are open" in why


# -- large ones ---------------------------------------------------------------------------------
LARGE = 300  # messages of 90,000 bytes: more than the work of one step


def pings_of(server: OpenWireServer, other: OpenWireClient) -> int:
    """How often another client was answered during the steps of a request; nothing is visible meanwhile."""
    pings = 0
    while server.step():
        pings += 1
        queue = server.broker.queues.get("a")
        assert queue is None or queue.message_count == 0
        number = other.send(KeepAliveInfo(), True)
        server.turn()
        assert [each for each in other.output() if isinstance(each, KeepAliveInfo)], number
    return pings


def fill(client: OpenWireClient, transaction: LocalTransactionId | XATransactionId) -> None:
    for number in range(LARGE):
        client.send(client.message(f"{number}" + "x" * 90_000, "a", transaction_id=transaction))
    client.output()


def results(client: OpenWireClient) -> list[type[Response]]:
    return [type(each) for each in client.output() if isinstance(each, Response)]


def test_others_are_answered_between_the_steps_of_a_large_commit(server: OpenWireServer) -> None:
    client = server.openwire_client()
    other = server.openwire_client("d")
    transaction = client.begin()
    fill(client, transaction)
    client.send(TransactionInfo(ConnectionId(client.id), transaction, COMMIT_ONE_PHASE), True)
    assert pings_of(server, other)
    assert results(client) == [Response]
    assert count(server) == LARGE


def test_others_are_answered_between_the_steps_of_a_large_distributed_transaction(server: OpenWireServer) -> None:
    client = server.openwire_client()
    other = server.openwire_client("d")
    client.succeeds(step(client, BEGIN))
    fill(client, XID)
    client.succeeds(step(client, END))
    client.send(step(client, PREPARE), True)
    assert pings_of(server, other)
    assert results(client) == [IntegerResponse]
    client.send(step(client, COMMIT), True)
    assert pings_of(server, other)
    assert results(client) == [Response]
    assert count(server) == LARGE


def test_only_one_of_two_clients_commits_a_large_prepared_branch(server: OpenWireServer) -> None:
    client = server.openwire_client()
    client.succeeds(step(client, BEGIN))
    fill(client, XID)
    client.succeeds(step(client, END))
    client.succeeds(step(client, PREPARE))
    other = server.openwire_client("d")
    client.send(step(client, COMMIT), True)
    other.send(step(other, COMMIT), True)
    server.settle()
    assert sorted(found.__name__ for each in (client, other) for found in results(each)) == [
        "ExceptionResponse", "Response",
    ]  # fmt: skip
    assert count(server) == LARGE


def test_a_client_that_leaves_in_the_middle_of_a_large_commit_leaves_nothing(server: OpenWireServer) -> None:
    client = server.openwire_client()
    transaction = client.begin()
    fill(client, transaction)
    client.send(TransactionInfo(ConnectionId(client.id), transaction, COMMIT_ONE_PHASE), True)
    assert server.step()
    server.lost(client.conn)
    assert count(server) == 0
