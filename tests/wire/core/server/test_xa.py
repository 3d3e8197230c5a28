"""Distributed transactions over CORE: both phases, crashes between them, and XA's own errors."""

from __future__ import annotations

import pytest

from atalanta.kernel.broker.invariants import validate
from atalanta.kernel.errors import (
    DUPLICATE_ID,
    ILLEGAL_STATE,
    TRANSACTION_ROLLED_BACK,
    TRANSACTION_TIMEOUT,
)
from atalanta.kernel.routing.divert_config import DivertConfig
from atalanta.kernel.transactions import xa
from atalanta.wire.core.packets.base import Packet
from atalanta.wire.core.packets.connection import ExceptionResponse
from atalanta.wire.core.packets.consumer import ForceConsumerDelivery, IndividualAcknowledge
from atalanta.wire.core.packets.message import ReceiveMessage
from atalanta.wire.core.packets.session import SessionClose
from atalanta.wire.core.packets.transaction import (
    Commit,
    XaCommit,
    XaEnd,
    XaFailed,
    XaForget,
    XaGetTimeout,
    XaGetTimeoutResponse,
    XaInDoubt,
    XaInDoubtResponse,
    XaJoin,
    XaPrepare,
    XaResponse,
    XaResume,
    XaRollback,
    XaSetTimeout,
    XaStart,
    XaSuspend,
    Xid,
)
from tests.kernel.broker_rig import SECOND
from tests.wire.core.server.server_rig import FORCED, Client, Server
from tests.wire.core.server.xa_rig import ONE, ok, xa_client

TWO = Xid(1, b"branch-2", b"global")


def code(client: Client, packet: Packet) -> int:
    answer = client.call(packet)
    assert isinstance(answer, XaResponse) and answer.error, f"{packet}: {answer}"
    return answer.code


def texts(server: Server, queue: str) -> list[str]:
    """Returns what a fresh consumer is given; it gives it back."""
    server.settle()
    client = server.login()
    client.consume(queue)
    found = client.bodies()
    server.lost(client.conn)
    return found


def in_doubt(client: Client) -> list[Xid]:
    answer = client.call(XaInDoubt())
    assert isinstance(answer, XaInDoubtResponse)
    return answer.xids


def moved(server: Server) -> Client:
    """In branch ONE a message of `in` was acknowledged and another sent to `out`; ended, not prepared."""
    client = xa_client(server)
    client.publish("in", "order", wait=False)
    server.settle()
    ok(client, XaStart(ONE))
    client.consume("in")
    (message,) = client.deliveries()
    client.publish("out", "invoice", wait=False)
    client.send(IndividualAcknowledge(0, message.message.id, False))
    ok(client, XaEnd(ONE, False))
    assert texts(server, "out") == []
    return client


def test_outside_of_a_branch_an_xa_session_commits_by_itself(server: Server) -> None:
    client = xa_client(server)
    client.publish("out", "at once", wait=False)
    assert texts(server, "out") == ["at once"]


def test_one_phase(server: Server) -> None:
    client = moved(server)
    ok(client, XaCommit(ONE, True))
    assert (texts(server, "in"), texts(server, "out")) == ([], ["invoice"])
    assert not server.broker.branches.by_xid


def test_two_phases(server: Server) -> None:
    client = moved(server)
    ok(client, XaPrepare(ONE), XaPrepare(ONE))
    assert in_doubt(client) == [ONE]
    assert (texts(server, "in"), texts(server, "out")) == ([], [])
    validate(server.broker)
    ok(client, XaCommit(ONE, False))
    assert in_doubt(client) == []
    assert (texts(server, "in"), texts(server, "out")) == ([], ["invoice"])


@pytest.mark.parametrize("end", [XaRollback(ONE), XaCommit(ONE, False)])
def test_a_branch_is_unknown_once_its_end_survives_a_crash(server: Server, end: Packet) -> None:
    """Its coordinator forgets it then. After a crash before that it would be in doubt again, and rolled back by one."""
    client = moved(server)
    ok(client, XaPrepare(ONE))
    asking, ending = xa_client(server), xa_client(server)
    for each in (asking, ending):
        each.receive()
    client.send(end)
    asking.send(XaInDoubt())
    ending.send(XaRollback(ONE))
    assert asking.receive() == [] and ending.receive() == []
    server.settle()
    (told,) = asking.packets(XaInDoubtResponse)
    (refused,) = ending.packets(XaResponse)
    assert told.xids == [] and refused.error


def test_a_branch_is_in_doubt_once_it_survives_a_crash(server: Server) -> None:
    """A node that leaves to this one ends its own branch when it is told of this one."""
    client = moved(server)
    other = xa_client(server)
    other.receive()
    client.send(XaPrepare(ONE))
    other.send(XaInDoubt())
    assert other.packets(XaInDoubtResponse) == [] and client.packets(XaResponse) == []
    server.settle()
    assert len(client.packets(XaResponse)) == 1
    (answer,) = other.packets(XaInDoubtResponse)
    assert answer.xids == [ONE]


@pytest.mark.parametrize("prepared", [False, True])
def test_rollback_redelivers_and_sends_nothing(server: Server, prepared: bool) -> None:
    client = moved(server)
    if prepared:
        ok(client, XaPrepare(ONE))
    client.send(XaRollback(ONE))
    server.settle()
    (again,) = client.deliveries()
    assert (again.message.text(), again.delivery_count) == ("order", 2)
    assert texts(server, "out") == []


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("commit", [False, True])
def test_a_prepared_branch_survives_crashes(server: Server, commit: bool, compacted: bool) -> None:
    client = moved(server)
    ok(client, XaPrepare(ONE))
    for _ in range(2):
        if compacted:
            server.compact(server.journal.last)
            server.settle()
        server.restart()
        assert (texts(server, "in"), texts(server, "out")) == ([], [])
        validate(server.broker)
    client = xa_client(server)
    assert in_doubt(client) == [ONE]
    ok(client, XaCommit(ONE, False) if commit else XaRollback(ONE))
    expected = ([], ["invoice"]) if commit else (["order"], [])
    assert (texts(server, "in"), texts(server, "out")) == expected
    for _ in range(2):
        if compacted:
            server.compact(server.journal.last)
            server.settle()
        server.restart()
        assert (texts(server, "in"), texts(server, "out")) == expected
        assert in_doubt(xa_client(server)) == []
        validate(server.broker)


def test_a_commit_that_was_not_durable_leaves_the_branch_in_doubt(server: Server) -> None:
    client = moved(server)
    ok(client, XaPrepare(ONE))
    client.send(XaCommit(ONE, False))
    server.restart()
    client = xa_client(server)
    assert in_doubt(client) == [ONE]
    ok(client, XaCommit(ONE, False))
    assert (texts(server, "in"), texts(server, "out")) == ([], ["invoice"])


def test_a_branch_that_is_not_prepared_goes_with_its_client(server: Server) -> None:
    client = moved(server)
    server.lost(client.conn)
    assert (texts(server, "in"), texts(server, "out")) == (["order"], [])
    assert not server.broker.branches.by_xid


def test_a_prepared_branch_outlives_its_client(server: Server) -> None:
    client = moved(server)
    ok(client, XaPrepare(ONE))
    server.lost(client.conn)
    assert texts(server, "in") == []
    ok(xa_client(server), XaCommit(ONE, False))
    assert (texts(server, "in"), texts(server, "out")) == ([], ["invoice"])


def test_an_ended_branch_outlives_a_session_closed_in_good_order(server: Server) -> None:
    client = moved(server)
    client.succeeds(SessionClose())
    ok(xa_client(server), XaPrepare(ONE), XaCommit(ONE, False))
    assert (texts(server, "in"), texts(server, "out")) == ([], ["invoice"])


def test_a_queue_a_prepared_branch_will_send_to_is_not_swept(server: Server) -> None:
    client = xa_client(server)
    ok(client, XaStart(ONE))
    client.publish("brand.new", "first", wait=False, routing_type=1)
    ok(client, XaEnd(ONE, False), XaPrepare(ONE))
    for _ in range(3):
        server.now += 3_600 * SECOND
        server.broker.on_timer(server.now, "kernel.sweep")
    ok(client, XaCommit(ONE, False))
    assert texts(server, "brand.new") == ["first"]


def test_two_sessions_in_one_branch_and_two_branches_in_one_session(server: Server) -> None:
    first, second = xa_client(server), xa_client(server)
    ok(first, XaStart(ONE))
    first.publish("out", "a", wait=False)
    ok(second, XaJoin(ONE))
    second.publish("out", "b", wait=False)
    ok(second, XaEnd(ONE, False))
    ok(first, XaSuspend(), XaStart(TWO))
    first.publish("out", "other", wait=False)
    assert code(first, XaCommit(ONE, True)) == -6
    ok(first, XaEnd(TWO, False), XaResume(ONE))
    first.publish("out", "c", wait=False)
    ok(first, XaEnd(ONE, False), XaCommit(ONE, True), XaRollback(TWO))
    assert texts(server, "out") == ["a", "b", "c"]


def test_committing_one_branch_leaves_the_one_at_work_alone(server: Server) -> None:
    client = xa_client(server)
    ok(client, XaStart(ONE))
    client.publish("out", "one", wait=False)
    ok(client, XaEnd(ONE, False), XaStart(TWO))
    client.publish("out", "two", wait=False)
    ok(client, XaCommit(ONE, True))
    assert texts(server, "out") == ["one"]
    ok(client, XaEnd(TWO, False), XaCommit(TWO, True))
    assert texts(server, "out") == ["one", "two"]


def test_errors_have_xas_codes(server: Server) -> None:
    client, other = xa_client(server), xa_client(server)
    for packet in (XaJoin(ONE), XaResume(ONE), XaEnd(ONE, False), XaPrepare(ONE), XaForget(ONE)):
        assert code(client, packet) == -4, packet
    assert code(client, XaCommit(ONE, True)) == -4
    assert code(client, XaRollback(ONE)) == -4
    assert code(client, XaSuspend()) == -6
    ok(client, XaStart(ONE))
    assert code(other, XaStart(ONE)) == -8
    for early in (XaPrepare(ONE), XaCommit(ONE, True), XaRollback(ONE), XaResume(TWO)):
        assert code(client, early) == -6, early
    ok(client, XaSuspend())
    for at_rest in (XaPrepare(ONE), XaCommit(ONE, True), XaRollback(ONE), XaJoin(ONE)):
        assert code(client, at_rest) == -6, at_rest
    assert client.call(XaEnd(ONE, False)) is not None
    assert client.fails(XaCommit(ONE, False))[0] == ILLEGAL_STATE
    ok(client, XaPrepare(ONE))
    assert client.fails(XaCommit(ONE, True))[0] == ILLEGAL_STATE
    assert code(other, XaStart(Xid(1, bytes(600), bytes(600)))) == -5


def test_what_cannot_be_committed_is_refused_at_prepare(server: Server) -> None:
    client = xa_client(server)
    client.publish("out", "first", wait=False, _AMQ_DUPL_ID="x")
    server.settle()
    ok(client, XaStart(ONE))
    client.publish("out", "again", wait=False, _AMQ_DUPL_ID="x")
    ok(client, XaEnd(ONE, False))
    assert client.fails(XaPrepare(ONE))[0] == DUPLICATE_ID
    ok(client, XaRollback(ONE))
    assert texts(server, "out") == ["first"]


def test_a_duplicate_that_came_between_the_phases_is_not_sent_twice(server: Server) -> None:
    client = xa_client(server)
    ok(client, XaStart(ONE))
    client.publish("out", "branch", wait=False, _AMQ_DUPL_ID="x")
    ok(client, XaEnd(ONE, False), XaPrepare(ONE))
    client.publish("out", "direct", wait=False, _AMQ_DUPL_ID="x")
    server.settle()
    ok(client, XaCommit(ONE, False))
    assert texts(server, "out") == ["direct"]


def test_after_a_failover_the_branch_can_only_be_rolled_back(server: Server) -> None:
    client = xa_client(server)
    client.send(XaFailed(ONE))
    assert client.receive() == []
    ok(client, XaEnd(ONE, False))
    assert client.fails(XaPrepare(ONE))[0] == TRANSACTION_ROLLED_BACK
    ok(client, XaRollback(ONE))


def test_failed_branches_have_the_limit_of_others(server: Server) -> None:
    """A client named any number of branches that it had never begun."""
    client = xa_client(server)
    for number in range(xa.BRANCHES_MAX + 1):
        client.send(XaFailed(Xid(1, b"%d" % number, b"g")))
    assert len(server.broker.branches.by_xid) == xa.BRANCHES_MAX
    assert client.receive() == []


def test_a_branch_that_takes_too_long_is_rolled_back(server: Server) -> None:
    client = xa_client(server)
    client.publish("in", "order", wait=False)
    server.settle()
    ok(client, XaStart(ONE))
    client.consume("in")
    (message,) = client.deliveries()
    client.send(IndividualAcknowledge(0, message.message.id, False))
    assert xa.XA_TIMER in server.timers.due
    server.now += 299 * SECOND
    server.broker.on_timer(server.now, xa.XA_TIMER)
    assert xa.XA_TIMER in server.timers.due
    assert client.deliveries() == []
    server.now += 2 * SECOND
    server.broker.on_timer(server.now, xa.XA_TIMER)
    (again,) = client.deliveries()
    # It does not know yet and goes on.
    client.publish("out", "too late", wait=False)
    client.send(IndividualAcknowledge(0, again.message.id, False))
    assert code(client, XaEnd(ONE, False)) == 106
    counts = [one.delivery_count for _, one in client.seen if isinstance(one, ReceiveMessage)]
    assert counts == [1, 2, 3]
    assert texts(server, "out") == []
    assert code(client, XaRollback(ONE)) == -4


def test_timeouts_are_set_per_session_and_spare_what_is_prepared(server: Server) -> None:
    client = xa_client(server)
    client.call(XaSetTimeout(5))
    answer = client.call(XaGetTimeout())
    assert isinstance(answer, XaGetTimeoutResponse) and answer.timeout_s == 5
    ok(client, XaStart(ONE), XaEnd(ONE, False), XaStart(TWO), XaEnd(TWO, False), XaPrepare(TWO))
    server.now += 6 * SECOND
    server.broker.on_timer(server.now, xa.XA_TIMER)
    assert in_doubt(client) == [TWO]
    assert code(client, XaPrepare(ONE)) == -4
    client.call(XaSetTimeout(0))
    answer = client.call(XaGetTimeout())
    assert isinstance(answer, XaGetTimeoutResponse) and answer.timeout_s == 300
    assert TRANSACTION_TIMEOUT == 120


@pytest.mark.parametrize(("commit", "heuristic"), [(True, 7), (False, 6)])
def test_an_operator_ends_a_branch_and_its_manager_is_told(server: Server, commit: bool, heuristic: int) -> None:
    client = moved(server)
    ok(client, XaPrepare(ONE))
    (branch,) = server.broker.branches.list_prepared()
    name = xa.identifier(branch.xid)
    assert name == "YnJhbmNoLTFnbG9iYWwBAAAA"
    assert not server.broker.branches.end_by_operator(server.now, "unknown", commit)
    assert server.broker.branches.end_by_operator(server.now, name, commit)
    expected = ([], ["invoice"]) if commit else (["order"], [])
    server.settle()
    for _ in range(2):
        server.compact(server.journal.last)
        server.settle()
        server.restart()
        assert (texts(server, "in"), texts(server, "out")) == expected
        validate(server.broker)
    client = xa_client(server)
    assert in_doubt(client) == [ONE]
    assert code(client, XaCommit(ONE, False)) == heuristic
    assert code(client, XaRollback(ONE)) == heuristic
    ok(client, XaForget(ONE))
    server.restart()
    assert in_doubt(xa_client(server)) == []


def test_nondurable_messages_of_a_prepared_branch_arrive_unless_the_node_ended(server: Server) -> None:
    client = xa_client(server)
    ok(client, XaStart(ONE))
    client.publish("out", "fleeting", wait=False, durable=False)
    client.publish("out", "durable", wait=False)
    ok(client, XaEnd(ONE, False), XaPrepare(ONE))
    server.restart()
    client = xa_client(server)
    ok(client, XaCommit(ONE, False))
    assert texts(server, "out") == ["durable"]


def test_a_local_commit_in_a_branch_is_refused(server: Server) -> None:
    client = xa_client(server)
    ok(client, XaStart(ONE))
    answer = client.call(Commit(-3))
    assert isinstance(answer, ExceptionResponse) and answer.code == ILLEGAL_STATE


def test_what_diverts_make_of_a_message_is_prepared_with_it(server: Server) -> None:
    client = xa_client(server)
    client.create_queue("audit")
    config = DivertConfig("d", "out", "audit")
    server.broker.diverts.create(config, False)
    ok(client, XaStart(ONE))
    client.publish("out", "invoice", wait=False)
    ok(client, XaEnd(ONE, False), XaPrepare(ONE))
    assert (texts(server, "out"), texts(server, "audit")) == ([], [])
    server.restart()
    assert server.broker.diverts.by_name == {}
    client = xa_client(server)
    ok(client, XaCommit(ONE, False))
    assert (texts(server, "out"), texts(server, "audit")) == (["invoice"], ["invoice"])


@pytest.mark.parametrize("durable", [True, False])
def test_a_receive_without_wait_finds_what_the_session_sent_before_it(server: Server, durable: bool) -> None:
    """The client of an XA session does not wait for its sends, also when it is in no branch."""
    client = xa_client(server)
    client.consume("in")
    client.consume("in", consumer_id=1, browse=True)
    client.publish("in", "before", wait=False)
    client.publish("in", "order", wait=False, durable=durable)
    client.send(ForceConsumerDelivery(0, 7))
    client.send(ForceConsumerDelivery(1, 8))
    assert client.packets(ReceiveMessage) == [], "the disk has not answered"
    server.settle()
    got = [
        packet.message.properties.get(FORCED) or packet.message.text()
        for packet in client.packets(ReceiveMessage)
        if packet.consumer_id == 0
    ]
    assert got == ["before", "order", 7]
    client.publish("in", "later", wait=False)
    client.send(ForceConsumerDelivery(0, 9))
    server.lost(client.conn)
    server.settle()
    assert texts(server, "in") == ["before", "order", "later"]
